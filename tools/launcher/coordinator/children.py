"""The child job of an attempt: found by its name, recorded, followed, and ended when the run has failed.

The name holds the attempt id, which follows from launch digest and ordinal, and only this run's coordinator
submits below its own job: a child of this name is this attempt's, whichever start of the coordinator made it.
"""

import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from tools.launcher.coordinator.attempt import Attempt
from tools.launcher.iris.jobs import IrisError, IrisUnreachable, JobFacts, is_terminal
from tools.launcher.store.object_store import StoreUnavailable
from tools.launcher.store.records import EventKind

Record = Callable[[EventKind, dict[str, Any]], None]

_POLL_SECONDS: Final = 1.0
_END_SECONDS: Final = 60.0
PATIENCE_SECONDS: Final = 1800.0
"""How long a child is followed without an answer from Iris, which a controller's restart takes seconds of."""


class Scheduler(Protocol):
    """What the coordinator needs of Iris (`tools.launcher.iris.gateway.IrisGateway` has it)."""

    def job_id_of(self, user: str, name: str) -> str:
        """Return the id a job of this name gets."""
        ...

    def describe(self, job_id: str) -> JobFacts | None:
        """Return what is known about a job."""
        ...

    def cancel(self, job_id: str) -> None:
        """End a job."""
        ...

    def fail_this_task(self, reason: str) -> None:
        """End the calling task as failed, for good."""
        ...


class ChildLost(Exception):
    """A child that ran can no longer be followed. The message names it."""


class Child:
    """The child job of one attempt, which may or may not exist yet."""

    def __init__(
        self, attempt: Attempt, scheduler: Callable[[], Scheduler], record: Record, known: frozenset[str]
    ) -> None:
        """Prepare; nothing is asked yet.

        Args:
            attempt: whose child.
            scheduler: opens Iris, and gives the same connection each time; may raise IrisError.
            record: appends an event to the run record.
            known: children which the record has already.
        """
        self._attempt, self._scheduler, self._record = attempt, scheduler, record
        self._known = set(known)
        self._recorded = bool(known)

    def find(self) -> JobFacts | None:
        """Return the child's facts, None if it was never submitted. What is found is recorded.

        Raises:
            IrisError: Iris does not say.
        """
        iris = self._scheduler()
        facts = iris.describe(iris.job_id_of("coordinator", self._attempt.job_name))
        if facts is not None:
            self.found(facts.job_id)
        return facts

    def look(self) -> None:
        """Record the child as soon as there is one. Called often while the launcher runs.

        A scheduler or store that fails for a moment must not end a launcher that does well: the next look
        comes, and the launcher's answer names the child as well.
        """
        if not self._recorded:
            try:
                self.find()
            except (IrisError, StoreUnavailable):
                return

    def found(self, job_id: str) -> None:
        """Record the child, once.

        Raises:
            StoreError: it cannot be recorded.
        """
        if job_id not in self._known:
            self._record(
                "child_submitted",
                {
                    "job_id": job_id,
                    "job_name": self._attempt.job_name,
                    "attempt_id": self._attempt.attempt_id,
                    "attempt_digest": self._attempt.digest,
                },
            )
            self._known.add(job_id)
        self._recorded = True

    def followed_to_its_end(self, facts: JobFacts, *, tick: Callable[[], None]) -> JobFacts:
        """Wait until a child that runs has ended, and return how.

        Args:
            facts: as found.
            tick: called before each question. What it raises ends the wait.

        Raises:
            ChildLost: Iris forgot it, or did not answer for PATIENCE_SECONDS.
        """
        answered = time.monotonic()
        while not is_terminal(facts.state):
            tick()
            time.sleep(_POLL_SECONDS)
            try:
                found = self.find()
            except IrisUnreachable as error:
                if time.monotonic() - answered > PATIENCE_SECONDS:
                    raise ChildLost(
                        f"Iris at {error.url} has not answered for {PATIENCE_SECONDS:g} s; the child job "
                        f"{facts.job_id} may still run. Cancel this run when Iris answers, then relaunch"
                    ) from None
                continue
            if found is None:
                raise ChildLost(
                    f"Iris no longer knows the child job {facts.job_id}. Relaunch: the new attempt resumes from "
                    "the last checkpoint"
                )
            facts, answered = found, time.monotonic()
        return facts

    def end(self) -> dict[str, str]:
        """End the child if it runs. Iris itself leaves it running when its parent fails.

        Returns:
            facts for the run record: `child_ended` names the child this call ended, `child_running` the one
            that may still run, with the reason; none if there was nothing to end.
        """
        job_id = ""
        try:
            facts = self.find()
            if facts is None or is_terminal(facts.state):
                return {}
            job_id = facts.job_id
            self._scheduler().cancel(job_id)
            deadline = time.monotonic() + _END_SECONDS
            while not is_terminal(facts.state):
                if time.monotonic() > deadline:
                    return {"child_running": f"{job_id} was cancelled and has not ended"}
                time.sleep(_POLL_SECONDS)
                facts = self.find() or facts
        except (IrisError, StoreUnavailable) as error:
            return {"child_running": f"{job_id or self._attempt.job_name} may still run: {error}"}
        return {"child_ended": job_id}
