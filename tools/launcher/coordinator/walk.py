"""Walking the graph: reuse what is finished, make what is missing, record every change.

The walk holds no state of its own. What is finished stands in the artifacts' records, what happened
in the run record, and ids follow from the launch digest: a coordinator that is killed at any point
and started again goes on where the last one was.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.launcher.coordinator.answer import AnswerProblem, read_answer
from tools.launcher.coordinator.artifact_record import claim_output, read_record, reusable, write_run_record
from tools.launcher.coordinator.attempt import Attempt, is_same_run
from tools.launcher.coordinator.commands import Completed, run_command
from tools.launcher.coordinator.graph_file import GraphStep
from tools.launcher.coordinator.runtime import NoMaker, Runtime
from tools.launcher.documents.files import write_atomically
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import StoreError
from tools.launcher.store.records import EventKind

Record = Callable[[EventKind, dict[str, Any]], None]
FindChild = Callable[[str], str | None]


class StepFailed(Exception):
    """A step failed. `facts` go into the run's `failed` event."""

    def __init__(self, step: GraphStep, reason: str, **facts: Any) -> None:
        self.facts = {"step": step.address, "reason": f"step {step.address}: {reason}", **facts}
        super().__init__(self.facts["reason"])


def walk(
    steps: tuple[GraphStep, ...],
    attempt: Attempt,
    runtime: Runtime,
    object_root: ObjectRoot,
    *,
    record: Record,
    find_child: FindChild,
    known_children: frozenset[str],
) -> None:
    """Bring every step to its end, in order.

    Args:
        steps: in an order in which each comes after what it reads.
        attempt: of the RL step.
        runtime: makes what is missing.
        object_root: where the artifacts are.
        record: appends an event to the run record.
        find_child: the Iris id of the job with this name below ours, None if there is none.
        known_children: child jobs which the run record has already.

    Raises:
        StepFailed: one step failed; the ones before it are finished.
        ArtifactMismatch, NoMaker, StoreError, CommandProblem: likewise.
    """
    by_address = {step.address: step for step in steps}
    for step in steps:
        if step.kind == "skyrl":
            _mark_earlier_success(step, attempt, object_root)
        if reusable(step, read_record(object_root.path(step.output_path))):
            record(
                "step_reused",
                {"step": step.address, "identity": step.identity, "output_path": step.output_path},
            )
            continue
        record("step_started", {"step": step.address, "kind": step.kind, "output_path": step.output_path})
        if step.kind == "skyrl":
            facts = _train(step, attempt, runtime, object_root, record, find_child, known_children)
        elif step.kind == "evaluate":
            export = _export_of(step, by_address, object_root)
            facts = _make(step, runtime.evaluate(step, export), object_root)
        else:
            command = runtime.import_artifact(step, attempt.tokenizer_uri, attempt.tokenizer_revision)
            facts = _make(step, command, object_root)
        record("step_finished", {"step": step.address, "identity": step.identity, **facts})


def _make(step: GraphStep, command: tuple[str, ...], object_root: ObjectRoot) -> dict[str, Any]:
    done = run_command(command, tick=lambda: None)
    if done.exit_code != 0:
        raise StepFailed(
            step, f"{_last_line(done)} (exit code {done.exit_code})", stderr_tail=done.stderr_tail
        )
    if not reusable(step, read_record(object_root.path(step.output_path))):
        raise StepFailed(step, f"its maker ended well and left no record at {step.output_path}")
    return {"output_path": step.output_path}


