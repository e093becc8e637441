"""What comes after a submission, or in its place: following the run, verifying it, saying how it ended."""

import sys

from tools.launcher.cli import exit_codes
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.cli.run_ending import verify_and_show
from tools.launcher.cli.run_following import follow_to_end, watch_command
from tools.launcher.iris.gateway import IrisGateway
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.submit.machine import SubmitOutcome, SubmitState

_REFUSALS = (SubmitState.CONFLICT, SubmitState.REFUSED, SubmitState.TAKEN)
_ENDED_BADLY = (SubmitState.FAILED_BEFORE, SubmitState.CANCELLED_BEFORE)
_SAID = {
    SubmitState.SUBMITTED: "submitted",
    SubmitState.ADOPTED: "already submitted: following it",
}


def conclude(
    outcome: SubmitOutcome,
    place: LaunchPlace,
    store: ObjectStore,
    gateway: IrisGateway | None,
    *,
    who: str,
    detach: bool,
    again: str,
) -> int:
    """Bring a launch to its end after `submit_once` and return the exit status.

    Args:
        outcome: of the submission, or of the record alone.
        place: of the launch.
        store: the place's.
        gateway: the place's scheduler; None if the record alone decided.
        who: who launches.
        detach: return once the run has its job.
        again: the command line that relaunches the run, but for --authorize.
    """
    if gateway is not None and outcome.state in _SAID:
        print(f"coordinator: {outcome.job_id} ({_SAID[outcome.state]})", flush=True)
        if detach:
            print(f"detached: follow it with `{watch_command(outcome.key, place)}`")
            return exit_codes.OK
        return follow_to_end(outcome.key, place, store, gateway, who, again=again)
    if outcome.state is SubmitState.FINISHED_BEFORE and outcome.record is not None:
        print(f"coordinator: {outcome.message}")
        return verify_and_show(outcome.record, place, store, gateway, who, again=again)
    sys.stderr.write(f"{'refused' if outcome.state in _REFUSALS else 'error'}: {outcome.message}\n")
    if outcome.state in _REFUSALS:
        return exit_codes.REFUSED
    return exit_codes.FAILED if outcome.state in _ENDED_BADLY else exit_codes.UNKNOWN
