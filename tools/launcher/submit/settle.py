"""Closing the record of a run whose coordinator ended without a word."""

import re
from typing import Protocol

from tools.launcher.iris.jobs import JobFacts, is_terminal
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import RunRecord, append_event, load_record

# What Iris puts before the task's own words: how it counts failures, and the exit code once more.
_COUNTED = re.compile(
    r"^(Cumulative failed task attempts exceeded max_task_failures: failures=\d+, limit=\d+(; |$))?"
    r"(Exit code: -?\d+\.?( |$))?"
)

_KILLED = (-9, 137)

ERROR_TAIL = 600  # Characters of the scheduler's error that go into the record: its last lines.


class Describes(Protocol):
    """The one thing asked of the scheduler here."""

    def describe(self, job_id: str) -> JobFacts | None:
        """Return what the scheduler knows of a job, None if there is no such job."""
        ...


def settle(store: ObjectStore, gateway: Describes, record: RunRecord, by: str) -> RunRecord:
    """Return the record, brought to an end if its coordinator is gone.

    A coordinator killed outright cannot write its own failure; whoever sees that it is gone does.

    Args:
        store: where the record is.
        gateway: the scheduler.
        record: as last read.
        by: who asks, for the event.

    Returns:
        the record as it is now: unchanged while the job lives, with a `failed` event if the job
        ended, or was lost, and the coordinator had not recorded an end.

    Raises:
        IrisError, StoreError: as gateway and store.
    """
    if not record.state.is_live or record.coordinator_job_id is None:
        return record
    job_id = record.coordinator_job_id
    job = gateway.describe(job_id)
    if job is not None and not is_terminal(job.state):
        return record
    # The coordinator's last event may have come between the two questions.
    current = load_record(store, record.key) or record
    if current.state.is_final:
        return current
    append_event(
        store, record.key, "failed", by, {"reason": end_without_record(job_id, job), "job_id": job_id}
    )
    return load_record(store, record.key) or current


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
