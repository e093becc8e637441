"""Saying what a command waits for, once it waits longer than a person expects."""

import contextlib
import sys
import threading
from collections.abc import Iterator

QUIET_SECONDS = 2.0


@contextlib.contextmanager
def said_if_slow(what: str, seconds: float = QUIET_SECONDS) -> Iterator[None]:
    """Print `what ...` on stderr if the block takes longer than `seconds`."""
    timer = threading.Timer(seconds, _say, (what,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say(what: str) -> None:
    # The reader may be gone by now, and this thread has nobody to tell.
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{what} ...\n")
        sys.stderr.flush()
