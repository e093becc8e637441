"""Status and verification as text: plain lines anywhere, tables and colours on a terminal only."""

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from tools.launcher.documents.printable import printable
from tools.launcher.observe.newest_checkpoint import Checkpoint
from tools.launcher.observe.status import JobView, RunStatus
from tools.launcher.observe.verify import Verification

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

REHEARSAL_NOTE = "rehearsal: a CPU stand-in ran this plan; no language model was trained"

NOT_RECORDED = (
    "what could not be read may speak for the run, so this answer is not recorded; ask again where it can be "
    "read"
)

JUDGED = {
    "import": "its models and data have to be there, whole and as planned; it trains nothing",
    "rl": "its tasks, the model they loaded, its steps and what the training left have to be as planned",
    "evaluate": "all that a training is asked for, and its evaluations have to be there, whole and as planned",
}
"""Stage of a run -> what its answer stands on."""

# With state, tasks and steps before it, a line of progress stays below 120 characters.
WAIT_CHARACTERS = 72

_ANSWER = re.compile(r"(?:verified:|  ?) ?(yes|no)\b")

STATE_STYLES = {
    "succeeded": "green",
    "failed": "red",
    "refused": "red",
    "conflict": "red",
    "cancelled": "yellow",
    "running": "cyan",
}
"""State of a record -> its colour on a terminal, where the word stands too."""


def status_rows(status: RunStatus) -> list[tuple[str, str]]:
    """Return label and value of every line of a status, in the order shown."""
    rows = [
        ("run", str(status.key)),
        ("state", status.state.value + (f": {status.reason}" if status.reason else "")),
        ("stage", status.stage or "unknown"),
        ("launched", f"{status.when} by {status.who}"),
        ("coordinator", _job_words(status.coordinator, is_over=status.is_over)),
        ("child", _job_words(status.child, is_over=status.is_over)),
        ("tasks joined", f"{status.tasks_joined}/{status.tasks_expected}"),
        ("steps", f"{_or_unknown(status.step)}/{_or_unknown(status.steps_expected)}"),
    ]
    if status.reward_first is not None and status.reward_last is not None:
        mean = "" if status.reward_mean is None else f", {status.reward_mean:.3f} mean"
        rows.append(("reward", f"{status.reward_first:.3f} first, {status.reward_last:.3f} latest{mean}"))
    if status.checkpoint is not None:
        rows.append(("checkpoint", _checkpoint_words(status.checkpoint)))
    if status.pending_reason:
        rows.append(("waits", status.pending_reason))
    event = status.last_event
    rows.append(
        ("last event", f"{event.kind}{f' {event.step}' if event.step else ''} at {event.at} by {event.by}")
    )
    if status.asked_to_cancel:
        rows.append(("cancellation", f"asked for by {status.asked_to_cancel}; not yet seen to be done"))
    if status.leaves_jobs:
        rows.append(
            ("attention", "it may have left jobs that work; `launcher cancel` ends them and closes it")
        )
    elif status.coordinator_is_gone:
        rows.append(
            ("attention", "the coordinator is gone and recorded no end; launch again to settle the record")
        )
    rows.append(("verified", {True: "yes", False: "no", None: "not asked yet"}[status.verified]))
    if status.note:
        rows.append(("note", status.note))
    return rows


def status_text(status: RunStatus) -> str:
    """Return the status as plain lines, each `label: value`."""
    return rows_text(status_rows(status))


def rows_text(rows: Sequence[tuple[str, str]]) -> str:
    """Return rows as plain lines, each `label: value`; what a record holds leaves neither its line nor the terminal."""
    return "".join(f"{label}: {printable(' '.join(value.split()))}\n" for label, value in rows)


