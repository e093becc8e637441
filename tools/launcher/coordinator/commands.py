"""Running one program to its end, listening to it meanwhile."""

import collections
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Final

from pydantic import BaseModel, ConfigDict

from tools.launcher.coordinator.scrub import NOTHING_TO_HIDE, Scrubber

TAIL_LINES: Final = 40
MAX_STDOUT_BYTES: Final = 1 << 20
_TICK_SECONDS: Final = 0.5
_GRACE_SECONDS: Final = 5.0


class CommandProblem(Exception):
    """A program could not be started, or wrote without end."""


class Completed(BaseModel):
    """How a program ended; `stderr_tail` are its last TAIL_LINES lines."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    exit_code: int
    stdout: str
    stderr_tail: str


def run_command(
    argv: Sequence[str],
    *,
    tick: Callable[[], None],
    env: Mapping[str, str] | None = None,
    scrubber: Scrubber = NOTHING_TO_HIDE,
) -> Completed:
    """Run a program; its standard error goes through to ours.

    Args:
        argv: the command.
        tick: called about twice a second while it runs. What it raises ends the program (SIGTERM).
        env: its environment, None for ours.
        scrubber: cleans what it writes before anybody sees it.

    Raises:
        CommandProblem: no such program, or more than MAX_STDOUT_BYTES on standard output.
    """
    try:
        process = subprocess.Popen(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as error:
        raise CommandProblem(
            f"{argv[0]} cannot be started: {error.strerror}. Install it where jobs run"
        ) from None
    assert process.stdout is not None and process.stderr is not None
    tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
    output: list[bytes] = []
    readers = [
        threading.Thread(target=_collect, args=(process.stdout, output), daemon=True),
        threading.Thread(target=_pass_through, args=(process.stderr, tail, scrubber), daemon=True),
    ]
    for reader in readers:
        reader.start()
    try:
        while True:
            tick()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=_TICK_SECONDS)
                break
    finally:
        _end(process)
        for reader in readers:
            reader.join(timeout=_GRACE_SECONDS)
    data = b"".join(output)
    if len(data) > MAX_STDOUT_BYTES:
        raise CommandProblem(f"{argv[0]} wrote more than {MAX_STDOUT_BYTES} bytes on standard output")
    return Completed(
        exit_code=process.returncode,
        stdout=scrubber.clean(data.decode("utf-8", "replace")),
        stderr_tail="\n".join(tail),
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _collect(stream: IO[bytes], into: list[bytes]) -> None:
    size = 0
    while data := os.read(stream.fileno(), 1 << 16):
        # Past the limit it is only drained, so that the program does not block on a full pipe.
        if size <= MAX_STDOUT_BYTES:
            into.append(data)
        size += len(data)


def _pass_through(stream: IO[bytes], tail: collections.deque[str], scrubber: Scrubber) -> None:
    for line in stream:
        text = scrubber.clean(line.decode("utf-8", "replace").rstrip("\n"))
        tail.append(text)
        print(text, file=sys.stderr, flush=True)
