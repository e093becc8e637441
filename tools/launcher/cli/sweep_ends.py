"""How the points of a sweep ended, as a table and as one exit status."""

import sys
from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from tools.launcher.cli import exit_codes
from tools.launcher.cli.sweep_table import aligned


class Ended(NamedTuple):
    """How a point ended, for this call.

    Attributes:
        word: its state.
        run: the run, as commands take it; "" if there is none.
        message: what happened and what to do, "" if the word says it.
        status: the exit status that `:launch` of the point alone would have.
    """

    word: str
    run: str
    message: str
    status: int


def show_ends(ends: Mapping[str, Ended]) -> int:
    """Show how each point ended, and return the exit status.

    Args:
        ends: point -> how it ended, in the order of the sweep.
    """
    rows = [("point", "state", "run"), *((name, ended.word, ended.run) for name, ended in ends.items())]
    sys.stdout.write("".join(f"{line}\n" for line in aligned(rows)))
    counts = Counter(ended.word for ended in ends.values())
    sys.stdout.write(f"{', '.join(f'{count} {word}' for word, count in counts.items())}\n")
    sys.stdout.flush()
    for name, ended in ends.items():
        if ended.message:
            sys.stderr.write(f"{name}: {ended.word}: {ended.message}\n")
    return sweep_status({ended.status for ended in ends.values()})


def sweep_status(seen: Collection[int]) -> int:
    """Return the exit status of a sweep whose points alone would have these.

    What is not known comes first: another call finds it out. Refused is a sweep of which every point was.
    """
    if exit_codes.UNKNOWN in seen:
        return exit_codes.UNKNOWN
    if set(seen) <= {exit_codes.OK}:
        return exit_codes.OK
    return exit_codes.REFUSED if set(seen) == {exit_codes.REFUSED} else exit_codes.FAILED
