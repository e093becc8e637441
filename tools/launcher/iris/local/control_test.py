"""Tests of starting and stopping with stand-ins for the daemon."""

import dataclasses
import http.server
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.launcher.iris.local import control, processes
from tools.launcher.iris.local.cluster_for_test import plan_in_place
from tools.launcher.iris.local.control import StartFailed, ensure_running, status, stop
from tools.launcher.iris.local.runtime import RuntimePlan
from tools.launcher.iris.local.shapes import GangShape, ShapeNotOffered
from tools.launcher.iris.local.state import (
    DaemonRecord,
    LocalClusterError,
    StateFolderUnusable,
    local_paths,
    read_record,
    write_record,
)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with us."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server, not of `sleeper`, that answers everything with 200."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running.server_address[1]
        running.shutdown()


def record_of(pid: int, *, port: int = 1, **changes: Any) -> DaemonRecord:
    ticks = processes.start_ticks(pid)
    assert ticks is not None
    record = DaemonRecord(
        schema_version=1,
        pid=pid,
        start_ticks=ticks,
        boot_id=processes.boot_id(),
        url=f"http://127.0.0.1:{port}",
        port=port,
        runtime_digest="d",
        started_at="2026-11-30T12:00:00+00:00",
        nonce="no-process-has-this",
    )
    return record.model_copy(update=changes)


def failing_plan(tmp_path: Path, script: str) -> RuntimePlan:
    """A runtime whose interpreter is a shell script."""
    program = tmp_path / "interpreter"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return dataclasses.replace(plan_in_place(), python=program)


@pytest.mark.parametrize("changes", [{"start_ticks": 1}, {"boot_id": "another"}])
def test_a_process_that_took_over_the_id_is_not_ours(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], changes: dict[str, Any]
) -> None:
    write_record(local_paths(tmp_path), record_of(sleeper.pid, **changes))
    found = status(tmp_path)
    assert not found.running
    assert found.note == f"not running; process {sleeper.pid} ended without being stopped"
    outcome = stop(tmp_path)
    assert (outcome.was_running, outcome.pid) == (False, None)
    assert sleeper.poll() is None
    assert read_record(local_paths(tmp_path)) is None


@pytest.mark.parametrize("changes", [{"start_ticks": 1}, {"boot_id": "another"}])
def test_starting_leaves_a_stranger_alone(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], server: int, changes: dict[str, Any]
) -> None:
    state = tmp_path / "state"
    write_record(local_paths(state), record_of(sleeper.pid, port=server, **changes))
    with pytest.raises(StartFailed, match="exit status 9"):
        ensure_running(state, plan=failing_plan(tmp_path, "exit 9"))
    assert sleeper.poll() is None


def test_a_port_of_somebody_else_is_not_health(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], server: int
) -> None:
    write_record(local_paths(tmp_path), record_of(sleeper.pid, port=server))
    found = status(tmp_path)
    assert not found.running
    assert found.note == f"process {sleeper.pid} does not answer"


def test_one_that_starts_is_said_to(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    write_record(local_paths(tmp_path), record_of(sleeper.pid, url="", port=0))
    assert status(tmp_path).note == f"process {sleeper.pid} is starting"


def test_nothing_there(tmp_path: Path) -> None:
    assert status(tmp_path).note == "not running"
    assert stop(tmp_path) == control.StopOutcome(False, None, (), False, 0)


def test_stopping_outwaits_one_whose_record_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = local_paths(tmp_path)
    paths.root.mkdir(parents=True)
    hold = "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print(flush=True); time.sleep(60)"
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, str(paths.life_lock)],
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        monkeypatch.setattr(control, "STOP_SECONDS", 0.3)
        said: list[str] = []
        with pytest.raises(
            LocalClusterError, match=r"its record .* is gone, and it did not end within 0\.3 s"
        ):
            stop(tmp_path, on_progress=said.append)
        assert said == ["Waiting for an embedded Iris whose record is gone to end ..."]
        monkeypatch.setattr(control, "STOP_SECONDS", 30.0)
        threading.Timer(0.3, holder.kill).start()
        assert not stop(tmp_path).was_running
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.parametrize(
    ("total", "free", "least"),
    [(70 * 2**20, 5 * 2**20, 64), (100 * 2**30, 4 * 2**30, 5120), (2**40, 9 * 2**30, 10240)],
)
def test_a_full_disk_is_said_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: int, free: int, least: int
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(total=total, free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StateFolderUnusable) as caught:
        ensure_running(tmp_path, plan=failing_plan(tmp_path, "exit 9"))
    assert str(caught.value) == (
        f"the disk of the state folder {tmp_path}/local has {free // 2**20} MiB free, the embedded Iris needs "
        f"{least} MiB; free some, or set XDG_STATE_HOME to a folder on another disk"
    )
    assert not local_paths(tmp_path).runtimes.exists()


