"""Tasks of the embedded Iris without their second of imports: forked, as launchers are.

Iris starts each task as a fresh interpreter. Here it finds another program in its place: that hands command line,
environment and output over to a process that has imported everything, which forks, and then stands for what was
forked: it ends as that ends, and that is killed if it is. The code of the task's own module comes from the archive
it was sent, what that imports from this checkout, which is the same.

What is forked is a process as any other, and dies of SIGKILL as any other.
"""

import contextlib
import json
import os
import runpy
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.faults.forking_testlib import MESSAGE_BYTES, Forker, start

_PRELOADED = (
    "google.cloud.storage",
    "iris.rpc.compression",
    "iris.rpc.controller_connect",
    "tools.launcher.coordinator.main",
    "tools.launcher.iris.gateway",
    "tools.launcher.iris.launch_message",
    "tools.launcher.rehearsal.launch",
    "tools.launcher.rehearsal.task",
)

# Without `site` it starts in a hundredth of a second, and may import only what the interpreter carries.
_STAND_IN = '''"""Stands for a task that is forked elsewhere. Written by a test."""
import json, os, signal, socket, sys

arguments = sys.argv[1:]
if "prctl" in arguments[1]:  # the program with which Iris has a task die with it
    arguments = arguments[3:]
line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
line.connect(SOCKET)
task = {"arguments": arguments, "environ": dict(os.environ), "folder": os.getcwd()}
socket.send_fds(line, [json.dumps(task).encode()], [0, 1, 2])
answer = json.loads(line.recv(4096))
pid = answer["pid"]
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, _: os.kill(pid, number))
open(f"{FOLDER}/{os.getpid()}", "w").write(str(pid))
end = line.recv(4096)
code = json.loads(end)["code"] if end else -signal.SIGKILL
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
    os.kill(os.getpid(), -code)
os._exit(code)
'''

_AT_START = '''"""Has the embedded Iris of a test start its tasks through the stand-in. Written by that test."""
import sys

if any(word.startswith("--nonce=") for word in sys.argv) or "tools.launcher.iris.local.daemon" in " ".join(sys.orig_argv):
    sys.executable = PROGRAM
'''


class TaskZygote:
    """The test's side.

    Attributes:
        site: a folder for the import path of the daemon.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.site = folder / "site"
        self._pids = folder / "pids"

    def forked(self, pid: int) -> int:
        """The process that the stand-in `pid` stands for; the process itself if it is no stand-in."""
        try:
            return int((self._pids / str(pid)).read_text())
        except (FileNotFoundError, ValueError):
            return pid


@contextmanager
def task_zygote(folder: Path) -> Iterator[TaskZygote]:
    """Start one; its files go below `folder`, whose path should be short."""
    made = TaskZygote(folder)
    for name in ("site", "pids"):
        (folder / name).mkdir(parents=True)
    socket_file = folder / "socket"
    program, stand_in = folder / "python", folder / "stand_in.py"
    constants = f"SOCKET, FOLDER = {str(socket_file)!r}, {str(folder / 'pids')!r}\n"
    stand_in.write_text(_STAND_IN.replace("\n\narguments", f"\n\n{constants}arguments", 1))
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{stand_in}" "$@"\n')
    program.chmod(0o755)
    (made.site / "sitecustomize.py").write_text(_AT_START.replace("PROGRAM", repr(str(program))))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(socket_file))
    listener.listen(64)
    process = start(__name__, listener.fileno(), str(program))
    listener.close()
    try:
        yield made
    finally:
        process.terminate()
        process.wait(timeout=10)


def serve(descriptor: int, program: str) -> None:
    """Fork tasks until told to end."""
    forker = Forker(_PRELOADED)
    sys.executable = program  # What a task starts with it is forked too.
    listener = socket.socket(fileno=descriptor)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    lines: dict[int, socket.socket] = {}
    while True:
        asked, ended = forker.wait(listener)
        for pid, code in ended.items():
            with lines.pop(pid) as line, contextlib.suppress(OSError):
                line.send(json.dumps({"code": code}).encode())
        if asked:
            line, _ = listener.accept()
            message, descriptors, _, _ = socket.recv_fds(line, MESSAGE_BYTES, 3)
            pid = forker.fork()
            if pid == 0:
                _become(json.loads(message), descriptors, line, (listener, *lines.values()))
            for opened in descriptors:
                os.close(opened)
            lines[pid] = line
            with contextlib.suppress(OSError):
                line.send(json.dumps({"pid": pid}).encode())


def _become(
    task: dict[str, Any], descriptors: list[int], line: socket.socket, others: tuple[socket.socket, ...]
) -> None:
    """Run a task in this process, which has just been forked, and end."""
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for other in others:
            other.close()
        os.setsid()
        for number, opened in enumerate(descriptors):
            os.dup2(opened, number)
            os.close(opened)
        os.chdir(task["folder"])
        os.environ.clear()
        os.environ.update(task["environ"])
        threading.Thread(target=_die_with, args=(line,), daemon=True).start()
        _run(task["arguments"])
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _run(arguments: list[str]) -> None:
    paths = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [*paths, *(entry for entry in sys.path if entry not in paths)]
    words = [word for word in arguments if word != "-P"]
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)


def _die_with(line: socket.socket) -> None:
    """Wait until the stand-in is gone, then end this process and what it has started."""
    with contextlib.suppress(OSError):
        line.recv(1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2])
