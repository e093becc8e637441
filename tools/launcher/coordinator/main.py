"""The coordinator: one Iris job which carries a launch from its bundle to its end.

It fetches the bundle by digest, checks that the reviewed document is the one it was sent for, walks
the graph, and leaves every change in the run record. Whatever goes wrong ends in one `failed` event
with a reason and exit code 1.
"""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from absl.flags import argparse_flags
from pydantic import BaseModel, ConfigDict, ValidationError

from tools.launcher.coordinator.artifact_record import ArtifactMismatch
from tools.launcher.coordinator.attempt import AttemptProblem, make_attempt
from tools.launcher.coordinator.commands import CommandProblem
from tools.launcher.coordinator.graph_file import GraphProblem, read_graph, steps_up_to
from tools.launcher.coordinator.runtime import (
    REHEARSAL_MODULE,
    NoMaker,
    Runtime,
    marinskyrl_runtime,
    rehearsal_runtime,
)
from tools.launcher.coordinator.walk import FindChild, StepFailed, walk
from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.store.bundles import BUNDLE_PREFIX, BundleError, LaunchBundle, unpack, verify_bundle
from tools.launcher.store.content import get_content
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import ObjectStore, StoreError
from tools.launcher.store.open_store import open_store, path_of_file_url
from tools.launcher.store.records import EventKind, RunKey, RunState, append_event, load_record

WRITER = "coordinator"

_new_parser: Any = argparse_flags.ArgumentParser  # absl has no types for it

