"""Words that every message and repair shares.

A repair is ready to type: `set PATH=VALUE` (several joined by "and"), `set PATH=VALUE or VALUE`
where others pass too, or `delete PATH`. The tests apply the first alternative to the document.
"""

from collections.abc import Iterable
from typing import Any

_SHOWN_CHARACTERS = 80
_LISTED_VALUES = 12


def shown(value: Any) -> str:
    """Return a value of the document on one line, cut where it is long."""
    if value is True or value is False:
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        return (
            f"an integer of {value.bit_length()} bits"
            if isinstance(value, int)
            else f"a {type(value).__name__}"
        )
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def counted(number: int, word: str) -> str:
    """Return a number with its unit, such as `1 node` or `2 nodes`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def below(place: str, key: Any) -> str:
    """Return the path of `key` below `place`, on one line whatever a document calls its keys."""
    text = str(key)
    return f"{place}.{text if text.isprintable() else shown(text)}"


def listed(values: Iterable[Any]) -> str:
    """Return values joined by commas, cut where there are many."""
    items = [str(value) for value in values]
    more = len(items) - _LISTED_VALUES
    return ", ".join(items[:_LISTED_VALUES]) + (f" and {more} more" if more > 0 else "")


def set_to(path: str, value: Any, *others: Any) -> str:
    """Return the repair which sets `path` to `value`, naming other values that pass as well."""
    literals = [shown(each) if isinstance(each, bool) else str(each) for each in (value, *others)]
    return f"set {path}={' or '.join(literals)}"


def also(*repairs: str) -> str:
    """Return one repair which makes several changes, "" for none."""
    return " and ".join(repairs)


def delete(path: str) -> str:
    """Return the repair which removes `path`."""
    return f"delete {path}"
