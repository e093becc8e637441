"""The process of one action: what a worker's fork does until it ends."""

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from tools.launcher.worker.protocol import WorkRequest

Action = Callable[[WorkRequest], int]
"""Runs the action of a request, whose folder is the working directory, and returns its exit status."""

_MOST_DESCRIPTORS = 1024  # Of the parent; it has a handful and one for each action.
_PR_SET_PDEATHSIG = 1  # linux/prctl.h

# Looked up before a fork: a child should not search for libraries.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def run_in_child(action: Action, request: WorkRequest, print_to: int, parent: int) -> NoReturn:
    """Run the action as a process that was just forked, and end that process.

    Args:
        action: what to run.
        request: what it is called with.
        print_to: descriptor that takes what the action prints.
        parent: process id of the worker.
    """
    status = 1
    try:
        _leave_the_worker(print_to, parent)
        if request.folder:
            os.chdir(request.folder)
        status = _run(action, request)
        sys.stdout.flush()
    except BaseException:
        status = 1
        traceback.print_exc()
    finally:
        # The mask is the kernel's. A number that os._exit cannot take would send this process back, as a
        # second worker.
        os._exit(status & 0xFF)


def _run(action: Action, request: WorkRequest) -> int:
    """The exit status that Python would give a process of this action; what it prints then is printed."""
    try:
        return action(request)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        sys.stderr.write(f"{ended.code}\n")
    except BaseException:
        traceback.print_exc()
    return 1


def _leave_the_worker(print_to: int, parent: int) -> None:
    """Give up what belongs to the worker: its signals, its group, its descriptors."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setpgid(0, 0)
    end_with_parent(parent)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(print_to, 1)
    os.dup2(print_to, 2)
    os.closerange(3, _MOST_DESCRIPTORS)


def end_with_parent(parent: int) -> None:
    """Let the kernel end this process, which was just forked, with the one that forked it.

    Else a worker that is killed leaves it behind. Other systems than Linux have no such thing: there it runs to its
    end, which nobody reads.

    Args:
        parent: process id of the other.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
