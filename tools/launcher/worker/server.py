"""A persistent worker which runs each action in a child that it forks.

The parent has imported everything and stays as it was: what an action does to modules, `sys.path`, the
environment, the working directory or warnings ends with its child. So does an action that is cancelled.
Actions run side by side on all cores, since no child shares another's interpreter.

The parent has one thread, and so may fork.
"""

import contextlib
import dataclasses
import gc
import os
import selectors
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from tools.launcher.worker.child import Action, run_in_child
from tools.launcher.worker.protocol import WorkRequest, cancelled, finished, parse_request

MOST_OUTPUT = 1 << 20
"""Bytes of one action's output that are passed on; Bazel keeps them in memory."""

_CHUNK = 1 << 16
_THREADS = Path("/proc/self/task")  # Linux


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


Hook = Callable[[WorkRequest], None]
"""What the parent does for one request. It must not raise, and must not run what an action brings with it."""


def serve(action: Action, prepare: Hook, finish: Hook) -> None:
    """Answer Bazel's requests on standard input until it closes it, or until SIGTERM.

    No child outlives it.

    Args:
        action: runs one action; called in a child.
        prepare: called in the parent before each child is made, for what is read once and used by many.
        finish: called in the parent after each child has ended, however it did, and before it is answered.
            Not called for children that end with the worker.

    Raises:
        ProtocolError: Bazel sent what is no request.
        SystemExit: the worker got SIGTERM.
        RuntimeError: the process has other threads, whose locks a child would never see opened.
    """
    if _THREADS.is_dir() and (threads := len(list(_THREADS.iterdir()))) > 1:
        raise RuntimeError(f"a worker that forks has one thread, this one has {threads}")
    # Standard output is the protocol's. What anything else prints goes to standard error, the worker's log.
    responses = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = _Server(action, prepare, finish, responses)
    try:
        server.run()
    except BrokenPipeError:
        return  # Bazel has gone without closing standard input first.
    finally:
        server.end_all()


class _Server:
    def __init__(self, action: Action, prepare: Hook, finish: Hook, responses: BinaryIO) -> None:
        self._action, self._prepare, self._finish = action, prepare, finish
        self._responses = responses
        self._process = os.getpid()
        self._running: dict[int, _Running] = {}
        self._selector = selectors.DefaultSelector()
        self._unread = bytearray()

    def run(self) -> None:
        signals, wake = os.pipe()
        for descriptor in (signals, wake):
            os.set_blocking(descriptor, False)
        # The handlers have nothing to do: which signals came is read from the pipe.
        signal.signal(signal.SIGCHLD, _noted)
        signal.signal(signal.SIGTERM, _noted)
        # Ctrl-C is Bazel's to pass on, as a cancellation.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._selector.register(0, selectors.EVENT_READ)
        self._selector.register(signals, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fd == 0:
                    received = os.read(0, _CHUNK)
                    if not received:
                        return
                    self._receive(received)
                elif key.fd == signals:
                    if signal.SIGTERM in os.read(signals, _CHUNK):
                        raise SystemExit(128 + signal.SIGTERM)
                    self._answer_ended()
                elif isinstance(key.data, _Running):
                    _read(key.data, self._selector)

    def end_all(self) -> None:
        """Kill the children: nobody is left to answer."""
        for running in self._running.values():
            _kill(running)
            os.waitpid(running.process, 0)
        self._running.clear()

    def _receive(self, received: bytes) -> None:
        self._unread += received
        if b"\n" not in received:
            return  # Only new bytes are searched: the time for a long line is linear.
        *lines, unread = bytes(self._unread).split(b"\n")
        self._unread = bytearray(unread)
        for line in filter(None, lines):
            self._take(parse_request(line))

    def _take(self, request: WorkRequest) -> None:
        running = self._running.get(request.id)
        if request.cancel:
            if running is not None:  # Else it was answered while this was on its way.
                running.cancelled = True
                _kill(running)
            return
        if running is not None:
            # Bazel was interrupted, has forgotten it and counts from 1 again. An answer would be taken for
            # the new one's.
            _kill(running)
            os.waitpid(running.process, 0)
            self._forget(running)
        self._prepare(request)
        self._start(request)

    def _start(self, request: WorkRequest) -> None:
        output, print_to = os.pipe()
        os.set_blocking(output, False)
        sys.stdout.flush()
        sys.stderr.flush()
        # What is here now belongs to all children: no collector has to look at it, and so copy it, in each.
        # Collected first, since what is frozen never is; it looks at what came since the last request.
        gc.collect()
        gc.freeze()
        process = os.fork()
        if process == 0:
            run_in_child(self._action, request, print_to, self._process)
        # Here and in the child: whoever is first, it leads a group before anyone wants to kill that.
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(process, process)
        os.close(print_to)
        running = _Running(request, process, output)
        self._running[request.id] = running
        self._selector.register(output, selectors.EVENT_READ, running)

    def _answer_ended(self) -> None:
        for running in list(self._running.values()):
            process, status = os.waitpid(running.process, os.WNOHANG)
            if process == 0:
                continue
            # What it left behind. The kernel hands numbers out in turn: this one is nobody else's yet.
            _kill_group(running)
            # What is still in the pipe, which is less than this; a process outside the group may go on.
            for _ in range(MOST_OUTPUT // _CHUNK):
                _read(running, self._selector)
            self._forget(running)
            self._responses.write(_response(running, status))
            self._responses.flush()

    def _forget(self, running: _Running) -> None:
        _close_output(running, self._selector)
        del self._running[running.request.id]
        self._finish(running.request)


def _noted(_number: int, _frame: object) -> None: ...


def _read(running: _Running, selector: selectors.BaseSelector) -> None:
    """Take one piece of what a child has printed; what is beyond the limit is dropped.

    One only: a child that never stops printing must not keep others, or its own cancellation, waiting.
    """
    if not running.output_open:
        return
    try:
        printed = os.read(running.output, _CHUNK)
    except BlockingIOError:
        return
    if not printed:
        _close_output(running, selector)  # That the child has ended is told by the signal.
        return
    room = MOST_OUTPUT - len(running.printed)
    running.printed += printed[:room]
    running.cut = running.cut or len(printed) > room


def _close_output(running: _Running, selector: selectors.BaseSelector) -> None:
    if running.output_open:
        running.output_open = False
        selector.unregister(running.output)
        os.close(running.output)


def _response(running: _Running, status: int) -> bytes:
    if running.cancelled:
        return cancelled(running.request.id)
    output = running.printed.decode("utf-8", errors="replace")
    if running.cut:
        output += f"\n(more than {MOST_OUTPUT} bytes were printed; the rest is dropped)\n"
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        output += f"the action was ended by {name}\n"
        code = 128 - code
    return finished(running.request.id, status=code, output=output)


def _kill(running: _Running) -> None:
    """Kill a child which was not waited for yet, also one that left its group, and all in that group."""
    os.kill(running.process, signal.SIGKILL)
    _kill_group(running)


def _kill_group(running: _Running) -> None:
    # PermissionError: macOS says so of a group of which only the ended leader is left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(running.process, signal.SIGKILL)
