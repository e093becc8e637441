"""A real worker process for tests, which speak Bazel's side of the protocol."""

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PATIENCE = 60
"""Seconds after which an answer will never come: the test fails instead of hanging."""


class WorkerProcess:
    """A worker that runs until the `with` ends."""

    def __init__(
        self, command: Sequence[str], log: Path, folder: Path | None = None, temporary: Path | None = None
    ) -> None:
        """Start it.

        Args:
            command: arguments of the interpreter.
            log: takes its standard error.
            folder: its working directory; that of this process if there is none.
            temporary: where it makes temporary files, absolute; the system's place if there is none.
        """
        environment = {"PATH": os.defpath, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
        if temporary is not None:
            environment["TMPDIR"] = str(temporary)
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env=environment,
            )
        self.pid = self._process.pid
        self.log = log
        self._received = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def send_bytes(self, data: bytes) -> None:
        """Write to the worker's standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def send(self, **message: Any) -> None:
        """Send a work request with these fields."""
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def answer(self) -> dict[str, Any]:
        """Wait for the next response."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while b"\n" not in self._received:
                assert selector.select(PATIENCE), f"no answer; log: {self.log.read_text()}"
                received = os.read(descriptor, 1 << 20)
                assert received, f"the worker ended; log: {self.log.read_text()}"
                self._received += received
        line, _, rest = bytes(self._received).partition(b"\n")
        self._received = bytearray(rest)
        response: dict[str, Any] = json.loads(line)
        return response

    def call(self, *arguments: str, **fields: Any) -> dict[str, Any]:
        """Send one request and wait for its response."""
        self.send(requestId=1, arguments=list(arguments), **fields)
        return self.answer()

    def close_input(self) -> None:
        """Say that no more requests come."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def signal(self, number: int) -> None:
        """Send a signal to the worker."""
        self._process.send_signal(number)

    def ended(self) -> int:
        """Wait for the worker's end and return its exit status; nothing may be left unread."""
        assert self._process.stdout is not None
        rest = self._process.stdout.read()
        assert bytes(self._received) + rest == b""
        return self._process.wait(PATIENCE)


class Alive:
    """Whether processes of an action live: they hold a pipe open, whose end is seen when all are gone."""

    def __init__(self, folder: Path) -> None:
        self.pipe = folder / "alive"
        os.mkfifo(self.pipe)

    @property
    def code(self) -> str:
        """What an action does to be seen."""
        return f"alive = __import__('os').open({str(self.pipe)!r}, {os.O_WRONLY})\n"

    def seen(self) -> int:
        """Wait until the action is at work and return the descriptor that `gone` asks for."""
        return os.open(self.pipe, os.O_RDONLY)

    @staticmethod
    def gone(descriptor: int) -> bool:
        """Whether all have ended; waits for it."""
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            ready = bool(selector.select(PATIENCE))
        nothing = ready and os.read(descriptor, 1) == b""
        os.close(descriptor)
        return nothing
