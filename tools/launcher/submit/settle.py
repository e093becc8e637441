"""Closing the record of a run whose coordinator ended without a word."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pydantic import ValidationError

from tools.launcher.iris.jobs import JobFacts, is_terminal
from tools.launcher.iris.route import EMBEDDED, Route
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import (
    RecordError,
    RunKey,
    RunRecord,
    append_event,
    load_record,
)

# What Iris puts before the task's own words: how it counts failures, and the exit code once more.
_COUNTED = re.compile(
    r"^(Cumulative failed task attempts exceeded max_task_failures: failures=\d+, limit=\d+(; |$))?"
    r"(Exit code: -?\d+\.?( |$))?"
)

_KILLED = (-9, 137)

ERROR_TAIL = 600  # Characters of the scheduler's error that go into the record: its last lines.


class LooksAtJobs(Protocol):
    """What is asked of the scheduler here; `iris.gateway.IrisGateway` has it."""

    def describe(self, job_id: str) -> JobFacts | None:
        """Return what the scheduler knows of a job, None if there is no such job."""
        ...

    def children(self, job_id: str) -> tuple[JobFacts, ...]:
        """Return the direct children of a job, none of one it does not know."""
        ...


def settle(store: ObjectStore, gateway: LooksAtJobs, record: RunRecord, by: str) -> RunRecord:
    """Return the record, brought to an end if its coordinator is gone.

    A coordinator killed outright cannot write its own failure; whoever sees that it is gone does. Where its
    child still works the failure says so (`child_running`): such a run is no longer followed by anyone, and is not
    over until a later call sees the child ended too.

    Args:
        store: where the record is.
        gateway: the scheduler.
        record: as last read.
        by: who asks, for the event.

    Returns:
        the record as it is now: unchanged while the job lives, with a `failed` event if the job
        ended, or was lost, and the coordinator had not recorded an end; with a `cancelled` event if its
        cancellation was asked for.

    Raises:
        IrisError, StoreError: as gateway and store.
    """
    waits_for_jobs = record.leaves_jobs
    if not (record.state.is_live or waits_for_jobs) or record.coordinator_job_id is None:
        return record
    job_id = record.coordinator_job_id
    job = gateway.describe(job_id)
    if job is not None and not is_terminal(job.state):
        return record
    left = [child.job_id for child in working_children(gateway, record)]
    # The coordinator's last event may have come between the questions.
    current = load_record(store, record.key) or record
    if (current.state.is_final and not waits_for_jobs) or (waits_for_jobs and left):
        return current
    if waits_for_jobs and current.events[-1].seq != record.events[-1].seq:
        return current
    if current.cancel_requests and not left:
        # Whoever asked for it was kept from seeing it done.
        facts = cancelled_facts(
            current.cancel_requests[-1].facts.get("authorized"), [job_id, *record.child_job_ids]
        )
        append_event(store, record.key, "cancelled", by, facts)
    else:
        reason = record.reason if waits_for_jobs else end_without_record(job_id, job)
        facts = {"reason": reason, "job_id": job_id, **({"child_running": ", ".join(left)} if left else {})}
        append_event(store, record.key, "failed", by, facts)
    return load_record(store, record.key) or current


def settled_record_of(
    store: ObjectStore, gateway: LooksAtJobs, route: Route, by: str
) -> Callable[[RunKey], RunRecord | None]:
    """Return a reader of records that settles those whose jobs are where `gateway` looks.

    Only of those can a missing job be told from one that is elsewhere. An embedded cluster belongs to one user
    of one machine: another's is elsewhere.

    Args:
        store: where records are.
        gateway: the scheduler at the end of `route`.
        route: how it is reached.
        by: who asks, `user@host`.
    """

    def read(key: RunKey) -> RunRecord | None:
        record = load_record(store, key)
        if record is None or route_of(record) != route:
            return record
        if route.scheduler == "embedded" and not is_own_machine(store, record, by):
            return record
        return settle(store, gateway, record, by)

    return read


def route_of(record: RunRecord) -> Route:
    """Return how the run's jobs are reached; a record from before routes were kept is of the embedded cluster.

    Raises:
        RecordError: it says something that is no route.
    """
    if not record.route:
        return EMBEDDED
    try:
        return Route.model_validate(record.route)
    except ValidationError as error:
        raise RecordError(
            f"{record.key}: its record names no usable route to a cluster: {error.errors()[0]['msg']}. It was "
            "written by another version of the launcher: use that one"
        ) from None


def is_own_machine(store: ObjectStore, record: RunRecord, by: str) -> bool:
    """True if a run on an embedded cluster is on this user's own: a store in a folder is never shared."""
    return store.url.startswith("file:") or record.who == by


def working_children(gateway: LooksAtJobs, record: RunRecord) -> list[JobFacts]:
    """Return the run's children that have not ended, also one that its coordinator had no time to record.

    Raises:
        IrisError: as the gateway.
    """
    jobs = [job for child in record.child_job_ids if (job := gateway.describe(child)) is not None]
    if record.coordinator_job_id is not None:
        jobs += gateway.children(record.coordinator_job_id)
    return [job for job in {job.job_id: job for job in jobs}.values() if not is_terminal(job.state)]


def cancelled_facts(authorized: object, jobs: Sequence[str]) -> dict[str, Any]:
    """Return the facts of a `cancelled` event.

    Args:
        authorized: `who: why`, as the request has it.
        jobs: ids of what ran.
    """
    return {"authorized": authorized, "reason": f"by {authorized}", "jobs": list(jobs)}


def end_without_record(job_id: str, job: JobFacts | None) -> str:
    """Say how a coordinator ended that recorded nothing.

    Args:
        job_id: its id.
        job: its facts, None if the scheduler has no such job any more.
    """
    if job is None:
        return f"Iris no longer knows the coordinator {job_id}; it was lost with the cluster's state"
    ends = [
        f"task {task.index} exit code {task.exit_code}{' (killed)' if task.exit_code in _KILLED else ''}"
        for task in job.tasks
        if task.exit_code is not None
    ]
    error = _COUNTED.sub("", " ".join(job.error.split())).replace("stderr: ", "it said last: ", 1)
    error = error[-ERROR_TAIL:].strip()
    details = "; ".join([*ends, *([error] if error else [])])
    return f"the coordinator {job_id} ended as '{job.state}' without recording a result" + (
        f" ({details})" if details else ""
    )
