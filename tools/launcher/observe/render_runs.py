"""Runs as a table for a terminal, for a file, for a pull request and for programs."""

from collections.abc import Sequence
from typing import Any, TextIO

from tools.launcher.documents.printable import printable
from tools.launcher.observe.render_text import STATE_STYLES
from tools.launcher.observe.run_listing import version_of
from tools.launcher.store.records import RunRecord

COLUMNS = ("run", "version", "state", "verified", "stage", "runtime", "cluster", "launched", "by")

COMMIT_DIGITS = 8
_STATE = COLUMNS.index("state")
_MARKUP = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]<>|#"})


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
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name.upper(), overflow="fold", no_wrap=name in ("run", "state"))
    for row in rows:
        styles = ["" if place != _STATE else STATE_STYLES.get(row[_STATE], "") for place in range(len(row))]
        table.add_row(*(Text(value, style=style) for value, style in zip(row, styles, strict=True)))
    Console(file=stream, highlight=False).print(table)


def runs_markdown(records: Sequence[RunRecord]) -> str:
    """Return the table in Markdown, for an issue or a pull request."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "| " + " | ".join("---" for _ in COLUMNS) + " |"]
    for record in records:
        lines.append("| " + " | ".join(value.translate(_MARKUP) for value in run_row(record)) + " |")
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
    table = [tuple(name.upper() for name in COLUMNS), *rows]
    widths = [max(len(row[place]) for row in table) for place in range(len(COLUMNS))]
    return "".join(
        "  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip() + "\n"
        for row in table
    )
