"""A comparison for a terminal."""

from collections.abc import Iterator
from typing import NamedTuple

from tools.launcher.compare.consequences import Comparison
from tools.launcher.compare.side import Side
from tools.launcher.compare.verdicts import Verdict
from tools.launcher.compare.wording import MARKS, change_lines
from tools.launcher.documents.printable import printable
from tools.launcher.preflight.wording import counted

STYLES: dict[Verdict, str] = {
    "same": "dim",
    "changed": "yellow",
    "safe": "green",
    "fresh": "yellow",
    "refused": "red",
    "valid": "green",
    "not_valid": "red",
    "not_known": "magenta",
}
"""Verdict -> how a terminal shows its line. The words say it as well."""

_FIELD_STYLES = {"added": "green", "removed": "red", "changed": ""}


class Line(NamedTuple):
    """One line and its style, as rich calls it."""

    text: str
    style: str = ""


def text_lines(comparison: Comparison) -> Iterator[Line]:
    """Yield both sides, the consequences, then the fields."""
    yield Line(f"A: {side_words(comparison.a)}")
    yield Line(f"B: {side_words(comparison.b)}")
    if comparison.equal:
        yield Line("equal: the same launch document", "green")
        return
    yield Line("")
    yield from consequence_lines(comparison)
    yield Line("")
    deciding = len(comparison.identity.fields)
    yield Line(f"{counted(len(comparison.changes), 'field')}, {deciding} of the recipe (*):")
    identity = {change.path for change in comparison.identity.fields}
    for change in comparison.changes:
        star = "*" if change.path in identity else " "
        for path, values in change_lines(change):
            yield Line(
                f"  {MARKS[change.kind]}{star} {printable(path)}: {values}", _FIELD_STYLES[change.kind]
            )


def consequence_lines(comparison: Comparison) -> Iterator[Line]:
    """Yield one line for each aspect that changed, and for those that are always told."""
    shown = [item for item in comparison.consequences if item.shown]
    width = max(len(item.aspect) for item in shown)
    for item in shown:
        yield Line(f"{item.aspect:<{width}}  {printable(item.sentence)}", STYLES[item.verdict])


def side_words(side: Side) -> str:
    """Return what a side is: as it was named, its run, and where it was found."""
    address = f", {side.address[0]}@{side.address[1]}" if side.address is not None else ""
    return printable(f"{side.name}{address} ({side.origin})")
