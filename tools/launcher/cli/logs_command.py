"""`logs`: what the coordinator and the tasks of a run wrote."""

import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.log_reading import MOST_LINES, LogReader, NoJobYet, sources_of
from tools.launcher.cli.run_place import (
    add_run_arguments,
    credentials_of,
    looking,
    place_of,
    store_of,
)
from tools.launcher.cli.run_selection import NAMING, SHORTENING, find_run
from tools.launcher.coordinator.scrub import Scrubber
from tools.launcher.documents.printable import printable, printable_lines
from tools.launcher.iris.gateway import IrisGateway
from tools.launcher.iris.jobs import IrisError, LogLine, is_terminal
from tools.launcher.observe.log_view import Source, record_lines, shown_line
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import RunRecord, reload_record
from tools.launcher.store.remembered_reads import RememberedReads
from tools.launcher.submit.gates.credentials import read_credentials
from tools.launcher.submit.source_state import read_source_state

DESCRIPTION = f"""Prints what the coordinator of a run and its tasks wrote, by time, each line with its
writer; of one writer alone the lines are as they were written. Terminal codes are left out, and so are the
values of the run's credentials, as far as they are in your environment. Of each job the last {MOST_LINES}
lines are read.

Where Iris has no line of the run any more, or cannot be asked, the record's own account is printed: its
events, and the end of what a failed program wrote; with --tail the last lines of it. A note on stderr says so.

{NAMING} {SHORTENING}

Exit status: 0 printed, 2 no such run or task, or wrong usage, 4 Iris or the store did not answer, or the job
is not submitted yet, 130 interrupted; the run goes on.

examples:
  tools/bazel run //tools/launcher -- logs cat_count
  tools/bazel run //tools/launcher -- logs cat_count --coordinator --tail=20
  tools/bazel run //tools/launcher -- logs cat_count/2f1bbe6d/1 --task=0 --attempt=1
  tools/bazel run //tools/launcher -- logs gsm8k_grpo --follow --store=gs://lab/slipway"""

POLL_SECONDS = 1.0
"""Pause between two questions for new lines."""

_RECORD_SAYS = "This is what the record says of the run:"

LATE_SECONDS = 1.5
"""Iris has a line about half a second after it was written; the last ones are waited for."""


def add_arguments(parser: Any) -> None:
    """Add the flags of `logs`."""
    add_run_arguments(parser)
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument("--task", type=int, metavar="N", help="of this task of the gang alone, from 0")
    whose.add_argument("--coordinator", action="store_true", help="of the coordinator alone")
    parser.add_argument(
        "--attempt",
        type=int,
        metavar="N",
        help="of this start of each task alone, from 1; Iris may start one again",
    )
    parser.add_argument("--tail", type=int, metavar="N", help="the last N lines alone")
    parser.add_argument("--follow", action="store_true", help="go on with what is written until the run ends")


@reporting
def run(flags: Any) -> int:
    """Print logs; see DESCRIPTION."""
    for name, least in (("task", 0), ("attempt", 1), ("tail", 1)):
        value = getattr(flags, name)
        if value is not None and value < least:
            sys.stderr.write(f"error: --{name}={value}: give a number from {least}\n")
            return exit_codes.USAGE
    store = RememberedReads(store_of(flags, os.environ))
    record = find_run(store, flags.run)
    where = place_of(record, store, flags, os.environ, read_source_state(os.environ).who)
    names = [name for name in credentials_of(record) if name in os.environ]
    scrubber = Scrubber(tuple(read_credentials(os.environ, names).values()))
    with looking(where) as (gateway, problem):
        if gateway is None:
            return _of_the_record(record, scrubber, problem, flags.tail)
        try:
            return _Logs(flags, store, gateway, scrubber).show(record)
        except NoJobYet as none:
            sys.stderr.write(
                f"error: {printable_lines(str(none))}. Look where it stands: `launcher status`\n"
            )
            return exit_codes.UNKNOWN
        except IrisError as error:
            return _of_the_record(record, scrubber, str(error), flags.tail)
        except KeyboardInterrupt:
            sys.stderr.write(f"\ninterrupted: the run {record.key.short_name} goes on\n")
            return exit_codes.INTERRUPTED


def _of_the_record(record: RunRecord, scrubber: Scrubber, problem: str, tail: int | None) -> int:
    sys.stderr.write(f"error: {printable_lines(problem)}. {_RECORD_SAYS}\n")
    _print_record(record, scrubber, tail)
    return exit_codes.UNKNOWN


