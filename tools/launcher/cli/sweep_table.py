"""The points of a sweep as one table: for a terminal, for a pull request, for programs."""

import shutil
from collections.abc import Sequence
from typing import Any, Literal, TextIO

from pydantic import BaseModel, ConfigDict

from tools.launcher.cli.sweep_records import TO_SUBMIT, PointState, Standing
from tools.launcher.documents.markdown import in_markdown
from tools.launcher.documents.printable import printable
from tools.launcher.render.sweep import Sweep, SweepPoint

SCHEMA = 1
_SHOWN_DIGITS = 8
_LEGEND = "tokens/step: at most, answers x window. GPU-hours: at most, until the deadline."

_DISPENSABLE = ("recipe", "tokens/step", "nodes x GPUs", "steps", "GPU-hours")
"""Columns that a narrow terminal does without, in this order; then the axes, which the point's name has too."""

Doing = Literal["launched", "rehearsed"]
"""What is going to be done with the points."""


class SweepTable(BaseModel):
    """What is shown.

    Attributes:
        sweep: the points that are shown.
        cluster: where they go.
        standings: of each point; None if the store was not asked.
        records: where the standings are from, or why there are none.
        submits: points that stand so are submitted.
        doing: what a submission is here.
        points_in_all: how many points the sweep has; None: those that are shown.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    sweep: Sweep
    cluster: str
    standings: tuple[Standing, ...] | None
    records: str
    submits: frozenset[PointState] = TO_SUBMIT
    doing: Doing = "launched"
    points_in_all: int | None = None

    def to_submit(self) -> tuple[SweepPoint, ...]:
        """Return the points that a launch would submit; all where nothing is known of them."""
        if self.standings is None:
            return self.sweep.points
        return tuple(
            point
            for point, standing in zip(self.sweep.points, self.standings, strict=True)
            if standing.state in self.submits
        )


def show_sweep(table: SweepTable, stream: TextIO) -> None:
    """Write `sweep_text` to `stream`, as wide as that is if it is a terminal."""
    stream.write(sweep_text(table, shutil.get_terminal_size().columns if stream.isatty() else None))


def sweep_text(table: SweepTable, width: int | None = None) -> str:
    """Return the table in columns of spaces, with a head and the totals.

    Args:
        table: what is shown.
        width: how many characters a line of columns may have; whole columns are left out for it. None: any number.
    """
    rows = [_columns(table), *_rows(table)]
    lines, left_out = aligned(rows), []
    for name in (*_DISPENSABLE, *reversed(table.sweep.axes)):
        if width is None or max(map(len, lines)) <= width:
            break
        place = rows[0].index(name)
        rows = [(*row[:place], *row[place + 1 :]) for row in rows]
        lines = aligned(rows)
        left_out.append(name)
    if left_out:
        lines.append(f"not shown for want of width: {', '.join(left_out)}")
    return "".join(f"{line}\n" for line in [_head(table), *lines, _total(table), _records(table), _LEGEND])


def sweep_markdown(table: SweepTable) -> str:
    """Return the table for a pull request."""
    columns = _columns(table)
    lines = [f"**{in_markdown(_head(table))}**", "", _markdown_row(columns), "|" + "---|" * len(columns)]
    lines += [_markdown_row(tuple(map(in_markdown, row))) for row in _rows(table)]
    lines += ["", f"{in_markdown(_total(table))} {in_markdown(_records(table))} {_LEGEND}"]
    return "".join(f"{line}\n" for line in lines)


def sweep_json(table: SweepTable) -> dict[str, Any]:
    """Return the table as JSON values; fields may be added, none is taken away."""
    wanted = {point.label for point in table.to_submit()}
    points = [
        {
            **point.model_dump(mode="json", exclude={"files"}),
            "state": None if standing is None else standing.state,
            "run": None if standing is None else standing.run or None,
            "to_be_launched": point.label in wanted,
        }
        for point, standing in _with_standings(table)
    ]
    return {
        "schema": SCHEMA,
        "sweep": table.sweep.sweep,
        "cluster": table.cluster,
        "axes": list(table.sweep.axes),
        "records": table.records,
        "gpu_hours_to_launch": gpu_hours(table.to_submit()),
        "points": points,
    }


def gpu_hours(points: Sequence[SweepPoint]) -> float:
    """Return what points take at most, in all."""
    return sum(point.gpu_hours for point in points)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with columns of one width."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        ("  " + "  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]


def _columns(table: SweepTable) -> tuple[str, ...]:
    return (
        "point",
        *table.sweep.axes,
        "nodes x GPUs",
        "steps",
        "tokens/step",
        "GPU-hours",
        "recipe",
        "state",
    )


def _rows(table: SweepTable) -> list[tuple[str, ...]]:
    return [
        tuple(
            printable(value)
            for value in (
                point.point,
                *point.values.values(),
                f"{point.nodes} x {point.gpus_per_node} {point.gpu_variant}",
                "by data" if point.steps is None else str(point.steps),
                f"{point.tokens_per_step:,}",
                f"{point.gpu_hours:g}",
                point.recipe[:_SHOWN_DIGITS],
                "?" if standing is None else f"{standing.state} {standing.run}".rstrip(),
            )
        )
        for point, standing in _with_standings(table)
    ]


def _with_standings(table: SweepTable) -> list[tuple[SweepPoint, Standing | None]]:
    known: Sequence[Standing | None] = table.standings or [None] * len(table.sweep.points)
    return list(zip(table.sweep.points, known, strict=True))


def _head(table: SweepTable) -> str:
    points, of = table.sweep.points, _in_all(table)
    shown = "" if len(points) == of else f"{len(points)} of "
    versions = sorted({point.artifact.rpartition("@")[2] for point in points})
    return printable(
        f"{table.sweep.sweep}: {shown}{_counted(of)}, version {', '.join(versions)}, on {table.cluster}"
    )


def _total(table: SweepTable) -> str:
    wanted = table.to_submit()
    price = f"{gpu_hours(wanted):g} GPU-hours at most"
    if table.doing == "rehearsed":
        price = "one after another on this machine's CPU; the GPU-hours are those of a launch"
    return f"to be {table.doing}: {len(wanted)} of {_counted(_in_all(table))}, {price}."


def _records(table: SweepTable) -> str:
    return printable(f"records: {table.records}.")


def _in_all(table: SweepTable) -> int:
    return table.points_in_all or len(table.sweep.points)


def _counted(number: int) -> str:
    return "1 point" if number == 1 else f"{number} points"


def _markdown_row(values: Sequence[str]) -> str:
    return f"| {' | '.join(values)} |"
