"""Sizes of memory and disk, as Iris reads them.

Iris 0.2.210 hands the text to a parser of human-friendly sizes with binary meaning: the first letter of the
unit decides, so that `700GB`, `700Gi` and `700 gigs` are all 700 GiB (contract, runtime-facts.md §14).
"""

import re
from typing import Any, NamedTuple

GIB = 2**30

AUTOMATIC = "auto"
"""Not a size: the launcher puts a share of what a node offers in its place."""

_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([^\d]*?)\s*", re.DOTALL)
_LETTERS = "kmgtpezy"
_MOST_CHARACTERS = 40
"""A longer text is no size of this world, and Python would refuse to compute with it."""


class Size(NamedTuple):
    """A size and how it was written."""

    bytes: int
    number: str
    unit: str
    """As written; "" for a plain number, which counts bytes."""

    @property
    def meaning(self) -> str:
        """The unit that Iris reads: `B`, `KiB`, `MiB` and so on."""
        letter = _unit_letter(self.unit)
        return "B" if letter in ("", "b") else f"{letter.upper()}iB"


def size_of(text: str) -> Size | None:
    """Return the size that Iris reads in `text`, None where it reads none.

    Zero is a size; whether it makes sense is the caller's question. A sign, an exponent, a second
    number and a unit without number are not.
    """
    match = _WRITTEN.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
    if match is None:
        return None
    number, unit = match[1], match[2]
    letter = _unit_letter(unit)
    if letter not in ("", "b") and letter not in _LETTERS:
        return None
    if unit and not letter:
        return None
    factor = 1024 ** (_LETTERS.index(letter) + 1) if letter and letter != "b" else 1
    value = float(number) if "." in number else int(number)
    return Size(int(value * factor), number, unit)


def size_text(value: Any) -> str | None:
    """Return the text that the launcher makes of a size field, None for what it refuses.

    Its schema types the field as text and takes every scalar for one (OmegaConf), so that 700 is `700`.
    """
    if isinstance(value, str):
        return value
    return str(value) if type(value) in (int, float) and abs(value) < 10**_MOST_CHARACTERS else None


def in_gib(count: int | float) -> str:
    """Return bytes as `2014 GiB`, with as many digits as tell two sizes apart."""
    return f"{count / GIB:.7g} GiB"


def _unit_letter(unit: str) -> str:
    """The letter by which Iris knows the unit; a plural `s` is cut off first."""
    lowered = unit.lower()
    return "b" if lowered.startswith("b") else lowered.rstrip("s")[:1]
