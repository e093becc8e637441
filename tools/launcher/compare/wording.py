"""Values of a document on one line."""

import json
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from tools.launcher.compare.fields import ChangeKind, FieldChange
from tools.launcher.preflight.wording import below, listed

MARKS: dict[ChangeKind, str] = {"added": "+", "removed": "-", "changed": "~"}
NAMED = 3
"""Fields and differences that a sentence names; the rest is counted."""

_SHOWN_CHARACTERS = 160
_BEFORE_DIFFERENCE = 40
"""Characters that are shown before the place where two long values part."""

_RECIPE = "skyrl."


def brief(text: str) -> str:
    """Return `text`, cut where it is long."""
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def value_text(value: Any) -> str:
    """Return a value as JSON on one line, cut where it is long; text that reads as itself without quotes."""
    return brief(_text(value))


def change_text(before: Any, after: Any) -> str:
    """Return two values that differ on one line; of long ones, where they part."""
    texts = [_text(before), _text(after)]
    if len({unicodedata.normalize("NFKC", text) for text in texts}) == 1:
        texts = [json.dumps(value) for value in (before, after)]  # They would look the same.
    shared = _shared_beginning(*texts)
    if shared > _BEFORE_DIFFERENCE and max(map(len, texts)) > _SHOWN_CHARACTERS:
        texts = ["…" + text[shared - _BEFORE_DIFFERENCE :] for text in texts]
    return " -> ".join(map(brief, texts))


def reads_otherwise(text: str) -> bool:
    """Whether `text` without quotes would be another value: 1 is no text."""
    if len(text) > _SHOWN_CHARACTERS:
        return False  # It is cut anyway, and a thousand brackets are deeper than the reader goes.
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def change_lines(change: FieldChange) -> Iterator[tuple[str, str]]:
    """Yield (path, values) of a change; a section that came or went is told leaf by leaf."""
    if change.kind == "changed":
        yield brief(change.path), change_text(change.before, change.after)
        return
    yield from leaves(change.path, change.after if change.kind == "added" else change.before)


def leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield (path, value) of every leaf of `value`; a list without sections is one, and so is what is empty."""
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from leaves(below(path, key), value[key])
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for index, item in enumerate(value):
            yield from leaves(f"{path}[{index}]", item)
    else:
        yield brief(path), value_text(value)


def named(changes: Sequence[FieldChange]) -> str:
    """Return some fields, those of the recipe first, and the number of the rest."""
    paths = sorted((change.path for change in changes), key=lambda path: not path.startswith(_RECIPE))
    more = len(paths) - NAMED
    return listed(brief(path.removeprefix(_RECIPE)) for path in paths[:NAMED]) + (
        f" and {more} more" if more > 0 else ""
    )


def _text(value: Any) -> str:
    plain = isinstance(value, str) and value and value.isprintable() and value.strip() == value
    if plain and not reads_otherwise(value):
        return str(value)
    text = json.dumps(value, ensure_ascii=False, default=str)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)


def _shared_beginning(one: str, other: str) -> int:
    """How many characters two texts share from the start."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # A loop over a million characters would be seen.
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