def test_of_a_traceback_in_the_log_its_end_is_shown(tmp_path: Path) -> None:
    script = "python3 -c 'import sys; print(1, flush=True); [][0]'; echo after; exit 7"
    with pytest.raises(StartFailed) as caught:
        ensure_running(
            tmp_path / "state", plan=failing_plan(tmp_path, script.replace("python3", sys.executable))
        )
    assert str(caught.value).endswith(":\n    1\n    IndexError: list index out of range\n    after")


def test_a_failed_start_shows_the_log(tmp_path: Path) -> None:
    plan = failing_plan(tmp_path, "seq 1 30; echo the cause >&2; exit 7")
    with pytest.raises(StartFailed) as caught:
        ensure_running(tmp_path / "state", plan=plan)
    text = str(caught.value)
    assert text.startswith(
        "the embedded Iris did not start: its process ended with exit status 7. End of its log, "
        f"{tmp_path}/state/local/daemon.log:\n    12\n"
    )
    assert text.endswith("\n    30\n    the cause")


def test_a_start_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "START_SECONDS", 0.5)
    with pytest.raises(StartFailed, match=r"did not answer within 0.5 s. End of its log, .*:\n    \(empty\)"):
        ensure_running(
            tmp_path / "state", plan=failing_plan(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60")
        )
    assert processes.start_ticks(int((tmp_path / "pid").read_text())) is None


def test_the_daemon_gets_no_variable_of_the_caller(tmp_path: Path) -> None:
    plan = failing_plan(
        tmp_path, f"env > {tmp_path}/environment; echo $@ > {tmp_path}/arguments; pwd; exit 1"
    )
    environ = {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "HF_TOKEN": "hf_secret",
        "PYTHONPATH": "/x",
        "HOME": "/root",
    }
    with pytest.raises(StartFailed):
        ensure_running(tmp_path / "state", environ=environ, plan=plan)
    lines = (tmp_path / "environment").read_text().splitlines()
    names = {line.split("=")[0] for line in lines} - {"_", "PWD", "SHLVL", "OLDPWD"}
    python_names = {"PYTHONNOUSERSITE", "PYTHONPATH", "PYTHONSAFEPATH"}
    assert names == {"HOME", "LANG", "PATH", "SLIPWAY_LOCAL_CLUSTER", "TMPDIR", *python_names}
    assert f"HOME={tmp_path}/state/local/home" in lines
    assert "hf_secret" not in "".join(lines) + (tmp_path / "arguments").read_text()


def test_private_folders(tmp_path: Path) -> None:
    with pytest.raises(StartFailed):
        ensure_running(tmp_path / "state", plan=failing_plan(tmp_path, "exit 1"))
    for folder in ("local", "local/home"):
        assert (tmp_path / "state" / folder).stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "state" / "local" / "daemon.log").stat().st_mode & 0o777 == 0o600


def test_an_unusable_state_folder(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(LocalClusterError) as caught:
        ensure_running(tmp_path / "state", plan=failing_plan(tmp_path, "exit 1"))
    assert str(caught.value) == (
        f"the state folder {tmp_path}/state/local can't be used: Not a directory; "
        "set XDG_STATE_HOME to a folder you may write to"
    )


def test_an_unoffered_gang_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(ShapeNotOffered, match="no gang of 17 nodes"):
        ensure_running(
            tmp_path / "state", shape=GangShape("H100", 8, 17), plan=failing_plan(tmp_path, "exit 1")
        )
    assert not (tmp_path / "state").exists()


def test_whoever_waits_for_the_lock_says_so(tmp_path: Path) -> None:
    plan = failing_plan(tmp_path, "sleep 2; exit 1")
    told: list[list[str]] = [[], []]

    def start(index: int) -> None:
        with pytest.raises(StartFailed):
            ensure_running(tmp_path / "state", plan=plan, on_progress=told[index].append)

    threads = [threading.Thread(target=start, args=(index,)) for index in range(2)]
    threads[0].start()
    time.sleep(0.5)
    threads[1].start()
    for thread in threads:
        thread.join(timeout=30)
    assert told[0] == ["Starting the embedded Iris ..."]
    assert told[1] == [
        "Waiting for another command that starts or stops the embedded Iris ...",
        "Starting the embedded Iris ...",
    ]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
