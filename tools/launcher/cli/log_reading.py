"""Reading the logs of a run's jobs: what there is, and then what comes."""

from collections.abc import Sequence
from typing import Protocol

from tools.launcher.iris.jobs import LogLine, LogPage
from tools.launcher.observe.log_view import Source, merged
from tools.launcher.store.records import RunRecord

MOST_LINES = 10_000
"""Lines of one job read at a time."""


class ReadsLogs(Protocol):
    """The part of the gateway that reads logs."""

    def log_page(self, job_id: str, *, after: int | None, most: int, task: int | None = None) -> LogPage:
        """See `IrisGateway.log_page`."""
        ...


class NoJobYet(Exception):
    """The job whose log is asked for was not submitted so far. The message says which."""


def sources_of(record: RunRecord, *, coordinator: bool, task: int | None) -> tuple[Source, ...]:
    """Return the jobs of a run whose logs are asked for; of several children the latest.

    Args:
        record: of the run.
        coordinator: the coordinator's alone.
        task: the one task's alone; None with `coordinator` False: all there are.

    Raises:
        NoJobYet: there is none of them.
    """
    found: list[Source] = []
    if record.coordinator_job_id is not None and task is None:
        # Its job has one task; the lines of its children would come with those of the job.
        found.append(Source(name="coordinator", job_id=record.coordinator_job_id, task=0))
    if record.child_job_ids and not coordinator:
        found.append(Source(name="task", job_id=record.child_job_ids[-1], task=task))
    if not found:
        what = "coordinator" if record.coordinator_job_id is None else "child job"
        why = f": {record.reason}" if record.reason else ""
        raise NoJobYet(
            f"the run {record.key.short_name} is {record.state}{why}, and its {what} is not submitted"
            f"{'' if record.state.is_final else ' yet'}"
        )
    return tuple(found)


class LogReader:
    """Reads the logs of several jobs, each from where it stopped."""

    def __init__(self, gateway: ReadsLogs, attempt: int | None) -> None:
        """Read through `gateway`; only lines of the tasks' start number `attempt`, None for all."""
        self._gateway, self._attempt = gateway, attempt
        self._cursors: dict[Source, int] = {}

    def latest(self, sources: Sequence[Source], most: int | None) -> list[tuple[Source, LogLine]]:
        """Return the last lines of the jobs together, oldest first.

        Args:
            sources: the jobs.
            most: lines; None for all that one page has.

        Raises:
            IrisError: as `IrisGateway.log_page`.
        """
        # Lines of another start are dropped after they were read.
        ask = most if most and self._attempt is None else MOST_LINES
        lines = merged([(source, self._page(source, None, ask)) for source in sources])
        return lines if most is None else lines[max(len(lines) - most, 0) :]

    def news(self, sources: Sequence[Source]) -> list[tuple[Source, LogLine]]:
        """Return what was written since. Raises as `latest`."""
        return merged([(source, self._since(source)) for source in sources])

    def _since(self, source: Source) -> list[LogLine]:
        lines: list[LogLine] = []
        while True:
            before = self._cursors.get(source, 0)
            lines += self._page(source, before, MOST_LINES)
            if self._cursors[source] == before:
                return lines

    def _page(self, source: Source, after: int | None, most: int) -> list[LogLine]:
        page = self._gateway.log_page(source.job_id, after=after, most=most, task=source.task)
        self._cursors[source] = page.cursor
        return [line for line in page.lines if self._attempt in (None, line.attempt)]
