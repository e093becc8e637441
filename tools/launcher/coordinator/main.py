"""The coordinator: one Iris job which carries a launch from its bundle to its end.

It fetches the bundle by digest, checks that the reviewed document is the one it was sent for, walks
the graph, and leaves every change in the run record. It ends in one of these ways:

    succeeded    `succeeded` recorded                                     exit code 0
    failed       the child ended, `failed` recorded with a reason         exit code 1; Iris is told not to start it again
    interrupted  by a signal: preemption or cancellation                  exit code 143, nothing recorded
    held up      the store or the scheduler is away                       exit code 75, nothing recorded

After the last two, as after SIGKILL, the child goes on and Iris starts the coordinator again, as often as the
execution allows; the new one goes on where the old one was. Iris itself ends the child when the coordinator's
job is cancelled, and leaves it running when the job fails (marin-iris 0.2.227,
iris/cluster/controller/reconcile/batches.py, `_finalize_terminal_job`), which is why a coordinator that fails
ends it first.
"""

import argparse
import contextlib
import datetime
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from tools.launcher.coordinator.artifact_record import ArtifactMismatch
from tools.launcher.coordinator.attempt import Attempt, AttemptProblem, make_attempt
from tools.launcher.coordinator.children import Child, Scheduler
from tools.launcher.coordinator.graph_file import GraphProblem, GraphStep, read_graph, steps_up_to
from tools.launcher.coordinator.runtime import (
    REHEARSAL_MODULE,
    NoMaker,
    Runtime,
    marinskyrl_runtime,
    rehearsal_runtime,
)
from tools.launcher.coordinator.scrub import Scrubber
from tools.launcher.coordinator.training import Site, StepFailed
from tools.launcher.coordinator.walk import walk
from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.iris.delivered_secrets import CredentialMissing, delivered
from tools.launcher.iris.jobs import IrisError, IrisUnreachable, is_terminal
from tools.launcher.iris.task_bootstrap import leave
from tools.launcher.store.bundles import BUNDLE_PREFIX, BundleError, LaunchBundle, unpack, verify_bundle
from tools.launcher.store.content import get_content
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import ObjectStore, StoreError, StoreUnavailable
from tools.launcher.store.objects import FolderObjects, Objects
from tools.launcher.store.open_store import open_store, path_of_file_url
from tools.launcher.store.records import EventKind, RunKey, RunRecord, RunState, append_event, load_record

WRITER = "coordinator"

SUCCEEDED: Final = 0
FAILED: Final = 1
HELD_UP: Final = 75  # EX_TEMPFAIL of sysexits.h
INTERRUPTED: Final = 128 + signal.SIGTERM

_GIVE_UP_SECONDS: Final = 20.0
_SECONDS_TO_BE_ENDED: Final = 5.0
_REASON_CHARACTERS: Final = 1000

_AWAY = (StoreUnavailable, IrisUnreachable)

_EXPECTED = (
    ArtifactMismatch,
    AttemptProblem,
    DocumentError,
    GraphProblem,
    IrisError,
    NoMaker,
    StoreError,
)


class Interrupted(Exception):
    """The process was asked to end by a signal."""


class Assignment(BaseModel):
    """What one coordinator is sent for.

    Attributes:
        key: the run.
        bundle: digest of the bundle, 64 hex digits.
        stage: terminal stage of the walk.
        runtime: name of the runtime.
        job_id: the coordinator's own job in Iris.
        deadline_seconds: how long the run may take from its first coordinator's start, in seconds; None for as
            long as Iris lets it. Iris itself counts from each start anew, and so would never end a run whose
            coordinator is preempted now and then.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    key: RunKey
    bundle: str
    stage: str
    runtime: str
    job_id: str
    deadline_seconds: int | None = None


class End(BaseModel):
    """How a coordinator ended: exit code, and the reason if it failed."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    exit_code: int
    reason: str | None = None


