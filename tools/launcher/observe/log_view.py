"""Lines of log for people: whose each is, in order, without terminal codes; and a record as such lines."""

import re
from collections.abc import Callable, Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from tools.launcher.documents.printable import printable
from tools.launcher.iris.jobs import LogLine
from tools.launcher.store.records import RunRecord

_TERMINAL_CODES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links
    r"|[@-Z\\-_])"
)


class Source(BaseModel):
    """A job whose log is read.

    Attributes:
        name: coordinator, or task.
        job_id: full id.
        task: index of the one task, None for all.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    name: str
    job_id: str
    task: int | None

    def label(self, line: LogLine) -> str:
        """Return who wrote a line of this job; a later start of the same task is told from the first."""
        who = self.name if self.name == "coordinator" else f"{self.name} {line.task_index}"
        return who if line.attempt == 1 else f"{who} attempt {line.attempt}"


def merged(pages: Iterable[tuple[Source, Sequence[LogLine]]]) -> list[tuple[Source, LogLine]]:
    """Return the lines of several jobs by their times; those of one job keep their order."""
    lines: list[tuple[int, Source, LogLine]] = []
    for source, page in pages:
        latest: dict[tuple[int, int], int] = {}
        for line in page:
            writer = (line.task_index, line.attempt)
            # The clock of a node may be set back; what it wrote stays in order.
            latest[writer] = max(line.at_ms, latest.get(writer, 0))
            lines.append((latest[writer], source, line))
    return [(source, line) for _, source, line in sorted(lines, key=lambda found: found[0])]


def shown_line(source: Source, line: LogLine, clean: Callable[[str], str], *, width: int) -> str:
    """Return a line as it is shown.

    Args:
        source: whose it is.
        line: as it was written.
        clean: takes the values of credentials out.
        width: of the label before it; 0 leaves the label out.
    """
    text = plain(clean(line.text))
    return f"{source.label(line):<{width}} | {text}" if width else text


def plain(text: str) -> str:
    """Return a line without terminal codes; of a progress bar that drew itself again, the last state."""
    # What is before a carriage return was drawn over.
    drawn = [part for part in _TERMINAL_CODES.sub("", text).split("\r") if part]
    return printable((drawn[-1] if drawn else "").expandtabs(4)).rstrip()


def record_lines(record: RunRecord) -> list[str]:
    """Return a line for each event of a record, with the end of what a failed program wrote."""
    lines: list[str] = []
    for event in record.events:
        said = [event.facts.get(name) for name in ("step", "reason")]
        words = [event.kind, *(word for word in said if isinstance(word, str))]
        lines.append(plain(f"{event.at} {event.by}: {' '.join(' '.join(words).split())}"))
        tail = event.facts.get("stderr_tail")
        if isinstance(tail, str):
            lines += [f"    {plain(line)}" for line in tail.splitlines()]
    return lines