_EXPECTED = (
    ArtifactMismatch,
    AttemptProblem,
    CommandProblem,
    DocumentError,
    GraphProblem,
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
        job_id: the coordinator's own job in Iris.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    key: RunKey
    bundle: str
    stage: str
    job_id: str


def coordinate(
    assignment: Assignment,
    store: ObjectStore,
    object_root: ObjectRoot,
    runtime: Runtime,
    find_child: FindChild,
) -> int:
    """Carry the launch to its end and return the exit code (0 succeeded, 1 failed).

    Args:
        assignment: the launch.
        store: bundles and run records.
        object_root: artifacts.
        runtime: who does the work.
        find_child: the Iris id of the job with this name below ours, None if there is none.
    """
    key = assignment.key

    def record(kind: EventKind, facts: dict[str, Any]) -> None:
        append_event(store, key, kind, WRITER, facts)
        _say(f"{kind} {facts.get('step') or facts.get('job_id') or facts.get('reason') or ''}".rstrip())

    try:
        with _signals_handled(_raise_interrupted):
            before = load_record(store, key)
            if before is not None and before.state is RunState.SUCCEEDED:
                _say(f"{key} has already succeeded")
                return 0
            ended = before is not None and before.state is RunState.FAILED
            if before is not None and ended and not _was_interrupted(before.events[-1].facts):
                _say(f"{key} has already failed: {before.reason}. Launch it again as a new ordinal")
                return 1
            record(
                "coordinator_started",
                {
                    "job_id": assignment.job_id,
                    "bundle": assignment.bundle,
                    "stage": assignment.stage,
                    "runtime": runtime.name,
                    "restarted": bool(
                        before and any(event.kind == "coordinator_started" for event in before.events)
                    ),
                },
            )
            bundle = _verified_bundle(store, assignment)
            graph = read_graph(bundle.graph_json)
            steps = steps_up_to(graph, assignment.stage)
            attempt = make_attempt(bundle.launch_yaml, key)
            walk(
                steps,
                attempt,
                runtime,
                object_root,
                record=record,
                find_child=find_child,
                known_children=frozenset(before.child_job_ids if before is not None else ()),
            )
            record(
                "succeeded",
                {
                    "artifacts": [step.address for step in steps],
                    "launch_digest": key.launch_digest,
                    "attempt_digest": attempt.digest,
                },
            )
            return 0
    except Interrupted as interruption:
        return _failed(store, key, {"reason": str(interruption), "interrupted": True})
    except StepFailed as failure:
        return _failed(store, key, failure.facts)
    except _EXPECTED as error:
        return _failed(store, key, {"reason": str(error)})
    except Exception as error:  # The boundary of the process: a run must never end without a reason.
        return _failed(
            store, key, {"reason": f"the coordinator met an unexpected {type(error).__name__}: {error}"}
        )


def _verified_bundle(store: ObjectStore, assignment: Assignment) -> LaunchBundle:
    bundle = unpack(get_content(store, BUNDLE_PREFIX, assignment.bundle))
    digests = verify_bundle(bundle)
    if digests.launch != assignment.key.launch_digest:
        raise BundleError(
            f"the bundle {assignment.bundle} holds the launch document sha256:{digests.launch}, "
            f"this job was sent for sha256:{assignment.key.launch_digest}. Launch again"
        )
    return bundle


def _failed(store: ObjectStore, key: RunKey, facts: dict[str, Any]) -> int:
    # From here on the only work left is to write the reason down: no signal may cut that off.
    with _signals_handled(signal.SIG_IGN):
        try:
            append_event(store, key, "failed", WRITER, facts)
        except Exception as error:  # The store itself may be what failed: then the log is all there is.
            _say(f"the failure could not be recorded: {error}")
        _say(f"failed: {facts['reason']}")
    return 1


def _was_interrupted(facts: dict[str, Any]) -> bool:
    return facts.get("interrupted") is True


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


def _find_child_in_iris() -> FindChild:
    gateway: Any = None

    def find(job_name: str) -> str | None:
        nonlocal gateway
        # Imported late: Iris takes seconds to import, and a run that reuses everything needs none.
        from tools.launcher.iris.gateway import inside_job
        from tools.launcher.iris.jobs import IrisError

        try:
            if gateway is None:
                gateway = inside_job(give_up_after_seconds=5.0)
            job_id: str = gateway.job_id_of("coordinator", job_name)
            return job_id if gateway.describe(job_id) is not None else None
        except IrisError:
            # Only the record's timing depends on it; the launcher's answer names the job as well.
            return None

    return find


def _job_id(environ: dict[str, str]) -> str:
    # "/user/job/<task>:<start>" without the task.
    return environ.get("IRIS_TASK_ID", "").rpartition("/")[0] or "unknown"


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _new_parser(
        prog="coordinator", description=__doc__, allow_abbrev=False, inherited_absl_flags=None
    )
    parser.add_argument("--store", required=True, help="file:///... of bundles and records")
    parser.add_argument("--object-root", required=True, help="file:///... of the artifacts")
    parser.add_argument("--bundle", required=True, help="SHA-256 of the bundle")
    parser.add_argument("--launch", required=True, help="SHA-256 of the launch document")
    parser.add_argument("--experiment", required=True)
    parser.add_argument("--ordinal", required=True, type=int)
    parser.add_argument("--stage", required=True)
    parser.add_argument("--runtime", choices=("rehearsal", "marinskyrl"), default="rehearsal")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the coordinator with the arguments of its job."""
    arguments = _parser().parse_args(argv)
    try:
        key = RunKey(
            experiment=arguments.experiment, launch_digest=arguments.launch, ordinal=arguments.ordinal
        )
        store = open_store(arguments.store)
        object_root = ObjectRoot(path_of_file_url(arguments.object_root, what="object root"))
    except ValidationError as error:
        _say(f"cannot start: {error.errors()[0]['msg']}")
        return 1
    except StoreError as error:
        _say(f"cannot start: {error}")
        return 1
    # -P keeps the working directory, which is somebody else's, off the import path.
    runtime = (
        rehearsal_runtime((sys.executable, "-P", "-m", REHEARSAL_MODULE), arguments.object_root)
        if arguments.runtime == "rehearsal"
        else marinskyrl_runtime()
    )
    assignment = Assignment(
        key=key, bundle=arguments.bundle, stage=arguments.stage, job_id=_job_id(dict(os.environ))
    )
    return coordinate(assignment, store, object_root, runtime, _find_child_in_iris())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
