"""Following a run until it ends, or until it is certain that nobody will ever end it."""

import enum
import time
from collections.abc import Callable, Iterator

from pydantic import BaseModel, ConfigDict

from tools.launcher.observe.newest_checkpoint import Checkpoints
from tools.launcher.observe.scheduler import Describes
from tools.launcher.observe.status import RunStatus, read_status
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import ObjectStore, StoreError
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
    shown: RunStatus | None = None
    unreachable_since: float | None = None
    child_gone_since: float | None = None
    while True:
        status = _look(store, key, object_root, gateway, checkpoints)
        now = clock()
        unreachable = (
            gateway is not None and status.coordinator is not None and status.coordinator.state == "unknown"
        )
        unreachable_since = (now if unreachable_since is None else unreachable_since) if unreachable else None
        silent = status.child is not None and status.child.is_gone and status.child.state != "succeeded"
        child_gone_since = (now if child_gone_since is None else child_gone_since) if silent else None

        end, message = _end_by_record(status)
        if end is None and status.coordinator_is_gone:
            # Its last event may have been written between reading the record and asking Iris.
            again = _look(store, key, object_root, gateway, checkpoints)
            if again.coordinator_is_gone:
                status, end, message = again, FollowEnd.COORDINATOR_GONE, _gone_words(again)
            else:
                status = again
                end, message = _end_by_record(status)
        if end is None and unreachable_since is not None and now - unreachable_since >= unreachable_seconds:
            end = FollowEnd.UNREACHABLE
            message = (
                f"Iris has not answered for {unreachable_seconds:g} s; the run may go on. "
                f"Ask again later: {status.note}"
            )
        if end is None and child_gone_since is not None and now - child_gone_since >= silence_seconds:
            end, message = FollowEnd.COORDINATOR_SILENT, _silent_words(status, silence_seconds)

        if end is not None:
            yield Progress(status=status, end=end, message=message)
            return
        if status != shown:
            shown = status
            yield Progress(status=status, end=None, message="")
        sleep(poll_seconds)


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
