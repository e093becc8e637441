"""Numbers that a setting may have, as tables."""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tools.launcher.preflight.findings import Finding, Severity
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.wording import set_to, shown


class Bounds(NamedTuple):
    """An interval; None is no bound."""

    low: float | None = None
    high: float | None = None
    open_low: bool = False
    """Whether `low` itself lies outside."""
    open_high: bool = False

    def holds(self, value: float) -> bool:
        """Whether a number lies inside; nothing that is not finite does."""
        if isinstance(value, float) and not math.isfinite(value):
            return False
        above = self.low is None or value > self.low or (value == self.low and not self.open_low)
        below = self.high is None or value < self.high or (value == self.high and not self.open_high)
        return above and below

    def __str__(self) -> str:
        if self.high is None:
            return f"{'>' if self.open_low else '>='} {self.low:g}"
        if self.low is None:
            return f"{'<' if self.open_high else '<='} {self.high:g}"
        return (
            f"in {'(' if self.open_low else '['}{self.low:g}, {self.high:g}{')' if self.open_high else ']'}"
        )


POSITIVE = Bounds(low=0, open_low=True)
NOT_NEGATIVE = Bounds(low=0)
FRACTION = Bounds(low=0, high=1)
AT_LEAST_ONE = Bounds(low=1)
PORT = Bounds(low=1, high=65535)


class Limit(NamedTuple):
    """What one path below `skyrl` may hold, where it is declared."""

    path: str
    bounds: Bounds
    suggestion: float
    """A number that passes, for the repair."""


def number(subject: PreflightSubject, path: str) -> float:
    """Return the number at `path`, which may be an integer. Raises like `PreflightSubject.value`, and for NaN."""
    value: float = subject.value(path, int, float)
    if isinstance(value, float) and math.isnan(value):
        raise UnreadableValue(f"{path} as a number, it is {shown(value)}")
    return value


def out_of_bounds(
    subject: PreflightSubject, limits: Iterable[Limit], severity: Severity = "error"
) -> Iterator[Finding]:
    """Yield a finding for each declared number outside its bounds; OBJ-04 reports what is no number."""
    for limit in limits:
        path = f"skyrl.{limit.path}"
        value = subject.get(path)
        if type(value) in (int, float) and not limit.bounds.holds(value):
            yield Finding(
                path=path,
                message=f"{limit.path}={shown(value)} must be {limit.bounds}",
                repair=set_to(path, limit.suggestion),
                severity=severity,
            )
