"""How the launcher's typed schema reads a scalar that is written as another type (omegaconf.nodes, 2.1 to 2.4)."""

import math
from typing import Any, NamedTuple

from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.preflight.subject import PreflightSubject

WORDS = {"int": "an integer", "float": "a number", "str": "text", "bool": "true or false"}
"""Type of a scalar field -> what is to be written there."""

_TRUE = ("y", "yes", "on", "true")
_FALSE = ("n", "no", "off", "false")
_MOST_DIGITS = 4000
"""Python reads no integer of many more."""


class Reading(NamedTuple):
    """What becomes of a value."""

    value: Any = None
    converted: bool = False
    """Whether it is another one than was written."""
    problem: str = ""
    """Why it is refused; empty where it is not."""


def read_as(kind: str, value: Any) -> Reading:
    """Read a value where the schema has a scalar of `kind`, one of WORDS."""
    refused = Reading(problem=f"not {WORDS[kind]}")
    if isinstance(value, dict | list):
        return refused
    if kind == "str":
        return Reading(value) if isinstance(value, str) else _as_text(value)
    if kind == "bool":
        return _as_bool(value) or refused
    # True is no number there either, and a float is no integer, however whole.
    if isinstance(value, bool) or (kind == "int" and isinstance(value, float)):
        return refused
    try:
        number = int(value) if kind == "int" else float(value)
    except (ValueError, OverflowError):
        return refused
    if isinstance(number, float) and not math.isfinite(number):
        return Reading(problem="not a finite number")
    return Reading(number, converted=isinstance(value, str))


def texts_as_read(subject: PreflightSubject, manifest: RuntimeManifest) -> PreflightSubject:
    """Return the subject with the numbers and booleans in fields of text as the text that the launcher reads.

    `cluster: true` is the cluster 'True' to every rule. The subject itself where there is none.
    """
    converted: dict[str, Any] = {}
    for path, field in (manifest.document_fields or {}).items():
        value = subject.get(path)
        if field.type != "str" or value is None or isinstance(value, str):
            continue
        reading = read_as("str", value)
        if not reading.problem:
            converted[path] = reading.value
    return subject.with_values(converted) if converted else subject


def _as_bool(value: Any) -> Reading | None:
    if isinstance(value, bool):
        return Reading(value)
    if isinstance(value, int):
        return Reading(value != 0, converted=True)
    if not isinstance(value, str):
        return None
    number = read_as("int", value)
    if not number.problem:
        return Reading(number.value != 0, converted=True)
    word = value.lower()
    return Reading(word in _TRUE, converted=True) if word in (*_TRUE, *_FALSE) else None


def _as_text(value: Any) -> Reading:
    if isinstance(value, int) and value.bit_length() > 3 * _MOST_DIGITS:
        return Reading(problem="an integer beyond all limits, not text")
    return Reading(str(value), converted=True)
