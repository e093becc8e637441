"""Showing a run while it goes on: one changing line on a terminal, plain lines elsewhere."""

from collections.abc import Iterable
from typing import TextIO

from tools.launcher.observe.progress import Progress
from tools.launcher.observe.render_text import progress_line


def follow_on(stream: TextIO, looks: Iterable[Progress]) -> Progress:
    """Show every look on `stream` and return the last.

    Raises:
        ValueError: there was no look at all.
    """
    return _on_terminal(stream, looks) if stream.isatty() else _in_lines(stream, looks)


def _in_lines(stream: TextIO, looks: Iterable[Progress]) -> Progress:
    last: Progress | None = None
    shown = ""
    for last in looks:
        line = progress_line(last.status)
        if line != shown:
            stream.write(line + "\n")
            stream.flush()
            shown = line
    return _required(last)


def _on_terminal(stream: TextIO, looks: Iterable[Progress]) -> Progress:
    from rich.console import Console

    console = Console(file=stream, highlight=False)
    last: Progress | None = None
    with console.status("waiting for the coordinator") as display:
        for last in looks:
            display.update(progress_line(last.status))
    found = _required(last)
    console.print(progress_line(found.status), markup=False)
    return found


def _required(last: Progress | None) -> Progress:
    if last is None:
        raise ValueError("following a run gave no look at it")
    return last
