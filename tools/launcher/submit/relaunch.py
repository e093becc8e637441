"""Which ordinal a relaunch gets, and when there may be none."""

import time
from collections.abc import Callable, Sequence

from tools.launcher.iris.jobs import is_terminal
from tools.launcher.store.records import RunRecord, RunState
from tools.launcher.submit.settle import Describes

# The scheduler ends the children of a job that has ended within seconds.
QUIET_SECONDS = 30.0
_POLL_SECONDS = 0.5


class RelaunchRefused(Exception):
    """A new attempt may not be started now. The message says which attempt is in the way and what to do."""


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
    gateway: Describes,
    records: Sequence[RunRecord],
    *,
    seconds: float = QUIET_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return when no job of these attempts runs any more: two gangs must never write one checkpoint root.

    Args:
        gateway: the scheduler.
        records: of the attempts, ended by their records.
        seconds: how long jobs that are being ended may take.
        clock, sleep: monotonic seconds, and waiting; tests give their own.

    Raises:
        RelaunchRefused: a job still runs.
        IrisError: as the gateway.
    """
    deadline = clock() + seconds
    for record in records:
        for job_id in (*record.child_job_ids, *filter(None, [record.coordinator_job_id])):
            while (job := gateway.describe(job_id)) is not None and not is_terminal(job.state):
                if clock() >= deadline:
                    raise RelaunchRefused(
                        f"{record.key} is {record.state}, but its job {job_id} is still {job.state} after "
                        f"{seconds:g} s, and two attempts would write the same checkpoints. "
                        "Wait for its end or cancel it, then relaunch"
                    )
                sleep(_POLL_SECONDS)
