"""Submitting and following the points of a sweep, at most so many at a time."""

import time
from collections import deque
from collections.abc import Mapping, Sequence

from tools.launcher.cli import exit_codes
from tools.launcher.cli.errors import REPORTED, sentence_of, status_of
from tools.launcher.cli.launch_flow import NO_GATES, new_ordinal, submitted
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.cli.run_following import wait_on_disk
from tools.launcher.cli.sweep_ends import Ended
from tools.launcher.cli.sweep_follow import Following, verified_quietly
from tools.launcher.cli.sweep_work import ENDED_BADLY, Work
from tools.launcher.iris.gateway import IrisGateway
from tools.launcher.iris.jobs import IrisError
from tools.launcher.store.object_store import ObjectStore, StoreError, StoreUnavailable
from tools.launcher.submit.gates.gate import GateReport
from tools.launcher.submit.machine import SubmitOutcome, SubmitState

SHORTEST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 5.0
QUIET_SHARE = 0.1
"""Pause between two rounds of looks elsewhere, as a share of the time since the last change."""

_AT_WORK = {SubmitState.SUBMITTED: "submitted", SubmitState.ADOPTED: "already submitted"}
_REFUSALS = (SubmitState.TAKEN, SubmitState.CONFLICT, SubmitState.REFUSED)


class Calls:
    """The points that are submitted and followed; `ends` tells how each ended."""

    def __init__(
        self,
        store: ObjectStore,
        gateway: IrisGateway,
        place: LaunchPlace,
        reports: Mapping[str, GateReport],
        at_most: int | None,
        of: int,
    ) -> None:
        """Prepare.

        Args:
            store, gateway, place: where the points go.
            reports: the gates of each point that is submitted.
            at_most: so many points have a job at a time; None: any number.
            of: how many points the sweep has; those that are not submitted or followed are over.
        """
        self.ends: dict[str, Ended] = {}
        self._store, self._gateway, self._place = store, gateway, place
        self._reports, self._at_most = reports, at_most
        self._work: deque[Work] = deque()
        self._following: dict[str, Following] = {}
        self._changed_at = time.monotonic()
        self._of, self._over = of, of

    def run(self, work: Sequence[Work]) -> None:
        """Submit every point and follow it to its end.

        Raises:
            KeyboardInterrupt: `interrupted` says what goes on.
            LocalClusterError: the disk of the local Iris is full.
        """
        self.submit(work)
        while self._following:
            self._look()
            self._begin()

    def submit(self, work: Sequence[Work]) -> None:
        """Submit points as long as there is room."""
        self._over = self._of - len(work)
        # Those that have a job take their places first.
        self._work.extend(sorted(work, key=lambda one: one.kind != "follow"))
        self._begin()

    def leave(self) -> None:
        """Stop here: what runs goes on, and what waits is for another call."""
        for name, following in self._following.items():
            self.ends[name] = Ended("running", following.key.short_name, "", exit_codes.OK)
        for one in self._work:
            self.ends[one.each.name] = Ended("waits", "", "", exit_codes.OK)

    def interrupted(self) -> str:
        """Return what to tell somebody who interrupted this."""
        return (
            f"interrupted: {len(self._following)} submitted, {len(self._work)} left or being submitted, "
            f"{len(self.ends)} over. What was submitted goes on; the same command finds it and goes on with the sweep"
        )

    def _begin(self) -> None:
        while self._work and (self._work[0].kind == "follow" or self._has_room()):
            self._start(self._work[0])

    def _has_room(self) -> bool:
        return self._at_most is None or len(self._following) < self._at_most

    def _start(self, one: Work) -> None:
        """Submit a point; what keeps it from that is its end, and keeps no other from it."""
        name = one.each.name
        try:
            outcome = self._submitted(one)
        except REPORTED as error:
            self._work.popleft()
            status = status_of(error)
            word = "not known" if status == exit_codes.UNKNOWN else "refused"
            self._end(name, Ended(word, one.standing.run, sentence_of(error), status))
            if isinstance(error, IrisError | StoreUnavailable):
                self._give_up(sentence_of(error))
            return
        self._work.popleft()
        if outcome.state in _AT_WORK:
            who = one.each.launching.source.who
            self._following[name] = Following(outcome.key, self._place, self._store, self._gateway, who)
            print(f"{name}: {outcome.job_id} ({_AT_WORK[outcome.state]})", flush=True)
            return
        self._end(name, self._ended(one, outcome))
        if outcome.state is SubmitState.UNREACHABLE:
            self._give_up(outcome.message)

    def _submitted(self, one: Work) -> SubmitOutcome:
        launching, ordinal = one.each.launching, one.ordinal
        if one.kind == "relaunch":
            ordinal = new_ordinal(launching, self._store, self._gateway, one.standing.attempts)
        else:
            launching = launching.model_copy(update={"authorized": None})
        if one.kind == "follow":
            launching = launching.model_copy(update={"credentials": ()})
        report = self._reports.get(one.each.name, NO_GATES)
        return submitted(launching, self._store, self._gateway, ordinal, report)

    def _ended(self, one: Work, outcome: SubmitOutcome) -> Ended:
        run = outcome.key.short_name
        if outcome.state is SubmitState.FINISHED_BEFORE and outcome.record is not None:
            who = one.each.launching.source.who
            return verified_quietly(outcome.record, self._place, self._store, self._gateway, who)
        if outcome.state in ENDED_BADLY:
            return Ended("failed", run, outcome.message, exit_codes.FAILED)
        if outcome.state in _REFUSALS:
            return Ended("refused", run, outcome.message, exit_codes.REFUSED)
        return Ended("not known", run, outcome.message, exit_codes.UNKNOWN)

    def _give_up(self, why: str) -> None:
        """Nobody answers: what is left is for another call."""
        for one in self._work:
            self._end(one.each.name, Ended("not tried", one.standing.run, why, exit_codes.UNKNOWN))
        self._work.clear()

    def _look(self) -> None:
        for name, following in list(self._following.items()):
            try:
                words, ended = following.look()
            except (StoreError, IrisError) as error:
                # The run goes on; another call finds out what became of it.
                run = following.key.short_name
                words, ended = "", Ended("not known", run, sentence_of(error), exit_codes.UNKNOWN)
                if isinstance(error, StoreUnavailable):
                    self._give_up(sentence_of(error))
            if words:
                print(f"{name}: {words}", flush=True)
            if ended is not None:
                del self._following[name]
                self._end(name, ended)
            if words or ended is not None:
                self._changed_at = time.monotonic()
        if self._following:
            self._pause()

    def _pause(self) -> None:
        if self._place.state is not None and self._place.state.is_dir():
            wait_on_disk(self._place.state, SHORTEST_PAUSE_SECONDS)
            return
        quiet = time.monotonic() - self._changed_at
        time.sleep(SHORTEST_PAUSE_SECONDS + min(quiet * QUIET_SHARE, LONGEST_PAUSE_SECONDS))

    def _end(self, name: str, ended: Ended) -> None:
        self.ends[name] = ended
        self._over += 1
        print(f"{name}: {ended.word} ({self._over}/{self._of} over)", flush=True)
