"""The RL step: one child job, whatever happens to the coordinator meanwhile.

A coordinator that Iris starts again has the same attempt: its id follows from launch digest and ordinal, so
document and job name are the same. What is there decides how it goes on:

- the terminal manifest is of this attempt: the run is done, only its mark is missing;
- the runtime's launcher adopts a child (the stand-in's does): the launcher is started again, finds the child
  by its name, compares it, and follows it or judges how it ended;
- it does not (MarinSkyRL's), and there is no child: the launcher is started;
- it does not, and there is a child: the coordinator follows it itself. One that fails fails the run. One that
  succeeds leaves the run without what only its launcher can do, the export and the terminal manifest
  (cloud/iris/launch.py@334c4fa5, `execute_launch`). Starting the launcher again would replace the finished
  job by a new gang (cloud/iris/iris_backend.py@019c9759, `launch`, with the default policy of the marin-iris
  client), which would be a second child. So the run fails and says how to go on: a relaunch resumes from the
  last checkpoint, which is the finished one, and has little left to do but to export.
"""

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from tools.launcher.coordinator.answer import AnswerProblem, read_answer
from tools.launcher.coordinator.artifact_record import claim_output, write_run_record
from tools.launcher.coordinator.attempt import Attempt, is_same_run
from tools.launcher.coordinator.children import Child, ChildLost, Record
from tools.launcher.coordinator.commands import CommandProblem, run_command
from tools.launcher.coordinator.graph_file import GraphStep
from tools.launcher.coordinator.manifest import Manifest, read_manifest
from tools.launcher.coordinator.runtime import Runtime, launcher_environment
from tools.launcher.coordinator.scrub import Scrubber
from tools.launcher.iris.jobs import JobFacts
from tools.launcher.store.objects import Objects

DOCUMENT_FILE = "launch.yaml"


@dataclass(frozen=True)
class Site:
    """Where a coordinator works.

    Attributes:
        runtime: makes what is missing.
        objects: artifacts and what belongs to attempts.
        record: appends an event to the run record.
        environ: the coordinator's environment.
        credentials: what the runtime's launcher gets besides.
        scrubber: hides their values.
        deadline: of this start of the coordinator, on the clock of `time.monotonic`.
    """

    runtime: Runtime
    objects: Objects
    record: Record
    environ: Mapping[str, str]
    credentials: Mapping[str, SecretStr]
    scrubber: Scrubber
    deadline: float


class StepFailed(Exception):
    """A step failed. `facts` go into the run's `failed` event."""

    def __init__(self, step: GraphStep, reason: str, **facts: Any) -> None:
        self.facts = {"step": step.address, "reason": f"step {step.address}: {reason}", **facts}
        super().__init__(self.facts["reason"])


def train(step: GraphStep, attempt: Attempt, site: Site, child: Child) -> dict[str, Any]:
    """Bring the RL step to its end and return the facts of its `step_finished` event.

    Raises:
        StepFailed: it has failed.
        ArtifactMismatch, NoMaker, StoreError, IrisError: as `walk`.
    """
    manifest = _own_manifest(site.objects, attempt)
    if manifest is None:
        claim_output(site.objects, step)
        site.objects.write(document_uri(attempt, attempt.attempt_id), attempt.document)
        present = None if site.runtime.adopts else child.find()
        if present is None:
            manifest = _launched(step, attempt, site, child)
        else:
            manifest = _followed(step, attempt, site, child, present)
    else:
        # Whoever made it may have been killed before the record knew the child.
        child.look()
    _write_record(step, site.objects, manifest)
    return {
        "attempt_id": attempt.attempt_id,
        "terminal_manifest": attempt.terminal_manifest_uri,
        "rehearsal": manifest.rehearsal,
        **manifest.kept,
    }


def document_uri(attempt: Attempt, attempt_id: str) -> str:
    """Return where an attempt's document is kept: `attempt`'s own, or an earlier one's of the same run."""
    return f"{attempt.attempts_root}/{attempt_id}/{DOCUMENT_FILE}"


