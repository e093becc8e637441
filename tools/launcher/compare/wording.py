"""Values of a document on one line."""

import json
from collections.abc import Iterator
from typing import Any

from tools.launcher.compare.fields import FieldChange
from tools.launcher.documents.printable import printable

MARKS = {"added": "+", "removed": "-", "changed": "~"}
_SHOWN_CHARACTERS = 160


def value_text(value: Any) -> str:
    """Return a value as JSON on one line, cut where it is long; text that reads as itself without quotes."""
    if isinstance(value, str) and value and value.isprintable() and value.strip() == value:
        text = value if not json_reads_otherwise(value) else json.dumps(value, ensure_ascii=False)
    else:
        text = printable(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def json_reads_otherwise(text: str) -> bool:
    """Whether `text` without quotes would be another value: 1 is no text."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def change_lines(change: FieldChange) -> Iterator[tuple[str, str]]:
    """Yield (path, values) of a change; a section that came or went is told leaf by leaf."""
    if change.kind == "changed":
        yield change.path, f"{value_text(change.before)} -> {value_text(change.after)}"
        return
    yield from leaves(change.path, change.after if change.kind == "added" else change.before)


def leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield (path, value) of every leaf of `value`; an empty section is one."""
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from leaves(f"{path}.{printable(str(key))}", value[key])
    else:
        yield path, value_text(value)
