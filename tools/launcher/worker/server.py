"""A persistent worker which runs each action in a child that it forks.

The parent has imported everything and stays as it was: what an action does to modules, `sys.path`, the
environment, the working directory or warnings ends with its child. So does an action that is cancelled.
Actions run side by side on all cores, since no child shares another's interpreter.

The parent has one thread, and so may fork.
"""

import contextlib
import ctypes
import dataclasses
import gc
import os
import selectors
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import BinaryIO

from tools.launcher.worker.protocol import WorkRequest, cancelled, finished, parse_request

MOST_OUTPUT = 1 << 20
"""Bytes of one action's output that are passed on; Bazel keeps them in memory."""

_CHUNK = 1 << 16
_MOST_DESCRIPTORS = 1024  # Of the parent; it has a handful and one for each action.
_PR_SET_PDEATHSIG = 1  # linux/prctl.h

Action = Callable[[Sequence[str]], int]
"""Runs the action of these arguments in the working directory and returns its exit status."""


@dataclasses.dataclass
class _Running:
    """A child at work."""

    request: WorkRequest
    process: int
    output: int
    """Descriptor of what it prints."""
    output_open: bool = True
    printed: bytearray = dataclasses.field(default_factory=bytearray)
    cut: bool = False
    cancelled: bool = False


def serve(action: Action, prepare: Callable[[WorkRequest], None]) -> None:
    """Answer Bazel's requests on standard input until it closes it.

    Args:
        action: runs one action; called in a child.
        prepare: called in the parent before each child is made, for what is read once and used by many.
            It must not raise, and must not run what an action brings with it.

    Raises:
        ProtocolError: Bazel sent what is no request.
    """
    # Standard output is the protocol's. What anything else prints goes to standard error, the worker's log.
    responses = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _Server(action, prepare, responses).run()


class _Server:
    def __init__(self, action: Action, prepare: Callable[[WorkRequest], None], responses: BinaryIO) -> None:
        self._action, self._prepare, self._responses = action, prepare, responses
        self._running: dict[int, _Running] = {}
        self._selector = selectors.DefaultSelector()
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def run(self) -> None:
        ended, wake = os.pipe()
        for descriptor in (ended, wake):
            os.set_blocking(descriptor, False)
        # The handler has nothing to do: that a child ended is read from the pipe.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._selector.register(0, selectors.EVENT_READ)
        self._selector.register(ended, selectors.EVENT_READ)
        unread = b""
        while True:
            for key, _ in self._selector.select():
                if key.fd == 0:
                    received = os.read(0, _CHUNK)
                    if not received:
                        self._abandon()
                        return
                    *lines, unread = (unread + received).split(b"\n")
                    for line in filter(None, lines):
                        self._take(parse_request(line))
                elif key.fd == ended:
                    os.read(ended, _CHUNK)
                    self._answer_ended()
                elif isinstance(key.data, _Running):
                    self._read(key.data)

    def _take(self, request: WorkRequest) -> None:
        if not request.cancel:
            self._prepare(request)
            self._start(request)
        elif running := self._running.get(request.id):  # Else it was answered while this was on its way.
            running.cancelled = True
            _kill(running)

    def _start(self, request: WorkRequest) -> None:
        output, print_to = os.pipe()
        os.set_blocking(output, False)
        sys.stdout.flush()
        sys.stderr.flush()
        # What is here now belongs to all children: no collector has to look at it, and so copy it, in each.
        gc.freeze()
        process = os.fork()
        if process == 0:
            _run_in_child(self._action, request, print_to, self._libc)
        # Here and in the child: whoever is first, it leads a group before anyone wants to kill that.
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(process, process)
        os.close(print_to)
        running = _Running(request, process, output)
        self._running[request.id] = running
        self._selector.register(output, selectors.EVENT_READ, running)

    def _read(self, running: _Running) -> None:
        """Take what a child has printed until now; what is beyond the limit is read and dropped."""
        while running.output_open:
            try:
                printed = os.read(running.output, _CHUNK)
            except BlockingIOError:
                return
            if not printed:
                self._close_output(running)  # That the child has ended is told by the signal.
                return
            room = MOST_OUTPUT - len(running.printed)
            running.printed += printed[:room]
            running.cut = running.cut or len(printed) > room

    def _answer_ended(self) -> None:
        for running in list(self._running.values()):
            process, status = os.waitpid(running.process, os.WNOHANG)
            if process == 0:
                continue
            _kill(running)  # What it may have left behind.
            self._read(running)
            self._close_output(running)
            del self._running[running.request.id]
            self._responses.write(_response(running, status))
            self._responses.flush()

    def _close_output(self, running: _Running) -> None:
        if running.output_open:
            running.output_open = False
            self._selector.unregister(running.output)
            os.close(running.output)

    def _abandon(self) -> None:
        """Nobody is left to answer."""
        for running in self._running.values():
            _kill(running)
            os.waitpid(running.process, 0)


def _response(running: _Running, status: int) -> bytes:
    if running.cancelled:
        return cancelled(running.request.id)
    output = running.printed.decode("utf-8", errors="replace")
    if running.cut:
        output += f"\n(more than {MOST_OUTPUT} bytes; the rest is dropped)\n"
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        output += f"the action was ended by {signal.Signals(-code).name}\n"
        code = 128 - code
    return finished(running.request.id, status=code, output=output)


def _kill(running: _Running) -> None:
    """Kill a child and all that it started and kept in its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.process, signal.SIGKILL)


def _run_in_child(action: Action, request: WorkRequest, print_to: int, libc: ctypes.CDLL | None) -> None:
    """Run the action and end this process."""
    status = 1
    try:
        os.setpgid(0, 0)
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # Else a killed worker leaves it behind.
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(print_to, 1)
        os.dup2(print_to, 2)
        os.closerange(3, _MOST_DESCRIPTORS)
        if request.folder:
            os.chdir(request.folder)
        status = action(request.arguments)
        sys.stdout.flush()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