def coordinate(
    assignment: Assignment,
    store: ObjectStore,
    objects: Objects,
    runtime: Callable[[str], Runtime],
    scheduler: Callable[[], Scheduler],
    *,
    environ: Mapping[str, str],
    credentials: Mapping[str, SecretStr],
) -> End:
    """Carry the launch to its end.

    Args:
        assignment: the launch.
        store: bundles and run records.
        objects: artifacts.
        runtime: who does the work, given `runtime.launcher_commit`.
        scheduler: opens Iris, and gives the same connection each time; may raise IrisError.
        environ: the coordinator's environment.
        credentials: what the runtime's launcher gets besides. They are in nothing that is kept or said.
    """
    key, scrubber = assignment.key, Scrubber(tuple(credentials.values()))

    def record(kind: EventKind, facts: dict[str, Any]) -> None:
        append_event(store, key, kind, WRITER, facts)
        _say(f"{kind} {facts.get('step') or facts.get('job_id') or facts.get('reason') or ''}".rstrip())

    child: Child | None = None
    try:
        with _signals_handled(_raise_interrupted):
            before = load_record(store, key)
            over = _over(key, before, scheduler)
            if over is not None:
                return over
            record("coordinator_started", _started_facts(assignment, before))
            bundle = _verified_bundle(store, assignment)
            graph = read_graph(bundle.graph_json)
            steps = steps_up_to(graph, assignment.stage)
            attempt = make_attempt(bundle.launch_yaml, key)
            known = frozenset(before.child_job_ids if before is not None else ())
            child = Child(attempt, scheduler, record, known)
            site = Site(
                runtime=runtime(attempt.launcher_commit),
                objects=objects,
                record=record,
                environ=environ,
                credentials=credentials,
                scrubber=scrubber,
                deadline=_deadline(assignment, before),
            )
            walk(steps, attempt, site, child)
            record("succeeded", _succeeded_facts(key, steps, attempt))
            return End(exit_code=SUCCEEDED)
    except Interrupted as interruption:
        _say(f"{interruption}; a child that runs goes on, and the next start of the coordinator takes it up")
        return End(exit_code=INTERRUPTED)
    except _AWAY as error:
        _say(f"held up: {error}")
        return End(exit_code=HELD_UP)
    except StepFailed as failure:
        facts = failure.facts
    except _EXPECTED as error:
        facts = {"reason": str(error)}
    except Exception as error:  # The boundary of the process: a run must never end without a reason.
        facts = {"reason": f"the coordinator met an unexpected {type(error).__name__}: {error}"}
    return _failed(store, key, facts | {"reason": scrubber.clean(facts["reason"])}, child)


def _over(key: RunKey, record: RunRecord | None, scheduler: Callable[[], Scheduler]) -> End | None:
    """Return how the coordinator ends if its run is over, None if there is something to do."""
    if record is None:
        return None
    if record.state is RunState.SUCCEEDED:
        _say(f"{key} has already succeeded")
        return End(exit_code=SUCCEEDED)
    if record.state in (RunState.FAILED, RunState.CANCELLED):
        why = f": {record.reason}" if record.reason else ""
        reason = f"{key} is over already, it is {record.state.value}{why}. Relaunch it as a new ordinal"
    elif record.cancel_requests:
        reason = f"{key} is being cancelled"
    else:
        return None
    _say(reason)
    with contextlib.suppress(IrisError):
        iris = scheduler()
        for job_id in record.child_job_ids:
            facts = iris.describe(job_id)
            if facts is not None and not is_terminal(facts.state):
                _say(f"ends the child {job_id}")
                iris.cancel(job_id)
    return End(exit_code=FAILED, reason=reason)


def _deadline(assignment: Assignment, before: RunRecord | None) -> float:
    """When the run has to be at its end, on the clock of `time.monotonic`."""
    if assignment.deadline_seconds is None:
        return math.inf
    return time.monotonic() + assignment.deadline_seconds - _spent_seconds(before, time.time())