def _train(
    step: GraphStep,
    attempt: Attempt,
    runtime: Runtime,
    object_root: ObjectRoot,
    record: Record,
    find_child: FindChild,
    known_children: frozenset[str],
) -> dict[str, Any]:
    manifest = _manifest_of(attempt, object_root)
    # Killed between the manifest and our record: the run is done, only its mark is missing.
    if manifest is None:
        claim_output(object_root.path(step.output_path), step)
        document = object_root.path(f"{attempt.attempts_root}/{attempt.attempt_id}/launch.yaml")
        write_atomically(document, attempt.document)
        children = _Children(attempt, record, find_child, known_children)
        done = run_command(runtime.launch(document), tick=children.look)
        try:
            answer = read_answer(done.stdout, done.exit_code, attempt)
        except AnswerProblem as problem:
            raise StepFailed(
                step,
                f"the runtime launcher: {problem}",
                exit_code=done.exit_code,
                stderr_tail=done.stderr_tail,
            ) from None
        if answer.iris_job_id:
            children.found(answer.iris_job_id)
        manifest = _manifest_of(attempt, object_root)
        if answer.state != "succeeded" and manifest is None:
            reason = answer.failure if answer.failure else f"the runtime launcher answered {answer.state!r}"
            raise StepFailed(
                step,
                reason if isinstance(reason, str) else json.dumps(reason, sort_keys=True),
                attempt_id=attempt.attempt_id,
                child_job_id=answer.iris_job_id,
                child_job_state=answer.iris_job_state,
                stderr_tail=done.stderr_tail,
            )
        if manifest is None:
            raise StepFailed(
                step,
                f"the runtime launcher answered 'succeeded' but {attempt.terminal_manifest_uri} is not there",
            )
    _write_record(step, object_root.path(step.output_path), manifest, attempt.attempt_id)
    kept = (
        "global_step",
        "task_count",
        "reward_first",
        "reward_last",
        "validation_reward",
        "checkpoint",
        "export",
    )
    return {
        "attempt_id": attempt.attempt_id,
        "terminal_manifest": attempt.terminal_manifest_uri,
        "rehearsal": manifest.get("rehearsal") is True,
        **{name: manifest[name] for name in kept if name in manifest},
    }


class _Children:
    """Records the child job as soon as Iris has it, once."""

    def __init__(
        self, attempt: Attempt, record: Record, find_child: FindChild, known: frozenset[str]
    ) -> None:
        self._attempt, self._record, self._find, self._known = attempt, record, find_child, set(known)
        self._done = False

    def look(self) -> None:
        if not self._done:
            job_id = self._find(self._attempt.job_name)
            if job_id is not None:
                self.found(job_id)

    def found(self, job_id: str) -> None:
        self._done = True
        if job_id in self._known:
            return
        self._known.add(job_id)
        self._record(
            "child_submitted",
            {
                "job_id": job_id,
                "job_name": self._attempt.job_name,
                "attempt_id": self._attempt.attempt_id,
                "attempt_digest": self._attempt.digest,
            },
        )


def _mark_earlier_success(step: GraphStep, attempt: Attempt, object_root: ObjectRoot) -> None:
    """Write the record of a run which an earlier attempt finished and was killed before recording.

    The runtime refuses a finished version, so without this such a run could never be used. The
    proof that it is this run is the earlier attempt's document: it is ours but for the two fields.
    """
    folder = object_root.path(step.output_path)
    manifest = _manifest(attempt, object_root)
    if manifest is None or read_record(folder) is not None:
        return
    earlier = manifest.get("attempt_id")
    if not isinstance(earlier, str) or earlier == attempt.attempt_id:
        return
    try:
        document = object_root.path(f"{attempt.attempts_root}/{earlier}/launch.yaml").read_bytes()
    except (OSError, StoreError):
        return
    if is_same_run(document, attempt):
        _write_record(step, folder, manifest, earlier)


def _write_record(step: GraphStep, folder: Path, manifest: dict[str, Any], attempt_id: str) -> None:
    export = manifest.get("export")
    write_run_record(
        folder,
        step,
        rehearsal=manifest.get("rehearsal") is True,
        export=export if isinstance(export, str) else None,
        attempt_id=attempt_id,
    )


def _manifest_of(attempt: Attempt, object_root: ObjectRoot) -> dict[str, Any] | None:
    """Return the terminal manifest if it is of this attempt."""
    manifest = _manifest(attempt, object_root)
    return manifest if manifest is not None and manifest.get("attempt_id") == attempt.attempt_id else None


def _manifest(attempt: Attempt, object_root: ObjectRoot) -> dict[str, Any] | None:
    try:
        manifest = json.loads(object_root.path(attempt.terminal_manifest_uri).read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


def _export_of(step: GraphStep, by_address: dict[str, GraphStep], object_root: ObjectRoot) -> str:
    for address in step.deps:
        dep = by_address[address]
        if dep.kind == "skyrl":
            made = read_record(object_root.path(dep.output_path))
            if made is not None and made.export is not None:
                return made.export
    raise NoMaker(
        f"step {step.address} evaluates an exported policy and none of its inputs has one. "
        "Train with run.export_hf: true"
    )


def _last_line(done: Completed) -> str:
    lines = [line for line in done.stderr_tail.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "the maker said nothing"
