"""Showing a run while it goes on: a live table on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TextIO

from tools.launcher.documents.printable import printable
from tools.launcher.observe.progress import Progress
from tools.launcher.observe.render_text import progress_line
from tools.launcher.observe.sightings import Sighting, sighting_line, sightings, watch_table, watch_text
from tools.launcher.observe.status import RunStatus
from tools.launcher.store.records import utc_now

if TYPE_CHECKING:
    from rich.console import RenderableType

REFRESHES_PER_SECOND = 2.0
"""How often the times of a live table go on between two looks."""

Display = Callable[[TextIO, Iterable[Progress]], Progress]
"""Shows every look on a stream and returns the last. Raises ValueError if there was none."""


def display_for(stream: TextIO) -> Display:
    """Return what suits a stream: the live table if it is a terminal."""
    return in_live_table if stream.isatty() else in_lines


def show_once(stream: TextIO, status: RunStatus, *, on_terminal: bool) -> None:
    """Show one look: the table, or its rows as lines."""
    (sighting,) = sightings([Progress(status=status, end=None, message="")])
    if not on_terminal:
        stream.write(watch_text(sighting, time.monotonic(), utc_now()))
        return
    from rich.console import Console

    Console(file=stream, highlight=False).print(watch_table(sighting, time.monotonic(), utc_now()))


def in_lines(stream: TextIO, looks: Iterable[Progress]) -> Progress:
    """Show a line whenever something changed that is worth one; see `Display`.

    Where the scheduler's reason to wait is too long for it, another line has all its words, once.
    """
    last: Sighting | None = None
    shown = waits = ""
    for last in sightings(looks):
        line = progress_line(last.status)
        if line == shown:
            continue
        stream.write(sighting_line(last, time.monotonic()) + "\n")
        reason = " ".join(last.status.pending_reason.split())
        if reason not in line and reason != waits:
            stream.write(f"    Iris says: {printable(reason)}\n")
            waits = reason
        stream.flush()
        shown = line
    return _required(last)


def in_live_table(stream: TextIO, looks: Iterable[Progress]) -> Progress:
    """Show a table that changes in place, and leave its last state there; see `Display`."""
    from rich.console import Console
    from rich.constrain import Constrain
    from rich.live import Live

    last: Sighting | None = None

    def table() -> "RenderableType":
        if last is None:
            return "waiting for the coordinator"
        # A terminal writes ^C behind the last line: there has to be room for it, or the table moves down a line.
        return Constrain(watch_table(last, time.monotonic(), utc_now()), max(console.width - len("^C"), 1))

    console = Console(file=stream, highlight=False)
    with Live(console=console, get_renderable=table, refresh_per_second=REFRESHES_PER_SECOND) as live:
        for sighting in sightings(looks):
            last = sighting
            live.refresh()
    return _required(last)


def _required(last: Sighting | None) -> Progress:
    if last is None:
        raise ValueError("following a run gave no look at it")
    return last.progress
