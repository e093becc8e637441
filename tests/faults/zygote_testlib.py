"""Launchers by the dozen: a process that has imported everything forks one for each command line.

A launcher spends most of its second of start-up on imports. The zygote does them once; what it forks is a
process of its own, with its own pid, environment, output files and exit status, and dies of SIGKILL like any
other. The zygote has no thread, so that a fork copies no lock that somebody holds.
"""

import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.faults.forking_testlib import MESSAGE_BYTES, Forker, start

_PRELOADED = (
    "google.cloud.storage",
    "iris.rpc.compression",
    "iris.rpc.controller_connect",
    "tools.launcher.cli.commands",
    "tools.launcher.cli.launch_command",
    "tools.launcher.iris.launch_message",
)


class Call:
    """One launcher.

    Attributes:
        pid: its process id.
        code: its exit status, negative for a signal; None while it runs.
    """

    def __init__(self, pid: int, folder: Path) -> None:
        self.pid = pid
        self.code: int | None = None
        self._folder, self._ended = folder, threading.Event()

    def ended(self, code: int) -> None:
        """Say how it ended."""
        self.code = code
        self._ended.set()

    def kill(self) -> None:
        """End it with SIGKILL and wait until it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait(10.0)

    def wait(self, seconds: float) -> int:
        """Wait for its end and return the exit status; AssertionError if it does not come."""
        assert self._ended.wait(seconds), f"a launcher did not end within {seconds} s:\n{self.said()}"
        assert self.code is not None
        return self.code

    def said(self) -> str:
        """How what it has printed ends: standard output without the plan, then standard error."""
        return self.out[-600:] + self.err[-1500:]

    @property
    def out(self) -> str:
        """Its standard output so far."""
        return (self._folder / "stdout").read_text(errors="replace")

    @property
    def err(self) -> str:
        """Its standard error so far."""
        return (self._folder / "stderr").read_text(errors="replace")


class Zygote:
    """The test's side. Use as a context manager; its end ends every launcher."""

    def __init__(self, outputs: Path) -> None:
        """Start it.

        Args:
            outputs: folder for what launchers print.
        """
        self._outputs = outputs
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = start(__name__, theirs.fileno())
        theirs.close()
        self._lock = threading.Lock()
        self._calls: dict[int, Call] = {}
        self._started: dict[int, Call] = {}
        self._news = threading.Condition(self._lock)
        self._count = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> "Zygote":
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.shutdown(socket.SHUT_RDWR)
        self._process.wait(timeout=10)

    def launcher(self, arguments: Sequence[str], environ: Mapping[str, str]) -> Call:
        """Start `launcher ARGUMENTS` with exactly this environment."""
        with self._news:
            self._count += 1
            number = self._count
            folder = self._outputs / f"{number:04d}"
            folder.mkdir(parents=True)
            request = {
                "number": number,
                "arguments": list(arguments),
                "environ": dict(environ),
                "folder": str(folder),
            }
            self._ours.send(json.dumps(request).encode())
            assert self._news.wait_for(lambda: number in self._started, timeout=30), "the zygote is silent"
            return self._started.pop(number)

    def _read(self) -> None:
        while message := self._ours.recv(MESSAGE_BYTES):
            answer = json.loads(message)
            with self._news:
                if "code" in answer:
                    self._calls.pop(answer["pid"]).ended(answer["code"])
                else:
                    call = Call(answer["pid"], self._outputs / f"{answer['number']:04d}")
                    self._calls[call.pid] = self._started[answer["number"]] = call
                    self._news.notify_all()


def serve(descriptor: int) -> None:
    """Fork launchers until the other side hangs up."""
    forker = Forker(_PRELOADED)
    requests = socket.socket(fileno=descriptor)
    while True:
        asked, ended = forker.wait(requests)
        for pid, code in ended.items():
            requests.send(json.dumps({"pid": pid, "code": code}).encode())
        if asked:
            message = requests.recv(MESSAGE_BYTES)
            if not message:
                break
            _fork(json.loads(message), requests, forker)
    for pid in forker.running:
        os.kill(pid, signal.SIGKILL)


def _fork(request: dict[str, Any], requests: socket.socket, forker: Forker) -> None:
    pid = forker.fork()
    if pid:
        requests.send(json.dumps({"number": request["number"], "pid": pid}).encode())
        return
    status = 70
    try:
        requests.close()
        status = _launcher(request["arguments"], request["environ"], Path(request["folder"]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _launcher(arguments: list[str], environ: dict[str, str], folder: Path) -> int:
    for descriptor, name, flags in (
        (0, Path(os.devnull), os.O_RDONLY),
        (1, folder / "stdout", os.O_WRONLY | os.O_CREAT),
        (2, folder / "stderr", os.O_WRONLY | os.O_CREAT),
    ):
        opened = os.open(name, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = ["launcher", *arguments]
    from tools.launcher.cli.launcher_main import main
    from tools.launcher.cli.process_boundary import run_as_process

    try:
        return run_as_process(main)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1


if __name__ == "__main__":
    serve(int(sys.argv[1]))
