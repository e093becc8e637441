"""Spans of time in words, and the time between two moments of a record."""

import datetime

MINUTE, HOUR, DAY = 60, 3600, 86400


def span_words(seconds: float) -> str:
    """Return a span for people, rounded down to two units: `48 s`, `3 min 20 s`, `5 h 12 min`, `2 d 3 h`.

    Args:
        seconds: at least 0.
    """
    whole = int(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    for unit, name, part, part_name in (
        (DAY, "d", HOUR, "h"),
        (HOUR, "h", MINUTE, "min"),
        (MINUTE, "min", 1, "s"),
    ):
        if whole >= unit:
            rest = whole % unit // part
            return f"{whole // unit} {name}" + (f" {rest} {part_name}" if rest else "")
    raise AssertionError(seconds)


def seconds_between(begin: str, end: str) -> float:
    """Return the seconds from one time of a record to another; 0 if clocks of two machines turn them round.

    Args:
        begin, end: RFC 3339 in UTC, as events have it.
    """
    return max((moment(end) - moment(begin)).total_seconds(), 0.0)


def moment(time: str) -> datetime.datetime:
    """Return a time of a record. Raises ValueError if it is none."""
    return datetime.datetime.fromisoformat(time)
