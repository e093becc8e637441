"""Following one of several runs, a look at a time, and verifying it without many words."""

import contextlib
import time
from typing import TYPE_CHECKING

from tools.launcher.cli import exit_codes
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.cli.run_following import seen_cancelled
from tools.launcher.cli.sweep_ends import Ended
from tools.launcher.iris.gateway import IrisGateway
from tools.launcher.store.object_store import ObjectStore, StoreError, StoreUnavailable
from tools.launcher.store.records import RunKey, RunRecord, RunState, reload_record
from tools.launcher.submit.settle import settle

if TYPE_CHECKING:
    from tools.launcher.observe.status import RunStatus


STEPS_SECONDS = 2.0
"""Time between two lines that say how many steps a run has done."""


class Following:
    """A run that is followed beside others."""

    def __init__(
        self, key: RunKey, place: LaunchPlace, store: ObjectStore, gateway: IrisGateway, who: str
    ) -> None:
        """Follow a run.

        Args:
            key: which.
            place: where it is.
            store: of its record.
            gateway: the scheduler.
            who: who looks, for what is written to the record at the end.
        """
        # Imported here: by now the job is on its way, and Iris takes longer to start it.
        from tools.launcher.observe.progress import Follower
        from tools.launcher.store.remembered_reads import RememberedReads

        self.key = key
        self._place, self._store, self._gateway, self._who = place, store, gateway, who
        self._follower = Follower(RememberedReads(store), key, place.objects(), gateway)
        self._said = RunState.SUBMITTED.value  # which whoever submitted it has said
        self._steps = ""
        self._steps_news = ""
        self._steps_said_at = time.monotonic()

    def look(self) -> tuple[str, Ended | None]:
        """Return what is new in a few words, "" if nothing is, and how the run ended, None while it goes on.

        Raises:
            StoreError: the store failed.
        """
        from tools.launcher.observe.progress import FollowEnd

        progress = self._follower.look()
        if progress is None:
            return self._steps_if_due(), None
        status = progress.status
        if progress.end is None:
            # One line for a wait: Iris words its reason anew with every look.
            kind = status.state.value + (", waits" if status.pending_reason else "")
            self._see_steps(status)
            said, self._said = self._said, kind
            if said == kind:
                return self._steps_if_due(), None
            reason = f": {' '.join(status.pending_reason.split())}" if status.pending_reason else ""
            return kind + reason, None
        run = self.key.short_name
        if progress.end in (FollowEnd.UNREACHABLE, FollowEnd.COORDINATOR_SILENT) or (
            progress.end is FollowEnd.NOT_SUBMITTED and status.state is RunState.INTENT
        ):
            return "", Ended("not known", run, progress.message, exit_codes.UNKNOWN)
        if progress.end is FollowEnd.NOT_SUBMITTED:
            return "", Ended(status.state.value, run, progress.message, exit_codes.FAILED)
        record = settle(self._store, self._gateway, reload_record(self._store, self.key), self._who)
        record = seen_cancelled(self._store, record)
        return "", verified_quietly(record, self._place, self._store, self._gateway, self._who)

    def _see_steps(self, status: "RunStatus") -> None:
        """Note how many steps are done; where the runtime tells none before the end, nothing is said."""
        if status.step and status.state is RunState.RUNNING:
            steps = f"step {status.step}/{'?' if status.steps_expected is None else status.steps_expected}"
            self._steps_news = "" if steps == self._steps else steps

    def _steps_if_due(self) -> str:
        now = time.monotonic()
        if not self._steps_news or now - self._steps_said_at < STEPS_SECONDS:
            return ""
        self._steps, self._steps_news, self._steps_said_at = self._steps_news, "", now
        return self._steps


def verified_quietly(
    record: RunRecord, place: LaunchPlace, store: ObjectStore, gateway: IrisGateway | None, who: str
) -> Ended:
    """Verify a run that has ended and write the answer to its record, as `run_ending.verify_and_show` does.

    Args:
        record: of the run.
        place, store: of the launch.
        gateway: the scheduler; None if the record alone decided.
        who: who asks.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    from tools.launcher.cli.run_objects import objects_of
    from tools.launcher.cli.run_place import RunPlace, looking
    from tools.launcher.observe.verify import answer_on_record, is_open, record_verification, verify_run

    run = record.key.short_name
    ended_well = record.state is RunState.SUCCEEDED
    try:
        with contextlib.ExitStack() as stack:
            if gateway is None and not place.is_local:
                gateway, _ = stack.enter_context(looking(RunPlace(place=place, elsewhere="")))
            verification = verify_run(record, store, place.objects(), gateway, objects=objects_of(place))
        written = record_verification(store, record.key, who, verification)
    except StoreUnavailable:
        raise
    except StoreError as error:
        return Ended("not known", run, str(error), exit_codes.UNKNOWN)
    standing = written or answer_on_record(record)
    if standing is not None and standing.kind == "verified":
        return Ended("verified", run, "", exit_codes.OK)
    if not ended_well:
        reason = record.reason or "no reason was recorded"
        return Ended(record.state.value, run, f"{reason}. {_AGAIN}", exit_codes.FAILED)
    wrong = [
        f"{fact.name}: {fact.seen}, expected {fact.expected}" for fact in verification.facts if not fact.ok
    ]
    if is_open(record, verification):
        return Ended("not known", run, "; ".join(wrong), exit_codes.UNKNOWN)
    return Ended("not verified", run, "; ".join(wrong), exit_codes.FAILED)


_AGAIN = 'To try it again: the same command with --relaunch --authorize="who: why"'