def progress_line(status: RunStatus) -> str:
    """Return the status in one line, for a log or a live display."""
    parts = [status.state.value]
    if status.last_event.step:
        parts.append(f"{status.last_event.kind} {status.last_event.step}")
    if status.child is not None:
        parts.append(f"tasks {status.tasks_joined}/{status.tasks_expected}")
        if status.step is not None:
            parts.append(f"step {status.step}/{_or_unknown(status.steps_expected)}")
        if status.reward_last is not None:
            parts.append(f"reward {status.reward_last:.3f}")
    if status.checkpoint is not None and status.checkpoint.step is not None:
        parts.append(f"checkpoint {status.checkpoint.step}")
    if status.coordinator is not None and status.coordinator.state == "unknown" and not status.is_over:
        parts.append("Iris does not answer")
    if status.pending_reason:
        parts.append(f"waits: {_brief_wait(status.pending_reason)}")
    if status.reason:
        parts.append(status.reason)
    return "  ".join(printable(" ".join(part.split())) for part in parts)


def verification_text(verification: Verification) -> str:
    """Return the answer as plain lines: `verified: yes` or `verified: no`, each fact with evidence, then what
    was asked of a run of its stage."""
    lines = [f"verified: {_yes_no(verification.verified)}"]
    for fact in verification.facts:
        lines.append(f"  {_yes_no(fact.ok):3}  {fact.name}: {fact.seen}")
        if not fact.ok:
            lines.append(f"       expected: {fact.expected}")
        lines += [f"       evidence: {place}" for place in fact.evidence]
    lines.append(judged_line(verification))
    if verification.rehearsal:
        lines.append(REHEARSAL_NOTE)
    return "".join(f"{printable(line)}\n" for line in lines)


def judged_line(verification: Verification) -> str:
    """Return what a run is judged by, which its stage says."""
    return f"stage {verification.stage}: {JUDGED[verification.stage]}"


def show_status(status: RunStatus, stream: TextIO) -> None:
    """Write the status to `stream`: a table with colours if it is a terminal, else plain lines."""
    if not stream.isatty():
        stream.write(status_text(status))
        return
    _console(stream).print(rows_table(status_rows(status), status))


def rows_table(rows: Sequence[tuple[str, str]], status: RunStatus) -> "Table":
    """Return rows of a status as a table for a terminal, state and answer in colour."""
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in rows:
        style = STATE_STYLES.get(status.state.value, "") if label == "state" else ""
        if label == "verified":
            style = {True: "green", False: "red", None: ""}[status.verified]
        table.add_row(label, Text(printable(value), style=style))
    return table


def show_verification(verification: Verification, stream: TextIO) -> None:
    """Write the answer to `stream`, with colours if it is a terminal. Lines are never broken inside an
    address, so that it can be copied."""
    if not stream.isatty():
        stream.write(verification_text(verification))
        return
    console = _console(stream)
    for line in verification_text(verification).splitlines():
        console.print(_coloured(line), soft_wrap=True)


def _coloured(line: str) -> "Text":
    from rich.text import Text

    answer = _ANSWER.match(line)
    if answer is None:
        return Text(line, style="yellow" if line == REHEARSAL_NOTE else "dim")
    text = Text(line)
    text.stylize(_style_of(answer[1] == "yes"), *answer.span(1))
    return text


def _console(stream: TextIO) -> "Console":
    from rich.console import Console

    return Console(file=stream, highlight=False)


def _brief_wait(reason: str) -> str:
    """The scheduler's words, short enough for a line; `status` shows all of them.

    Where they tell first why no present node fits and then what the autoscaler does, the latter counts.
    """
    words = reason.rpartition("Autoscaler: ")[2].removeprefix("Scheduler: ")
    return textwrap.shorten(words, WAIT_CHARACTERS, placeholder=" ...")


def _checkpoint_words(checkpoint: Checkpoint) -> str:
    if checkpoint.unknown:
        return f"not known: {checkpoint.unknown}"
    return "none" if checkpoint.step is None else f"step {checkpoint.step}"


def _job_words(job: JobView | None, *, is_over: bool) -> str:
    if job is None:
        return "none" if is_over else "none yet"
    if job.state == "unknown" and is_over:
        # The record has told the end, and nobody asked Iris once more.
        return job.job_id
    tasks = f", {job.running_tasks} of {job.tasks} tasks running" if job.state == "running" else ""
    return f"{job.job_id} ({job.state}{tasks})"


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"


def _style_of(value: bool) -> str:
    return "green" if value else "red"


def _or_unknown(value: int | None) -> str:
    return "?" if value is None else str(value)
