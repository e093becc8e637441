"""Runs as a table for a terminal, for a file, for a pull request and for programs."""

from collections.abc import Sequence
from typing import Any, TextIO

from tools.launcher.documents.markdown import in_markdown
from tools.launcher.documents.printable import printable
from tools.launcher.observe.render_text import STATE_STYLES
from tools.launcher.observe.run_listing import version_of
from tools.launcher.store.records import RunRecord

COLUMNS = ("run", "version", "state", "verified", "stage", "runtime", "cluster", "launched", "by")

COMMIT_DIGITS = 8
_STATE = COLUMNS.index("state")
_DISPENSABLE = ("by", "cluster", "runtime", "stage", "version", "verified", "launched")
"""Columns that a narrow terminal does without, in this order."""


def run_row(record: RunRecord) -> tuple[str, ...]:
    """Return a run's values for COLUMNS, "-" for what its record does not say."""
    commit = (record.runtime_commit or "")[:COMMIT_DIGITS]
    values = (
        record.key.short_name,
        version_of(record),
        record.state.value,
        verified_word(record),
        record.stage or "",
        f"{record.runtime or ''} {commit}".strip(),
        record.cluster or "",
        f"{record.when[:16]}Z",
        record.who,
    )
    return tuple(printable(value) or "-" for value in values)


def verified_word(record: RunRecord) -> str:
    """Return the answer on record: yes, no, or "" if the run was never verified."""
    if record.verification is not None:
        return "yes"
    return "no" if record.verify_failure is not None else ""


def show_runs(records: Sequence[RunRecord], stream: TextIO) -> None:
    """Write the table to `stream`: with colours if it is a terminal, else in columns of spaces."""
    rows = [run_row(record) for record in records]
    if not stream.isatty():
        stream.write(_plain(rows))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False)
    shown = _columns_for(rows, console.width)
    widths = _widths(rows)
    console.print(
        Text("  ".join(COLUMNS[place].upper().ljust(widths[place]) for place in shown), style="bold"),
        soft_wrap=True,
    )
    for row in rows:
        line = Text()
        for place in shown:
            style = STATE_STYLES.get(row[_STATE], "") if place == _STATE else ""
            line.append(row[place].ljust(widths[place]), style=style)
            line.append("  ")
        line.rstrip()
        console.print(line, soft_wrap=True)
    if left_out := [name for place, name in enumerate(COLUMNS) if place not in shown]:
        console.print(f"not shown for want of width: {', '.join(left_out)}", style="dim", soft_wrap=True)


def _columns_for(rows: Sequence[tuple[str, ...]], width: int) -> list[int]:
    """Return which columns fit a terminal. A value that is cut may name another run, so whole columns go."""
    widths = _widths(rows)
    shown = list(range(len(COLUMNS)))
    for name in _DISPENSABLE:
        if sum(widths[place] + 2 for place in shown) - 2 <= width:
            break
        shown.remove(COLUMNS.index(name))
    return shown


def _widths(rows: Sequence[tuple[str, ...]]) -> list[int]:
    return [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]


def runs_markdown(records: Sequence[RunRecord]) -> str:
    """Return the table in Markdown, for an issue or a pull request."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "| " + " | ".join("---" for _ in COLUMNS) + " |"]
    for record in records:
        lines.append("| " + " | ".join(in_markdown(value) for value in run_row(record)) + " |")
    return "\n".join(lines) + "\n"


def runs_json(records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Return one object for each run; fields may be added, none is taken away."""
    return [
        {
            "run": record.key.short_name,
            "experiment": record.key.experiment,
            "launch_digest": record.launch_digest,
            "recipe_digest": record.recipe_digest,
            "ordinal": record.key.ordinal,
            "version": version_of(record),
            "state": record.state.value,
            "reason": record.reason,
            "verified": {"yes": True, "no": False, "": None}[verified_word(record)],
            "stage": record.stage,
            "runtime": record.runtime,
            "runtime_commit": record.runtime_commit,
            "cluster": record.cluster,
            "launched_at": record.when,
            "last_event_at": record.events[-1].at,
            "by": record.who,
            "coordinator_job": record.coordinator_job_id,
            "child_jobs": list(record.child_job_ids),
        }
        for record in records
    ]


def _plain(rows: Sequence[tuple[str, ...]]) -> str:
    widths = _widths(rows)
    return "".join(
        "  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip() + "\n"
        for row in (tuple(name.upper() for name in COLUMNS), *rows)
    )
