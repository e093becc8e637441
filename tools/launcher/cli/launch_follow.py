"""What comes after a submission, or in its place: following the run, verifying it, saying how it ended.

What following and verifying need is imported when they begin: by then the job is on its way, and Iris takes longer to
start it.
"""

import contextlib
import shutil
import sys
import time
from pathlib import Path

from tools.launcher.cli import exit_codes
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.cli.launch_waiting import said_if_slow
from tools.launcher.iris.gateway import IrisGateway
from tools.launcher.iris.local.control import status
from tools.launcher.iris.local.state import LocalClusterError
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import RunKey, RunRecord, record_prefix, reload_record
from tools.launcher.store.remembered_reads import RememberedReads
from tools.launcher.submit.machine import SubmitOutcome, SubmitState
from tools.launcher.submit.settle import settle

GLANCE_SECONDS = 0.05
"""How often a record in a folder of this machine is asked whether it has another event."""

FULL_DISK_BYTES = 2**20
"""Free space below which the local Iris can't write its database."""

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
) -> int:
    """Bring a launch to its end after `submit_once` and return the exit status.

    Args:
        outcome: of the submission, or of the record alone.
        place: of the launch.
        store: the place's.
        gateway: the place's scheduler; None if the record alone decided.
        who: who launches.
        detach: return once the run has its job.
    """
    if gateway is not None and outcome.state in _SAID:
        print(f"coordinator: {outcome.job_id} ({_SAID[outcome.state]})", flush=True)
        if detach:
            store_flag = "" if place.keeps_own_store else f" --store={place.store_url}"
            print(
                "detached: follow it with `tools/bazel run //tools/launcher -- status "
                f"{outcome.key.experiment}{store_flag}`"
            )
            return exit_codes.OK
        return _follow(outcome.key, place, store, gateway, who)
    if outcome.state is SubmitState.FINISHED_BEFORE and outcome.record is not None:
        print(f"coordinator: {outcome.message}")
        return verify_and_show(outcome.record, place, store, gateway, who)
    sys.stderr.write(f"{'refused' if outcome.state in _REFUSALS else 'error'}: {outcome.message}\n")
    if outcome.state in _REFUSALS:
        return exit_codes.REFUSED
    return exit_codes.FAILED if outcome.state in _ENDED_BADLY else exit_codes.UNKNOWN


def _follow(key: RunKey, place: LaunchPlace, store: ObjectStore, gateway: IrisGateway, who: str) -> int:
    from tools.launcher.cli.progress_display import follow_on
    from tools.launcher.observe.progress import FollowEnd, follow

    # Each look reads the whole record again, and in a bucket each event is a request.
    waiting = _Waiting(place, store, key)
    looks = follow(RememberedReads(store), key, place.objects(), gateway, sleep=waiting.sleep)
    last = follow_on(sys.stdout, looks)
    if last.end in (FollowEnd.UNREACHABLE, FollowEnd.COORDINATOR_SILENT):
        help_ = "Launch again: that finds out what became of the run"
        if place.state is not None:
            help_ = (
                f"The local Iris: {status(place.state).note}. Launch again: that starts it if need be and "
                "finds out what became of the run"
            )
        sys.stderr.write(f"error: {last.message}. {help_}\n")
        return exit_codes.UNKNOWN
    record = reload_record(store, key)
    return verify_and_show(settle(store, gateway, record, who), place, store, gateway, who)


class _Waiting:
    """The pauses between two looks at a run."""

    def __init__(self, place: LaunchPlace, store: ObjectStore, key: RunKey) -> None:
        self._place, self._store, self._prefix = place, store, record_prefix(key)
        self._seen = 0

    def sleep(self, seconds: float) -> None:
        """Wait that long, or less if the record has another event, where looking for one costs nothing."""
        if not self._store.url.startswith("file:"):
            self._pause(seconds)
            return
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            # Of the last pause: what came during the look after it ends this one at once.
            before, self._seen = self._seen, len(self._store.list(self._prefix))
            if self._seen != before:
                return
            self._pause(min(left, GLANCE_SECONDS))

    def _pause(self, seconds: float) -> None:
        if self._place.state is not None:
            wait_on_disk(self._place.state, seconds)
        else:
            time.sleep(seconds)


def wait_on_disk(state: Path, seconds: float) -> None:
    """Wait, unless the disk is full: then Iris can write no change of state down and answers the old one
    for ever.

    Args:
        state: the state folder of the local Iris.
        seconds: how long.

    Raises:
        LocalClusterError: the disk of the state folder is full.
    """
    if shutil.disk_usage(state).free < FULL_DISK_BYTES:
        raise LocalClusterError(
            f"the disk of the state folder {state} is full, and neither the local Iris nor the run can go "
            "on. Free some space, then launch again: that finds out what became of the run"
        )
    time.sleep(seconds)


def verify_and_show(
    record: RunRecord, place: LaunchPlace, store: ObjectStore, gateway: IrisGateway | None, who: str
) -> int:
    """Verify a run that has ended, write the answer to its record, and show both."""
    from tools.launcher.cli.run_objects import objects_of
    from tools.launcher.cli.run_place import RunPlace, looking
    from tools.launcher.cli.verification_answer import answered
    from tools.launcher.observe.verify import verify_run

    print(f"coordinator job: {record.coordinator_job_id}")
    for child in record.child_job_ids:
        print(f"child job: {child}")
    print(f"recipe digest: sha256:{record.recipe_digest}")
    print(f"launch digest: sha256:{record.launch_digest}")
    print(f"record: {place.store_url}/{record_prefix(record.key)}")
    if place.object_root_url is not None:
        print(f"files: s3://, gs:// and local:// addresses are folders below {place.object_root_url}")
    if record.reason:
        sys.stderr.write(f"run {record.state.value}: {record.reason}\n")
        if _may_go_better(record):
            sys.stderr.write(
                'to try the same document again: the same command with --relaunch --authorize="who: why" '
                '(through Bazel: `-- --relaunch --authorize="who: why"`); it resumes from the newest whole '
                "checkpoint\n"
            )
    with contextlib.ExitStack() as stack:
        if gateway is None and not place.is_local:
            # The record alone decided the launch; what Iris still knows of its tasks belongs to the answer.
            gateway, _ = stack.enter_context(looking(RunPlace(place=place, elsewhere="")))
        with said_if_slow("reading what the run left"):
            verification = verify_run(record, store, place.objects(), gateway, objects=objects_of(place))
    return answered(store, record, who, verification)


def _may_go_better(record: RunRecord) -> bool:
    """True if a step failed, or the coordinator was ended; not if the plan itself is what was refused."""
    failures = [event.facts for event in record.events if event.kind == "failed"]
    return bool(failures and failures[-1].keys() & {"step", "interrupted", "job_id"})
