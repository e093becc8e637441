"""Which ordinal a relaunch gets, and when there may be none."""

from collections.abc import Sequence

from tools.launcher.store.records import RunRecord, RunState


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
