"""Cancelling a run: the request is recorded, every job is ended and seen ended, then the end is recorded.

Whatever happens in between (no answer, a crash, Ctrl-C), the request stays on record and the next call goes on.
A run that succeeded meanwhile stays a success: `fold` lets no cancellation undo one.
"""

import enum
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from tools.launcher.iris.jobs import IrisError, JobFacts, JobRefused, is_terminal
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import (
    RunKey,
    RunRecord,
    RunState,
    append_event,
    put_first_event,
    reload_record,
)
from tools.launcher.submit.request import IRIS_USER, argument_of
from tools.launcher.submit.settle import LooksAtJobs, cancelled_facts, settle
from tools.launcher.submit.turns import is_over

# Iris stops the tasks of a cancelled job within seconds and kills what does not stop.
CANCEL_SECONDS = 60.0
_POLL_SECONDS = 0.5
_PROGRESS_SECONDS = 2.0

# A job counts as killed before its processes are gone (0.8 s, seen with marin-iris 0.2.227), and whoever launches
# next would share files with them.
_GONE_SECONDS = 2.0

# A child's children: the launcher of a runtime may start its gang as a job of its own.
_MAX_DEPTH = 4


class CancelEnd(enum.StrEnum):
    """How a call of `cancel_run` ended."""

    CANCELLED = "cancelled"
    OVER = "over"
    SUCCEEDED = "succeeded"
    STILL_WORKS = "still_works"
    UNREACHABLE = "unreachable"


