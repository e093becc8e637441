"""Following a run until it ends, or until it is certain that nobody will ever end it."""

import enum
import time
from collections.abc import Callable, Iterator

from pydantic import BaseModel, ConfigDict

from tools.launcher.observe.newest_checkpoint import Checkpoints
from tools.launcher.observe.scheduler import Describes
from tools.launcher.observe.status import RunStatus, read_status
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import ObjectStore, StoreError, StoreUnavailable
from tools.launcher.store.records import RunKey, RunState, load_record

POLL_SECONDS = 0.5

# A controller restart takes seconds; a scheduler away for longer is somebody's task to bring back.
UNREACHABLE_SECONDS = 60.0

# The coordinator looks at its child every second or so and then writes the end. Two minutes leave room for a
# store that is slow, and bound the wait for a coordinator that is stuck.
SILENCE_SECONDS = 120.0


class FollowEnd(enum.StrEnum):
    """Why following ended."""

    FINISHED = "finished"
    NOT_SUBMITTED = "not_submitted"
    COORDINATOR_GONE = "coordinator_gone"
    COORDINATOR_SILENT = "coordinator_silent"
    UNREACHABLE = "unreachable"


class Progress(BaseModel):
    """One look at a run.

    Attributes:
        status: what was seen.
        end: set on the last look only.
        message: on the last look, a sentence for the user; else "".
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    status: RunStatus
    end: FollowEnd | None
    message: str


class NoSuchRun(StoreError):
    """There is no record to follow."""


def follow(
    store: ObjectStore,
    key: RunKey,
    object_root: ObjectRoot | None,
    gateway: Describes | None,
    *,
    checkpoints: Checkpoints | None = None,
    poll_seconds: float = POLL_SECONDS,
    unreachable_seconds: float = UNREACHABLE_SECONDS,
    silence_seconds: float = SILENCE_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Progress]:
    """Yield a look whenever something changed, the last with `end` set.

    It ends when the record does; when the coordinator's job has ended or is unknown to Iris and the record,
    read once more, has no end; when the child has failed and the coordinator says nothing for
    `silence_seconds`; and when Iris does not answer for `unreachable_seconds`.

    Args:
        store, key: the record.
        object_root: holds the run's files; None if they cannot be read from here.
        gateway: the scheduler. None if it cannot be asked: then the record alone is followed, and one whose
            coordinator died without a word never ends.
        checkpoints: as `read_status`.
        poll_seconds: pause between two looks.
        unreachable_seconds, silence_seconds: see above.
        clock, sleep: monotonic seconds, and waiting; tests give their own.

    Raises:
        NoSuchRun: there is no record.
        StoreError: the store failed.
    """
    follower = Follower(
        store,
        key,
        object_root,
        gateway,
        checkpoints=checkpoints,
        unreachable_seconds=unreachable_seconds,
        silence_seconds=silence_seconds,
        clock=clock,
    )
    while True:
        progress = follower.look()
        if progress is not None:
            yield progress
            if progress.end is not None:
                return
        sleep(poll_seconds)


class Follower:
    """A run that is followed one look at a time, so that several can be followed at once; see `follow`."""

    def __init__(
        self,
        store: ObjectStore,
        key: RunKey,
        object_root: ObjectRoot | None,
        gateway: Describes | None,
        *,
        checkpoints: Checkpoints | None = None,
        unreachable_seconds: float = UNREACHABLE_SECONDS,
        silence_seconds: float = SILENCE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._where = (store, key, object_root, gateway, checkpoints)
        self._asks = gateway is not None
        self._unreachable_seconds, self._silence_seconds = unreachable_seconds, silence_seconds
        self._clock = clock
        self._shown: RunStatus | None = None
        self._unreachable_since: float | None = None
        self._child_gone_since: float | None = None
        self._store_silent_since: float | None = None

    def look(self) -> Progress | None:
        """Return what there is to see; None if that is what the last look saw.

        Raises:
            NoSuchRun: there is no record.
            StoreError: the store failed: at the first look, for `unreachable_seconds`, or for good.
        """
        try:
            progress = self._look()
        except StoreUnavailable:
            # A run takes hours, and its bucket may fail for a moment of them. At the first look it may be that
            # nothing is there, or nobody may read it.
            now = self._clock()
            self._store_silent_since = _since(self._store_silent_since, now)
            if self._shown is None or _lasts(self._store_silent_since, now, self._unreachable_seconds):
                raise
            return None
        self._store_silent_since = None
        return progress

    def _look(self) -> Progress | None:
        status = _look(*self._where)
        now = self._clock()
        unreachable = self._asks and status.coordinator is not None and status.coordinator.state == "unknown"
        self._unreachable_since = _since(self._unreachable_since, now) if unreachable else None
        silent = status.child is not None and status.child.is_gone and status.child.state != "succeeded"
        self._child_gone_since = _since(self._child_gone_since, now) if silent else None

        end, message = _end_by_record(status)
        if end is None and status.coordinator_is_gone:
            # Its last event may have been written between reading the record and asking Iris.
            again = _look(*self._where)
            if again.coordinator_is_gone:
                status, end, message = again, FollowEnd.COORDINATOR_GONE, _gone_words(again)
            else:
                status = again
                end, message = _end_by_record(status)
        if end is None and _lasts(self._unreachable_since, now, self._unreachable_seconds):
            end = FollowEnd.UNREACHABLE
            message = (
                f"Iris has not answered for {self._unreachable_seconds:g} s; the run may go on. "
                f"Ask again later: {status.note}"
            )
        if end is None and _lasts(self._child_gone_since, now, self._silence_seconds):
            end, message = FollowEnd.COORDINATOR_SILENT, _silent_words(status, self._silence_seconds)

        if end is None and status == self._shown:
            return None
        self._shown = status
        return Progress(status=status, end=end, message=message)


def _since(before: float | None, now: float) -> float:
    return now if before is None else before


def _lasts(since: float | None, now: float, seconds: float) -> bool:
    return since is not None and now - since >= seconds


def _look(
    store: ObjectStore,
    key: RunKey,
    object_root: ObjectRoot | None,
    gateway: Describes | None,
    checkpoints: Checkpoints | None,
) -> RunStatus:
    record = load_record(store, key)
    if record is None:
        raise NoSuchRun(f"{key}: there is no record in the store {store.url}. Launch the experiment first")
    asked = None if record.state.is_final and not record.leaves_jobs else gateway
    return read_status(record, store, object_root, asked, checkpoints=checkpoints)


def _end_by_record(status: RunStatus) -> tuple[FollowEnd | None, str]:
    if status.state is RunState.SUCCEEDED:
        return FollowEnd.FINISHED, f"succeeded: {status.key}"
    if status.leaves_jobs:
        return None, ""  # An interrupted coordinator: Iris starts it again, or its job ends too.
    if status.state is RunState.CANCELLED:
        return FollowEnd.FINISHED, f"cancelled {status.reason or ''}".rstrip()
    if status.state is RunState.FAILED:
        return FollowEnd.FINISHED, f"failed: {status.reason or 'no reason was recorded'}"
    if status.state.is_live:
        return None, ""
    why = f": {status.reason}" if status.reason else ""
    return (
        FollowEnd.NOT_SUBMITTED,
        f"nothing to follow, the run is in state {status.state}{why}. Launch it again",
    )


def _gone_words(status: RunStatus) -> str:
    job = status.coordinator
    if job is None or job.state == "missing":
        return f"Iris no longer knows the coordinator {job.job_id if job else ''}; its end was not recorded"
    error = f": {' '.join(job.error.split())[-400:]}" if job.error else ""
    return f"the coordinator {job.job_id} ended as '{job.state}' without recording a result{error}"


def _silent_words(status: RunStatus, seconds: float) -> str:
    child = status.child
    name, state = (child.job_id, child.state) if child else ("", "gone")
    return (
        f"the child {name} ended as '{state}' and the coordinator has recorded nothing for {seconds:g} s. "
        "Read the coordinator's logs, then cancel it"
    )
