"""A process that has imported everything and forks: a fork starts at once where a fresh interpreter imports for a second."""

import gc
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

MESSAGE_BYTES = 1 << 20
# Libraries that start threads when they are imported.
_NO_THREADS = {"JE_ARROW_MALLOC_CONF": "background_thread:false", "OPENBLAS_NUM_THREADS": "1"}


def start(module: str, descriptor: int, *arguments: str) -> subprocess.Popen[bytes]:
    """Start `python -m MODULE DESCRIPTOR ARGUMENTS`, which inherits the descriptor, to be a `Forker`."""
    return subprocess.Popen(
        [sys.executable, "-m", module, str(descriptor), *arguments],
        pass_fds=[descriptor],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), **_NO_THREADS},
    )


class Forker:
    """This process, once it has imported what its forks need. It has one thread.

    Attributes:
        running: pids of what was forked and has not ended.
    """

    def __init__(self, modules: Iterable[str]) -> None:
        """Import `modules`; AssertionError if one of them starts a thread."""
        for name in modules:
            importlib.import_module(name)
        # A fork copies the locks of other threads, and nobody would ever open them.
        assert len(list(Path("/proc/self/task").iterdir())) == 1, (
            "something that was imported has started a thread"
        )
        gc.collect()
        gc.freeze()
        self.running: set[int] = set()
        self._wake, self._woken = socket.socketpair()
        for end in (self._wake, self._woken):
            end.setblocking(False)
        signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def wait(self, requests: socket.socket) -> tuple[bool, dict[int, int]]:
        """Wait for a request or the end of a fork.

        Returns:
            Whether `requests` can be read; pid -> exit status, negative for a signal, of forks that have ended.
        """
        ready, _, _ = select.select([requests, self._wake], [], [])
        if self._wake in ready:
            self._wake.recv(4096)
        ended = {}
        for pid in self.running:
            done, raw = os.waitpid(pid, os.WNOHANG)
            if done:
                ended[pid] = os.waitstatus_to_exitcode(raw)
        self.running -= ended.keys()
        return requests in ready, ended

    def fork(self) -> int:
        """Fork, and return as `os.fork`. The child hears of no signals and children of this process any more."""
        pid = os.fork()
        if pid:
            self.running.add(pid)
        else:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._wake.close()
            self._woken.close()
        return pid