def _print_record(record: RunRecord, scrubber: Scrubber, tail: int | None) -> None:
    lines = record_lines(record)
    _print(scrubber.clean(line) for line in lines[-tail if tail else 0 :])


class _Logs:
    """One call of the command."""

    def __init__(self, flags: Any, store: ObjectStore, gateway: IrisGateway, scrubber: Scrubber) -> None:
        self._flags, self._store, self._gateway, self._scrubber = flags, store, gateway, scrubber
        self._reader = LogReader(gateway, flags.attempt)

    def show(self, record: RunRecord) -> int:
        """Print what there is and, if asked, what comes. Raises NoJobYet, IrisError, StoreError."""
        if self._flags.follow:
            record = self._submitted(record)
        sources = self._sources(record)
        problem = self._no_such_task(sources)
        if problem:
            sys.stderr.write(f"error: {problem}\n")
            return exit_codes.USAGE
        lines = self._reader.latest(sources, self._flags.tail)
        self._write(lines)
        if self._flags.follow:
            self._follow(record)
        elif not lines:
            self._explain(record, sources)
        return exit_codes.OK

    def _sources(self, record: RunRecord) -> tuple[Source, ...]:
        return sources_of(record, coordinator=self._flags.coordinator, task=self._flags.task)

    def _submitted(self, record: RunRecord) -> RunRecord:
        """Wait until there is a job to read of; a run that ended will have none."""
        while True:
            try:
                self._sources(record)
            except NoJobYet:
                if self._is_over(record):
                    raise
            else:
                return record
            time.sleep(POLL_SECONDS)
            record = reload_record(self._store, record.key)

    def _follow(self, record: RunRecord) -> None:
        while not self._is_over(record):
            time.sleep(POLL_SECONDS)
            record = reload_record(self._store, record.key)
            self._write(self._reader.news(self._sources(record)))
        time.sleep(LATE_SECONDS)
        self._write(self._reader.news(self._sources(record)))
        why = f": {printable_lines(record.reason)}" if record.reason else ""
        sys.stderr.write(f"note: the run is {record.state}{why}; nothing more is written\n")

    def _is_over(self, record: RunRecord) -> bool:
        """True if nothing of the run works any more, by its record or because Iris lost its coordinator."""
        if not (record.state.is_live or record.leaves_jobs):
            return True
        job = self._gateway.describe(record.coordinator_job_id) if record.coordinator_job_id else None
        return job is None or is_terminal(job.state)

    def _no_such_task(self, sources: Sequence[Source]) -> str:
        """Say what tasks there are if the one that is asked for is not among them."""
        if self._flags.task is None:
            return ""
        job = self._gateway.describe(sources[-1].job_id)
        if job is None or not job.tasks or self._flags.task < len(job.tasks):
            return ""
        count = len(job.tasks)
        known = "one task, 0" if count == 1 else f"{count} tasks, 0 to {count - 1}"
        return f"--task={self._flags.task}: the run has {known}"

    def _explain(self, record: RunRecord, sources: Sequence[Source]) -> None:
        """Say why there is no line."""
        known = [self._gateway.describe(source.job_id) for source in sources]
        starts = max((task.attempts for job in known if job is not None for task in job.tasks), default=0)
        if self._flags.attempt is not None and 0 < starts < self._flags.attempt:
            times = "once" if starts == 1 else f"{starts} times"
            sys.stderr.write(
                f"note: no line of attempt {self._flags.attempt}: no task was started more than {times}\n"
            )
            return
        for job in known:
            if job is not None and not is_terminal(job.state):
                why = f": {printable_lines(job.pending_reason)}" if job.pending_reason else ""
                sys.stderr.write(f"note: {job.job_id} is {job.state} and has written nothing yet{why}\n")
                return
        if self._flags.attempt is not None and any(job is not None for job in known):
            sys.stderr.write(f"note: no line of attempt {self._flags.attempt}\n")
            return
        jobs = printable(", ".join(source.job_id for source in sources))
        sys.stderr.write(f"note: Iris has no line of {jobs} any more. {_RECORD_SAYS}\n")
        _print_record(record, self._scrubber, self._flags.tail)

    def _write(self, lines: Sequence[tuple[Source, LogLine]]) -> None:
        several = self._flags.task is None and not self._flags.coordinator
        width = len("coordinator") if several else 0
        _print(shown_line(source, line, self._scrubber.clean, width=width) for source, line in lines)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
    sys.stdout.flush()