def _spent_seconds(before: RunRecord | None, now: float) -> float:
    """Seconds since the first coordinator of the run started; 0 for the first one itself.

    Args:
        before: the record that this coordinator found.
        now: seconds since the epoch. The first one may have run on a machine whose clock is ahead.
    """
    events = () if before is None else before.events
    started = next((event.at for event in events if event.kind == "coordinator_started"), None)
    return 0.0 if started is None else max(0.0, now - datetime.datetime.fromisoformat(started).timestamp())


def _started_facts(assignment: Assignment, before: RunRecord | None) -> dict[str, Any]:
    return {
        "job_id": assignment.job_id,
        "bundle": assignment.bundle,
        "stage": assignment.stage,
        "runtime": assignment.runtime,
        "restarted": bool(before and any(event.kind == "coordinator_started" for event in before.events)),
    }


def _succeeded_facts(key: RunKey, steps: tuple[GraphStep, ...], attempt: Attempt) -> dict[str, Any]:
    return {
        "artifacts": [step.address for step in steps],
        "launch_digest": key.launch_digest,
        "attempt_digest": attempt.digest,
    }


def _verified_bundle(store: ObjectStore, assignment: Assignment) -> LaunchBundle:
    bundle = unpack(get_content(store, BUNDLE_PREFIX, assignment.bundle))
    digests = verify_bundle(bundle)
    if digests.launch != assignment.key.launch_digest:
        raise BundleError(
            f"the bundle {assignment.bundle} holds the launch document sha256:{digests.launch}, "
            f"this job was sent for sha256:{assignment.key.launch_digest}. Launch again"
        )
    return bundle


def _failed(store: ObjectStore, key: RunKey, facts: dict[str, Any], child: Child | None) -> End:
    # From here on the work left is to end the child and write the reason down: no signal may cut that off.
    with _signals_handled(signal.SIG_IGN):
        _say(f"failed: {facts['reason']}")
        try:
            ended = child.end() if child is not None else {}
        except Exception as error:  # As above: what else goes wrong must not hide why the run failed.
            ended = {"child_running": f"unexpected {type(error).__name__} while ending it: {error}"}
        try:
            append_event(store, key, "failed", WRITER, {**facts, **ended})
        except StoreError as error:
            _say(f"held up: the failure could not be recorded: {error}")
            return End(exit_code=HELD_UP)
    return End(exit_code=FAILED, reason=facts["reason"])


def _raise_interrupted(number: int, _: FrameType | None) -> None:
    raise Interrupted(f"the coordinator was ended by {signal.Signals(number).name}")