class CancelOutcome(BaseModel):
    """What `cancel_run` found or did.

    Attributes:
        end: which end.
        record: as stored now.
        was: the run's jobs as first seen, the coordinator first.
        message: one sentence or two for the user.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    end: CancelEnd
    record: RunRecord
    was: tuple[JobFacts, ...]
    message: str


class CancelGateway(LooksAtJobs, Protocol):
    """What is asked of the scheduler; `iris.gateway.IrisGateway` has it."""

    def job_id_of(self, user: str, name: str) -> str:
        """Return the id a job of this user and name has."""
        ...

    def cancel(self, job_id: str) -> None:
        """End a job. Raises JobRefused if there is none or it may not be ended."""
        ...


def jobs_of(store: ObjectStore, gateway: CancelGateway, record: RunRecord) -> tuple[JobFacts, ...]:
    """Return the run's jobs as the scheduler has them, ended or not: the coordinator, then its children.

    A job that has the coordinator's name and is not of this run (another launch, another store) is nobody's
    to end here, and is left out with its children.

    Raises:
        IrisError: as the gateway.
    """
    found: dict[str, JobFacts] = {}
    coordinator_id = coordinator_id_of(gateway, record)
    coordinator = None if coordinator_id is None else gateway.describe(coordinator_id)
    if coordinator is not None and _is_of(coordinator, record, store):
        found[coordinator.job_id] = coordinator
        _add_descendants(gateway, coordinator.job_id, found, _MAX_DEPTH)
    for job_id in record.child_job_ids:
        if job_id not in found and (child := gateway.describe(job_id)) is not None:
            found[job_id] = child
            _add_descendants(gateway, job_id, found, _MAX_DEPTH)
    return tuple(found.values())


def coordinator_id_of(gateway: CancelGateway, record: RunRecord) -> str | None:
    """Return the id the coordinator has or would have, None for a run that was never about to have one."""
    if record.coordinator_job_id is not None:
        return record.coordinator_job_id
    opening = record.events[0].facts
    user = opening.get("user")
    return (
        None
        if record.job_name is None
        else gateway.job_id_of(user if isinstance(user, str) else IRIS_USER, record.job_name)
    )


def works(jobs: Iterable[JobFacts]) -> tuple[JobFacts, ...]:
    """Those that have not ended."""
    return tuple(job for job in jobs if not is_terminal(job.state))


def job_words(job: JobFacts) -> str:
    """Return a job in words: its id, state and tasks."""
    running = sum(task.state == "running" for task in job.tasks)
    tasks = f", {running} of {len(job.tasks)} tasks running" if job.tasks and job.state == "running" else ""
    return f"{job.job_id} ({job.state}{tasks})"


def cancel_run(
    store: ObjectStore,
    gateway: CancelGateway,
    record: RunRecord,
    *,
    by: str,
    authorized: str,
    say: Callable[[str], None],
    reached: str = "",
    seconds: float = CANCEL_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> CancelOutcome:
    """End a run's jobs, see them ended, and record it.

    Args:
        store: where the record is.
        gateway: the scheduler that has the run's jobs.
        record: as just read.
        by: who runs the command, `user@host`.
        authorized: who answers for it and why, `who: why`.
        say: shows a line of progress.
        reached: how far the run came, for the record.
        seconds: how long to wait for the jobs' end.
        clock, sleep: monotonic seconds, and waiting; tests give their own.

    Raises:
        StoreError: the store failed; call again when it works.
    """
    if is_over(record) and record.state.is_final:
        return _over(record, ())
    facts: dict[str, Any] = {"authorized": authorized, **({"reached": reached} if reached else {})}
    try:
        jobs = jobs_of(store, gateway, record)
        if record.leaves_jobs and not works(jobs):
            return _over(settle(store, gateway, record, by), jobs)
        _request(store, record, by, facts, [job.job_id for job in jobs])
        left, refusal = _end(store, gateway, record, say, seconds, clock, sleep)
    except IrisError as error:
        _request(store, record, by, facts, _known_jobs(record))
        return CancelOutcome(
            end=CancelEnd.UNREACHABLE,
            record=reload_record(store, record.key),
            was=(),
            message=f"{error}. The request to cancel is on record: call this again, which goes on",
        )
    if left:
        return CancelOutcome(
            end=CancelEnd.STILL_WORKS,
            record=reload_record(store, record.key),
            was=jobs,
            message=(
                f"not ended after {seconds:g} s: {', '.join(map(job_words, left))}{refusal}. The request to "
                "cancel is on record: call this again, which goes on"
            ),
        )
    return _record_end(store, gateway, record.key, by, authorized, facts, jobs)


def request_cancel(store: ObjectStore, record: RunRecord, *, by: str, authorized: str) -> None:
    """Record that a run is to be cancelled, where its cluster cannot be asked now.

    Raises:
        StoreError: the store failed.
    """
    _request(store, record, by, {"authorized": authorized}, _known_jobs(record))


def cancel_unrecorded(store: ObjectStore, key: RunKey, *, by: str, authorized: str) -> CancelOutcome | None:
    """Close a run of which only its turn is known: from then on nothing submits it.

    A record has one first event. Where this writes it, a launcher that is about to record its intent finds the
    run cancelled instead.

    Args:
        store: where the record would be.
        key: the run.
        by: who runs the command.
        authorized: `who: why`.

    Returns:
        the outcome, None if the run has a record by now: cancel that.

    Raises:
        StoreError: the store failed.
    """
    _, fresh = put_first_event(store, key, "cancel_requested", by, {"authorized": authorized, "jobs": []})
    if not fresh:
        return None
    append_event(store, key, "cancelled", by, {**cancelled_facts(authorized, []), "states": {}})
    return CancelOutcome(
        end=CancelEnd.CANCELLED,
        record=reload_record(store, key),
        was=(),
        message=f"{key} is cancelled by {authorized}; it had no job",
    )


def _over(record: RunRecord, jobs: tuple[JobFacts, ...]) -> CancelOutcome:
    why = f": {record.reason}" if record.reason else ""
    return CancelOutcome(
        end=CancelEnd.OVER,
        record=record,
        was=jobs,
        message=f"{record.key} is over, nothing to cancel: {record.state}{why}",
    )


def _known_jobs(record: RunRecord) -> list[str]:
    return [job_id for job_id in (record.coordinator_job_id, *record.child_job_ids) if job_id]


def _request(
    store: ObjectStore, record: RunRecord, by: str, facts: dict[str, Any], jobs: Sequence[str]
) -> None:
    """Record the request, unless it is on record as it was made."""
    requests = reload_record(store, record.key).cancel_requests
    if any(event.facts.get("authorized") == facts["authorized"] for event in requests):
        return
    append_event(store, record.key, "cancel_requested", by, {**facts, "jobs": list(jobs)})


def _end(
    store: ObjectStore,
    gateway: CancelGateway,
    record: RunRecord,
    say: Callable[[str], None],
    seconds: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> tuple[tuple[JobFacts, ...], str]:
    """End every job until none works or the time is over; return what works still, and what Iris said."""
    begin = clock()
    shown = begin
    asked: set[str] = set()
    refusal = ""
    while True:
        # The record is read anew: a coordinator may start a child while it is being ended.
        left = works(jobs_of(store, gateway, reload_record(store, record.key)))
        if not left or clock() - begin >= seconds:
            if asked and not left:
                sleep(_GONE_SECONDS)
            return left, refusal
        for job in left:
            if job.job_id in asked:
                continue
            asked.add(job.job_id)
            try:
                gateway.cancel(job.job_id)
            except JobRefused as error:
                refusal = f" ({error})"
        if clock() - shown >= _PROGRESS_SECONDS:
            shown = clock()
            say(f"ending ({shown - begin:.0f} s): {', '.join(map(job_words, left))}")
        sleep(_POLL_SECONDS)


def _record_end(
    store: ObjectStore,
    gateway: CancelGateway,
    key: RunKey,
    by: str,
    authorized: str,
    facts: dict[str, Any],
    was: tuple[JobFacts, ...],
) -> CancelOutcome:
    record = reload_record(store, key)
    if record.state not in (RunState.SUCCEEDED, RunState.CANCELLED):
        try:
            now = jobs_of(store, gateway, record)
        except IrisError:
            now = was
        append_event(
            store,
            key,
            "cancelled",
            by,
            {
                **facts,
                **cancelled_facts(authorized, [job.job_id for job in now]),
                "states": {job.job_id: job.state for job in now},
            },
        )
        record = reload_record(store, key)
    if record.state is RunState.SUCCEEDED:
        return CancelOutcome(
            end=CancelEnd.SUCCEEDED,
            record=record,
            was=was,
            message=f"{key} succeeded before the cancellation reached it, and stays a success",
        )
    return CancelOutcome(
        end=CancelEnd.CANCELLED,
        record=record,
        was=was,
        message=f"{key} is cancelled {record.reason or ''}".rstrip(),
    )


def _is_of(job: JobFacts, record: RunRecord, store: ObjectStore) -> bool:
    reports_to = argument_of(job.argv, "store")
    return argument_of(job.argv, "launch") == record.key.launch_digest and (
        reports_to is None or reports_to.rstrip("/") == store.url.rstrip("/")
    )


def _add_descendants(gateway: CancelGateway, job_id: str, found: dict[str, JobFacts], depth: int) -> None:
    for child in gateway.children(job_id):
        seen = child.job_id in found
        found[child.job_id] = child
        if depth > 1 and not seen:
            _add_descendants(gateway, child.job_id, found, depth - 1)
