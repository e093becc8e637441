"""What must hold, and whether results say so. One list: the benches print it and docs/performance.md shows it."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

Results = Mapping[str, Any]
"""Name of a bench -> its results, as docs/performance.json has them. A bench that did not run is not there."""

MANY, FEWER = "1000", "100"


@dataclasses.dataclass(frozen=True)
class Line:
    """One condition.

    Attributes:
        what: is measured.
        limit: the largest value that holds.
        unit: of limit and value; empty for ratios and counts.
        value: reads the value. Raises KeyError where it was not measured.
    """

    what: str
    limit: float
    unit: str
    value: Callable[[Results], float]


@dataclasses.dataclass(frozen=True)
class Judged:
    """A condition and what was measured; None if it was not."""

    line: Line
    value: float | None

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        return "holds" if self.value <= self.line.limit else "does not hold"


def _size(results: Results, size: str) -> Mapping[str, Any]:
    measured: Mapping[str, Any] = results["scale"]["sizes"][size]
    return measured


def _stale_wall(results: Results) -> float:
    size = _size(results, MANY)
    return max(float(size[way]["wall"]) for way in ("cold", "stale", "repin"))


def _worker_to_one_shot(results: Results) -> float:
    """The worker's whole life, start and imports included, against as many processes without a sandbox."""
    size = _size(results, MANY)
    ran = int(size["stale"]["actions"]["RlPreflight"])
    return float(size["stale"]["action_cpu"]) / (ran * float(size["process"]["cpu"]))


def _growth(results: Results) -> float:
    """The worst of all ways to make everything stale, in wall and in CPU seconds."""
    many, fewer = _size(results, MANY), _size(results, FEWER)
    return max(
        cost(many[way]) / cost(fewer[way]) for way in ("cold", "stale", "repin") for cost in (_wall, _cpu)
    )


def _wall(series: Mapping[str, Any]) -> float:
    return float(series["wall"])


def _cpu(series: Mapping[str, Any]) -> float:
    return float(series["server_cpu"]) + float(series["action_cpu"])


def _no_op_to_empty(results: Results) -> float:
    """Both in the same server, which knows all of the experiments."""
    size = _size(results, MANY)
    return _wall(size["no_op"]) / _wall(size["no_op_empty"])


LINES = (
    Line("All 1000 stale: wall, the slowest of cold, stale and repin", 45, "s", _stale_wall),
    Line(
        "All 1000 stale: CPU of the worker against 1000 one-shot preflights", 1 / 20, "", _worker_to_one_shot
    ),
    Line("1000 experiments against 100, the worst of wall and CPU", 11, "", _growth),
    Line("Nothing to do among 1000: wall against an empty package", 1.5, "", _no_op_to_empty),
    Line(
        "Nothing to do among 1000: actions", 0, "", lambda r: sum(_size(r, MANY)["no_op"]["actions"].values())
    ),
    Line(
        "One edit among 1000: wall against the one-shot process for the same experiment",
        1 / 3,
        "",
        lambda r: float(_size(r, MANY)["edit_to_process"]),
    ),
    Line("One edit among 1000: wall", 1, "s", lambda r: _wall(_size(r, MANY)["edit"])),
    Line(
        "A comment in one experiment among 1000: actions",
        1,
        "",
        lambda r: sum(_size(r, MANY)["comment"]["actions"].values()),
    ),
    Line(
        "A second checkout with the disk cache: actions executed",
        0,
        "",
        lambda r: float(_size(r, MANY)["second_checkout"]["executed"]),
    ),
    Line(
        "`affected` among 1000, all stale, the base known",
        15,
        "s",
        lambda r: float(r["affected"]["seconds"]["all_stale"]),
    ),
    Line("`launcher --help`", 0.25, "s", lambda r: float(r["startup"]["seconds"]["launcher --help"])),
    Line("`lint` of one document", 0.35, "s", lambda r: float(r["startup"]["seconds"]["lint, one document"])),
    Line(
        "A launch on the embedded Iris: seconds beyond the bare jobs, by Iris's RPC stubs, and the training",
        3,
        "s",
        lambda r: float(r["submit_to_verified"]["overhead_against_stubs_seconds"]),
    ),
)


def judged(results: Results) -> list[Judged]:
    """Read the value of every line."""
    return [Judged(line, _value(line, results)) for line in LINES]


def told(results: Results) -> tuple[str, bool]:
    """Return all lines as text, and whether none of those that were measured fails."""
    rows = judged(results)
    text = "\n".join(
        f"{row.verdict:<14}{number(row.value, row.line.unit):>10}  limit {number(row.line.limit, row.line.unit):>8}"
        f"  {row.line.what}"
        for row in rows
    )
    return text, all(row.verdict != "does not hold" for row in rows)


def number(value: float | None, unit: str) -> str:
    """Write a value so that its digits mean something."""
    if value is None:
        return "-"
    text = f"{value:.0f}" if value == round(value) or value >= 100 else f"{value:.3g}"
    return f"{text} {unit}".strip()


def _value(line: Line, results: Results) -> float | None:
    try:
        return line.value(results)
    except KeyError:
        return None