@contextlib.contextmanager
def _signals_handled(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> Iterator[None]:
    previous = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, former in previous.items():
            signal.signal(number, former)


def _say(text: str) -> None:
    print(f"[coordinator] {text}", file=sys.stderr, flush=True)


def _iris_of_this_job() -> Callable[[], Scheduler]:
    opened: list[Scheduler] = []

    def scheduler() -> Scheduler:
        if not opened:
            # Imported late: Iris takes seconds to import, and a run that reuses everything needs none.
            from tools.launcher.iris.gateway import inside_job

            opened.append(inside_job(give_up_after_seconds=_GIVE_UP_SECONDS))
        return opened[0]

    return scheduler


def _stay_down(scheduler: Callable[[], Scheduler], reason: str) -> None:
    """Keep Iris from starting a coordinator again whose run is over. One that it does start ends at once."""
    try:
        scheduler().fail_this_task(reason[:_REASON_CHARACTERS])
    except IrisError as error:
        _say(f"Iris may start this coordinator again: {error}")
        return
    # Iris ends the process, in this state; by itself it would count as one more attempt that may be retried.
    time.sleep(_SECONDS_TO_BE_ENDED)


def _job_id(environ: dict[str, str]) -> str:
    # "/user/job/<task>:<start>" without the task.
    return environ.get("IRIS_TASK_ID", "").rpartition("/")[0] or "unknown"


def _parser() -> argparse.ArgumentParser:
    # Not absl's: its import costs a task a tenth of a second, and only our own programs write these arguments.
    parser = argparse.ArgumentParser(prog="coordinator", description=__doc__, allow_abbrev=False)
    parser.add_argument("--store", required=True, help="file:///... or gs://... of bundles and records")
    parser.add_argument("--object-root", help="file:///... that stands for all buckets; else the real ones")
    parser.add_argument("--bundle", required=True, help="SHA-256 of the bundle")
    parser.add_argument("--launch", required=True, help="SHA-256 of the launch document")
    parser.add_argument("--experiment", required=True)
    parser.add_argument("--ordinal", required=True, type=int)
    parser.add_argument("--stage", required=True)
    parser.add_argument("--runtime", choices=("rehearsal", "marinskyrl"), default="rehearsal")
    parser.add_argument(
        "--deadline-seconds", type=int, help="the run is failed and its child ended after that long"
    )
    parser.add_argument(
        "--credential", action="append", default=[], help="name of a credential for the launcher; repeatable"
    )
    return parser


def _open_objects(url: str | None) -> Objects:
    if url is not None:
        return FolderObjects(ObjectRoot(path_of_file_url(url, what="object root")))
    # Imported late: only a coordinator on a real cluster has the libraries.
    from tools.launcher.coordinator.bucket_objects import BucketObjects

    return BucketObjects()


def _runtime_of(
    name: str, object_root_url: str | None, credentials: tuple[str, ...]
) -> Callable[[str], Runtime]:
    """Return the named runtime, to be told the commit.

    Raises:
        NoMaker: the stand-in without a folder of objects.
    """
    if name == "marinskyrl":
        return marinskyrl_runtime
    if object_root_url is None:
        raise NoMaker(
            "the rehearsal needs --object-root: it writes no real bucket. Add it, or use marinskyrl"
        )
    # -P keeps the working directory, which is somebody else's, off the import path.
    stand_in = rehearsal_runtime(
        (sys.executable, "-P", "-m", REHEARSAL_MODULE), object_root_url, credentials=credentials
    )
    return lambda _: stand_in


def _unable(reason: str) -> Callable[[str], Runtime]:
    def refuse(_: str) -> Runtime:
        raise NoMaker(reason)

    return refuse


def main(argv: Sequence[str]) -> int:
    """Run the coordinator with the arguments of its job."""
    arguments = _parser().parse_args(argv)
    try:
        key = RunKey(
            experiment=arguments.experiment, launch_digest=arguments.launch, ordinal=arguments.ordinal
        )
        runtime = _runtime_of(arguments.runtime, arguments.object_root, tuple(arguments.credential))
        store = open_store(arguments.store)
        objects = _open_objects(arguments.object_root)
    except ValidationError as error:
        _say(f"cannot start: {error.errors()[0]['msg']}")
        return FAILED
    except (StoreError, NoMaker) as error:
        _say(f"cannot start: {error}")
        return FAILED
    credentials: Mapping[str, SecretStr] = {}
    try:
        credentials = delivered(arguments.credential, os.environ)
    except CredentialMissing as error:
        # The run is told, not only this process: it fails for that reason when it gets to work.
        runtime = _unable(str(error))
    assignment = Assignment(
        key=key,
        bundle=arguments.bundle,
        stage=arguments.stage,
        runtime=arguments.runtime,
        job_id=_job_id(dict(os.environ)),
        deadline_seconds=arguments.deadline_seconds,
    )
    scheduler = _iris_of_this_job()
    end = coordinate(
        assignment, store, objects, runtime, scheduler, environ=dict(os.environ), credentials=credentials
    )
    if end.reason is not None:
        _stay_down(scheduler, end.reason)
    return end.exit_code


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
