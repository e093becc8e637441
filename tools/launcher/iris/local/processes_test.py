"""Tests of what is read from /proc, with real processes and sockets."""

import os
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from tools.launcher.iris.local import processes
from tools.launcher.iris.local.processes import Listener


def test_start_ticks_tell_processes_apart() -> None:
    own = processes.start_ticks(os.getpid())
    assert own is not None
    time.sleep(0.05)
    with subprocess.Popen(["sleep", "60"]) as child:
        ticks = processes.start_ticks(child.pid)
        assert ticks is not None
        assert ticks > own
        child.kill()
    assert processes.start_ticks(child.pid) is None


def test_a_zombie_does_not_run() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert processes.start_ticks(child.pid) is None
    child.wait()


def test_a_name_with_parentheses_does_not_shift_the_fields(tmp_path: Path) -> None:
    program = tmp_path / "a) (b 1 2 3"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as child:
        ticks = processes.start_ticks(child.pid)
        child.kill()
    own = processes.start_ticks(os.getpid())
    assert ticks is not None
    assert own is not None
    assert ticks >= own


@pytest.mark.parametrize(
    ("family", "address", "loopback"),
    [
        (socket.AF_INET, "127.0.0.1", True),
        (socket.AF_INET, "0.0.0.0", False),
        (socket.AF_INET6, "::1", True),
        (socket.AF_INET6, "::", False),
        (socket.AF_INET6, "::ffff:127.0.0.1", True),
    ],
)
def test_listeners(family: socket.AddressFamily, address: str, loopback: bool) -> None:
    try:
        server = socket.create_server((address, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {address}")
    with server:
        port = server.getsockname()[1]
        found = [item for item in processes.listeners(os.getpid()) if item.port == port]
        assert [item.loopback for item in found] == [loopback]
        assert [item.ipv6 for item in found] == [family == socket.AF_INET6]
    assert all(item.port != port for item in processes.listeners(os.getpid()))


def test_a_socket_of_another_process_is_not_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, subprocess.Popen(["sleep", "60"]) as child:
        assert Listener("0100007F", server.getsockname()[1], False) not in processes.listeners(child.pid)
        child.kill()


def test_no_process_has_no_listeners() -> None:
    with subprocess.Popen(["true"]) as child:
        pass
    assert processes.listeners(child.pid) == ()


def test_what_carries_a_variable_is_killed_with_its_children() -> None:
    name, value = "SLIPWAY_TEST", uuid.uuid4().hex
    # The grandchild leaves the session and outlives its parent, as a task's may.
    script = "setsid sleep 60 & sleep 60; exec sleep 60"
    with subprocess.Popen(["bash", "-c", script], env={**os.environ, name: value}) as child:
        end = time.monotonic() + 10
        while len(processes.carrying(name, value)) < 3:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert processes.carrying(name, value[:-1]) == ()
        assert processes.kill_carrying(name, value, seconds=5.0, spare=child.pid) == 2
        assert processes.kill_carrying(name, value, seconds=5.0) == 1
        assert child.wait(timeout=10) == -9
    assert processes.carrying(name, value) == ()


def test_waiting_for_an_end() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        ticks = processes.start_ticks(child.pid)
        assert ticks is not None
        assert not processes.ended(child.pid, ticks, seconds=0.1)
        assert processes.ended(child.pid, ticks + 1, seconds=0.1)
        child.kill()
        assert processes.ended(child.pid, ticks, seconds=5.0)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
