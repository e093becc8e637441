"""Which ordinal a relaunch gets, and when there may be none."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tools.launcher.iris.jobs import JobFacts, is_terminal
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import RunRecord, RunState
from tools.launcher.store.version_claims import latest_claim
from tools.launcher.submit.settle import LooksAtJobs, settle, working_children

# The scheduler ends the children of a job that has ended within seconds.
QUIET_SECONDS = 30.0
_POLL_SECONDS = 0.5
_SHOWN_DIGITS = 12


class RelaunchRefused(Exception):
    """A new attempt may not be started now. The message says which attempt is in the way and what to do."""


def prepare_relaunch(
    store: ObjectStore,
    gateway: LooksAtJobs,
    records: Sequence[RunRecord],
    by: str,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Bring the earlier attempts to their ends on record and return the ordinal of a new one.

    Args:
        store: where the records are.
        gateway: the scheduler that had their jobs.
        records: all records of one experiment and launch digest.
        by: who relaunches, `user@host`.
        clock, sleep: monotonic seconds, and waiting; tests give their own.

    Raises:
        RelaunchRefused: an attempt lives or may live, or a job of one does not end.
        IrisError, StoreError: as gateway and store.
    """
    settled = [settle(store, gateway, record, by) for record in records]
    ordinal = relaunch_ordinal(settled)
    wait_until_quiet(gateway, settled, clock=clock, sleep=sleep)
    # Those that had left jobs have none now: on record they are over, and pass their turn on.
    for record in settled:
        settle(store, gateway, record, by)
    return ordinal


def refuse_repinned(store: ObjectStore, step: Mapping[str, Any], runtime_commit: str) -> None:
    """Refuse a relaunch of a bundle whose version was launched by another recipe or runtime since.

    Args:
        store: shared by everybody who launches the version.
        step: the RL step, as the bundle's graph has it.
        runtime_commit: of the bundle.

    Raises:
        RelaunchRefused: the version's checkpoints may be the other's by now.
        StoreError: the store failed.
    """
    held = latest_claim(store, step["name"], step["version"])
    if held is None or held.fingerprint == step["fingerprint"]:
        return
    if held.fingerprint in (step.get("compatible") or ()):
        return
    if held.runtime != runtime_commit:
        what = f"with the runtime {held.runtime}, and this attempt's bundle is pinned to {runtime_commit}"
    else:
        what = (
            f"as another recipe ({held.fingerprint[:_SHOWN_DIGITS]}, this bundle's is "
            f"{step['fingerprint'][:_SHOWN_DIGITS]})"
        )
    raise RelaunchRefused(
        f"{step['name']}@{step['version']} was launched since by {held.by} at {held.at} {what}. Its checkpoints may "
        "be that launch's. Publish a fresh version and launch it, or relaunch the run of launch "
        f"sha256:{held.launch[:8]}"
    )


def relaunch_ordinal(records: Sequence[RunRecord]) -> int:
    """Return the ordinal of a new attempt: one more than the highest.

    Args:
        records: all records of one experiment and launch digest, settled (see `settle`).

    Raises:
        RelaunchRefused: nothing was launched yet, or an attempt lives or may live.
        ValueError: records of more than one launch.
    """
    if len({(record.key.experiment, record.key.launch_digest) for record in records}) > 1:
        raise ValueError("relaunch_ordinal takes the records of one experiment and launch digest")
    if not records:
        raise RelaunchRefused(
            "nothing to relaunch: this launch document was never submitted. Launch it without --relaunch"
        )
    for record in records:
        if record.state.is_live:
            raise RelaunchRefused(
                f"{record.key} is {record.state} as job {record.coordinator_job_id}. "
                "Wait for its end or cancel it, then relaunch"
            )
        if record.state is RunState.INTENT:
            raise RelaunchRefused(
                f"{record.key} was begun by {record.who} and its submission is not confirmed. "
                "Launch without --relaunch, which finds out what became of it"
            )
    return max(record.key.ordinal for record in records) + 1


def wait_until_quiet(
    gateway: LooksAtJobs,
    records: Sequence[RunRecord],
    *,
    seconds: float = QUIET_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return when no job of these attempts runs any more: two gangs must never write one checkpoint root.

    Args:
        gateway: the scheduler.
        records: attempts that have ended by their records; a job may take a moment longer, and a child whose
            coordinator gave up runs on.
        seconds: how long to wait in all.
        clock, sleep: monotonic seconds, and waiting; tests give their own.

    Raises:
        RelaunchRefused: a job still runs.
        IrisError: as the gateway.
    """
    deadline = clock() + seconds
    for record in records:
        while (job := _one_that_works(gateway, record)) is not None:
            if clock() >= deadline:
                raise RelaunchRefused(
                    f"{record.key} is {record.state}, but its job {job.job_id} is still {job.state} after "
                    f"{seconds:g} s, and two attempts would write the same checkpoints. "
                    "Wait for its end or cancel it, then relaunch"
                )
            sleep(_POLL_SECONDS)


def _one_that_works(gateway: LooksAtJobs, record: RunRecord) -> JobFacts | None:
    """A job of the run that has not ended."""
    job_id = record.coordinator_job_id
    job = None if job_id is None else gateway.describe(job_id)
    children = working_children(gateway, record)
    return next(iter(children), None) if job is None or is_terminal(job.state) else job
