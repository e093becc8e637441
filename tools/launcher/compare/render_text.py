"""A comparison for a terminal."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tools.launcher.compare.consequences import Comparison
from tools.launcher.compare.fields import ChangeKind, FieldChange
from tools.launcher.compare.side import Side
from tools.launcher.compare.verdicts import Verdict
from tools.launcher.compare.wording import MARKS, brief, change_lines, change_text
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

_INPUTS = "inputs"

_FIELD_STYLES: dict[ChangeKind, str] = {"added": "green", "removed": "red", "changed": ""}


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
    yield from (line.shown() for line in field_lines(comparison) if line.of_document)
    if comparison.beside:
        yield Line(f"{counted(len(comparison.beside), 'field')} of the graph alone:")
        yield from (line.shown() for line in field_lines(comparison) if not line.of_document)


class FieldLine(NamedTuple):
    """One field that differs; a section that came or went has one for each leaf, and fields that only say the
    run's name and version have one together.

    Attributes:
        kind: of the change.
        path, values: each on one line.
        recipe: whether it decides what is learned.
        of_document: whether the launch document has it; else the graph.
    """

    kind: ChangeKind
    path: str
    values: str
    recipe: bool
    of_document: bool

    @property
    def mark(self) -> str:
        """The kind as one character."""
        return MARKS[self.kind]

    def shown(self) -> Line:
        """Return it as a line."""
        star = "*" if self.recipe else " "
        return Line(f"  {self.mark}{star} {printable(self.path)}: {self.values}", _FIELD_STYLES[self.kind])


def field_lines(comparison: Comparison) -> Iterator[FieldLine]:
    """Yield every field that differs: of the documents first those of the recipe, last what only says the run."""
    deciding = {change.keys for change in comparison.identity.fields}
    others = [change for change in comparison.changes if change.keys not in deciding]
    addressed = _addressed(comparison, others)
    folded = {change.keys for change in addressed}
    for change in (*comparison.identity.fields, *(each for each in others if each.keys not in folded)):
        for path, values in change_lines(change):
            yield FieldLine(change.kind, path, values, change.keys in deciding, of_document=True)
    if addressed:
        path, values = f"{len(addressed)} addresses and names", change_text(*_run_words(comparison))
        yield FieldLine("changed", path, f"{values} (--format=json has each)", recipe=False, of_document=True)
    for change in comparison.beside:
        for path, values in change_lines(change):
            yield FieldLine(change.kind, f"graph.{path}", values, recipe=False, of_document=False)


def _addressed(comparison: Comparison, changes: Sequence[FieldChange]) -> list[FieldChange]:
    """The changes that are the run's new name or version in a text and nothing else; none if there is but one."""
    (name, version), (new_name, new_version) = _addresses(comparison)
    # The name of a job has no slashes.
    swaps = {name: new_name, name.replace("/", "-"): new_name.replace("/", "-"), version: new_version}
    swaps = {old: new for old, new in swaps.items() if old and new and old != new}
    if not swaps:
        return []
    longest_first = sorted(map(re.escape, swaps), key=len, reverse=True)
    whole = re.compile(rf"(?<![\w.])(?:{'|'.join(longest_first)})(?![\w.])")
    found = [
        change
        for change in changes
        # An input has names and versions of its own.
        if change.keys[0] != _INPUTS
        and isinstance(change.before, str)
        and whole.sub(lambda match: swaps[match[0]], change.before) == change.after
    ]
    return found if len(found) > 1 else []


def _run_words(comparison: Comparison) -> list[str]:
    """What tells the run of each side from the other's: the version, and the name where that is another."""
    a, b = _addresses(comparison)
    return [version if a[0] == b[0] else f"{name}@{version}" for name, version in (a, b)]


def _addresses(comparison: Comparison) -> list[tuple[str, str]]:
    """Name and version of each side's run, "" where a document does not say."""
    return [side.address or ("", "") for side in (comparison.a, comparison.b)]


def consequence_lines(comparison: Comparison) -> Iterator[Line]:
    """Yield one line for each aspect that changed, and for those that are always told."""
    shown = [item for item in comparison.consequences if item.shown]
    width = max(len(item.aspect) for item in shown)
    for item in shown:
        yield Line(f"{item.aspect:<{width}}  {printable(item.sentence)}", STYLES[item.verdict])


def side_words(side: Side) -> str:
    """Return what a side is: as it was named, its run, and where it was found."""
    address = f", {brief('@'.join(side.address))}" if side.address is not None else ""
    return printable(f"{side.name}{address} ({side.origin})")