def mark_earlier_success(step: GraphStep, attempt: Attempt, objects: Objects) -> None:
    """Write the record of a run which an earlier attempt finished and was killed before recording.

    The runtime refuses a finished version, so without this such a run could never be used. The
    proof that it is this run is the earlier attempt's document: it is ours but for the per-attempt fields.
    """
    manifest = read_manifest(objects, attempt)
    if manifest is None or manifest.attempt_id == attempt.attempt_id:
        return
    document = objects.read(document_uri(attempt, manifest.attempt_id))
    if document is not None and is_same_run(document, attempt):
        _write_record(step, objects, manifest)


def _check_deadline(step: GraphStep, attempt: Attempt, site: Site) -> None:
    """Fail the run in time: Iris would end the coordinator and leave its child."""
    if time.monotonic() > site.deadline:
        raise StepFailed(
            step,
            "the coordinator's deadline has come and the child was still at work. Raise the execution's "
            "coordinator_timeout_hours, build again, and relaunch",
            attempt_id=attempt.attempt_id,
        )


def _launched(step: GraphStep, attempt: Attempt, site: Site, child: Child) -> Manifest:
    def tick() -> None:
        _check_deadline(step, attempt, site)
        child.look()

    with tempfile.TemporaryDirectory(prefix="slipway-attempt-") as folder:
        document = Path(folder) / DOCUMENT_FILE
        document.write_bytes(attempt.document)
        try:
            done = run_command(
                site.runtime.launch(document),
                tick=tick,
                env=launcher_environment(site.runtime, site.environ, site.credentials),
                scrubber=site.scrubber,
            )
        except CommandProblem as problem:
            raise StepFailed(step, str(problem), attempt_id=attempt.attempt_id) from None
    said = {
        "attempt_id": attempt.attempt_id,
        "exit_code": done.exit_code,
        "stderr_tail": done.stderr_tail,
    }
    try:
        answer = read_answer(done.stdout, done.exit_code, attempt)
    except AnswerProblem as problem:
        raise StepFailed(step, f"the runtime launcher: {problem}", **said) from None
    said |= {"child_job_id": answer.iris_job_id, "child_job_state": answer.iris_job_state}
    if answer.iris_job_id:
        child.found(answer.iris_job_id)
    manifest = _own_manifest(site.objects, attempt)
    if manifest is None and answer.state == "succeeded":
        raise StepFailed(
            step,
            f"the runtime launcher answered 'succeeded' but {attempt.terminal_manifest_uri} is not there",
            **said,
        )
    if manifest is None:
        reason = answer.failure if answer.failure else f"the runtime launcher answered {answer.state!r}"
        raise StepFailed(
            step, reason if isinstance(reason, str) else json.dumps(reason, sort_keys=True), **said
        )
    return manifest


def _followed(step: GraphStep, attempt: Attempt, site: Site, child: Child, present: JobFacts) -> Manifest:
    try:
        ended = child.followed_to_its_end(present, tick=lambda: _check_deadline(step, attempt, site))
    except ChildLost as lost:
        raise StepFailed(
            step, str(lost), attempt_id=attempt.attempt_id, child_job_id=present.job_id
        ) from None
    facts = {
        "attempt_id": attempt.attempt_id,
        "child_job_id": ended.job_id,
        "child_job_state": ended.state,
        # What a task writes last is in the scheduler's account of it.
        "stderr_tail": site.scrubber.clean(ended.error),
    }
    manifest = _own_manifest(site.objects, attempt)
    if manifest is not None:
        return manifest
    if ended.state != "succeeded":
        why = " ".join(facts["stderr_tail"].split()) or "Iris says no more"
        raise StepFailed(step, f"child job {ended.job_id} is {ended.state}: {why}", **facts)
    raise StepFailed(
        step,
        f"child job {ended.job_id} has succeeded, but the coordinator was started again while it ran, and the "
        f"export and {attempt.terminal_manifest_uri} are made by the launcher that submitted it. Relaunch: the "
        "new attempt resumes from the last checkpoint and finishes",
        **facts,
    )


def _own_manifest(objects: Objects, attempt: Attempt) -> Manifest | None:
    manifest = read_manifest(objects, attempt)
    return manifest if manifest is not None and manifest.attempt_id == attempt.attempt_id else None


def _write_record(step: GraphStep, objects: Objects, manifest: Manifest) -> None:
    write_run_record(
        objects, step, rehearsal=manifest.rehearsal, export=manifest.export, attempt_id=manifest.attempt_id
    )
