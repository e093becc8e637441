"""Artifact versions: a calendar date with an optional counter, or a mutable `dev`.

Source of the forms: contract, typed-spec.md §2. That the date must exist in the calendar is
check ART-02; no peer asks for it.
"""

import datetime
import re

_FIXED = re.compile(r"(\d{4})\.(\d{2})\.(\d{2})(?:\.(0|[1-9]\d*))?", re.ASCII)
_DATE = re.compile(r"v?(\d{4})(?:[-._/](\d\d?)[-._/](\d\d?)|(\d\d)(\d\d))(?:[-._]([1-9]\d{0,3}))?", re.ASCII)
_MUTABLE = re.compile(r"(?:[a-z0-9][a-z0-9_-]*-)?dev")
_MONTHS = 12


def version_problem(version: str) -> str | None:
    """Say what is wrong with `version`, or return None.

    Fixed versions are `YYYY.MM.DD` and `YYYY.MM.DD.N` with a real date and N >= 1; mutable
    ones are `dev` and `<label>-dev`.
    """
    match = _FIXED.fullmatch(version)
    if match is None:
        if _MUTABLE.fullmatch(version):
            return None
        return "is neither YYYY.MM.DD, YYYY.MM.DD.N, dev nor <label>-dev"
    year, month, day = (int(part) for part in match.groups()[:3])
    if not 1 <= month <= _MONTHS:
        return f"month {month} does not exist"
    try:
        datetime.date(year, month, day)
    except ValueError:
        return f"{year:04}-{month:02} has no day {day}" if year else "year 0 does not exist"
    if match[4] == "0":
        return "the counter starts at 1"
    return None


def following_version(version: str) -> str:
    """Return the next version of the same day: `2026.11.30` -> `2026.11.30.1` -> `2026.11.30.2`.

    Args:
        version: a fixed one.
    """
    year, month, day, *counter = version.split(".")
    return ".".join((year, month, day, str(int(counter[0]) + 1 if counter else 1)))


def near_version(text: str) -> str | None:
    """Return the date that is written in `text` in another way, as a fixed version; None if there is none."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day, *counter = (part for part in match.groups() if part is not None)
    version = ".".join((year, month.zfill(2), day.zfill(2), *counter))
    return version if version_problem(version) is None else None


def is_mutable(version: str) -> bool:
    """Whether content under this version may change: every version that is not a calendar date."""
    return _FIXED.fullmatch(version) is None
