"""Is the run what its plan promised? Facts by its terminal stage, each with the evidence it was read from.

A run that ends at its imports is judged by their artifacts; one that trains by four facts of the training; one that
evaluates by these and by its evaluations.
"""

import contextlib
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tools.launcher.iris.jobs import IrisError, JobFacts
from tools.launcher.observe import marinskyrl_facts
from tools.launcher.observe.artifact_facts import (
    EVALUATIONS_EXIST,
    IMPORTS_EXIST,
    evaluations_exist,
    imports_exist,
)
from tools.launcher.observe.evidence import Unreadable
from tools.launcher.observe.facts import (
    Fact,
    model_loaded_as_declared,
    optimizer_steps_advanced,
    tasks_joined,
    terminal_artifacts_exist,
)
from tools.launcher.observe.marinskyrl_files import Reader, Unknown, result_at
from tools.launcher.observe.run_files import (
    RunFiles,
    answering_attempt,
    attempt_named_in,
    is_reused,
    run_files,
)
from tools.launcher.observe.scheduler import Describes
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import ObjectStore, StoreError
from tools.launcher.store.objects import FolderObjects, ObjectReader
from tools.launcher.store.records import (
    EventKind,
    RunEvent,
    RunKey,
    RunRecord,
    RunState,
    append_event,
    load_record,
)

FACT_NAMES = (
    "tasks_joined",
    "model_loaded_as_declared",
    "optimizer_steps_advanced",
    "terminal_artifacts_exist",
)
"""Of a training."""

JudgedStage = Literal["import", "rl", "evaluate"]

FACTS_OF_STAGE: dict[JudgedStage, tuple[str, ...]] = {
    "import": (IMPORTS_EXIST,),
    "rl": FACT_NAMES,
    "evaluate": (*FACT_NAMES, EVALUATIONS_EXIST),
}
"""Stage at which a run ends -> the facts that are asked of it."""


class FilesElsewhere(StoreError):
    """The files that would answer are where this command does not read. The message names them."""


class Verification(BaseModel):
    """The answer.

    Attributes:
        verified: True only if all facts hold.
        rehearsal: True if the files say that a stand-in made them: the launch works, no model was trained.
        attempt_id: whose files were read; another run's if its step was reused.
        facts: those of FACTS_OF_STAGE, in that order.
        stage: by which the run was judged. Not recorded with the answer: the record has it.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    verified: bool
    rehearsal: bool
    attempt_id: str
    facts: tuple[Fact, ...] = Field(min_length=1)
    stage: JudgedStage = Field(default="rl", exclude=True)

    @property
    def is_known(self) -> bool:
        """False if something could not be read that may yet speak for the run.

        Asked where it can be read, the answer may be another; this one is shown and not recorded. One fact that
        is denied for certain is an answer, whatever else could not be read.
        """
        return self.verified or any(fact.is_known and not fact.ok for fact in self.facts)


def verify_run(
    record: RunRecord,
    store: ObjectStore,
    object_root: ObjectRoot | None,
    gateway: Describes | None,
    *,
    objects: ObjectReader | None = None,
) -> Verification:
    """Read what the run left and say whether it is verified.

    Args:
        record: the run.
        store: holds its bundle.
        object_root: holds a rehearsal's files; None if they are where they cannot be read from here.
        gateway: the scheduler, for the child's tasks; None, or one that does not answer, is no obstacle where
            the files tell.
        objects: holds what the MarinSkyRL runtime left; None as above. Read if the record says that it
            trained.

    Raises:
        FilesElsewhere: what the run left cannot be read from here.
        StoreError: the bundle cannot be read, or a rehearsal's URIs cannot be mapped.
    """
    files = run_files(record, store)
    reader = _reader(record, object_root, objects)
    if reader is None:
        raise _elsewhere(record, files)
    if files.rl_step is None:
        return _verify_imports(record, files, reader)
    training = _verify_training(record, files, object_root, reader, gateway)
    if not files.evaluations:
        return training
    facts = (*training.facts, evaluations_exist(files, reader))
    return training.model_copy(
        update={"stage": "evaluate", "facts": facts, "verified": all(fact.ok for fact in facts)}
    )


def _reader(record: RunRecord, object_root: ObjectRoot | None, objects: ObjectReader | None) -> Reader | None:
    """Return what reads whole objects; of a rehearsal they are where its files are."""
    if record.runtime != "marinskyrl" and object_root is not None:
        return Reader(FolderObjects(object_root))
    return None if objects is None else Reader(objects)


def _elsewhere(record: RunRecord, files: RunFiles) -> FilesElsewhere:
    """Return the error that says what would have to be read."""
    if files.rl_step is None:
        paths = ", ".join(step.output_path for step in files.imports)
        return FilesElsewhere(
            f"{record.key} ends at its imports, {paths}, which this command does not read, so it is not known "
            "whether they are there. Look for the .artifact.json of each"
        )
    return FilesElsewhere(
        f"{record.key} left its files at {files.attempts_root}, which this command does not read, so it is not "
        "known whether the run did what it was launched for. Look at its terminal manifest "
        f"{files.terminal_manifest_uri}"
    )


def _verify_training(
    record: RunRecord,
    files: RunFiles,
    object_root: ObjectRoot | None,
    reader: Reader,
    gateway: Describes | None,
) -> Verification:
    if record.runtime == "marinskyrl":
        return _verify_marinskyrl(record, files, reader, gateway)
    if object_root is None:
        raise _elsewhere(record, files)
    attempt_id = answering_attempt(record, files, object_root)
    attempt_uri = files.attempt_uri(attempt_id)
    child, _ = _child(record, gateway) if attempt_id == files.attempt_id else (None, "")
    artifacts, manifest = terminal_artifacts_exist(
        files, attempt_id, object_root, recorded_state=record.state.value
    )
    facts = (
        tasks_joined(files, attempt_uri, object_root, child),
        model_loaded_as_declared(files, attempt_uri, object_root),
        optimizer_steps_advanced(files, attempt_id, object_root),
        artifacts,
    )
    return Verification(
        verified=all(fact.ok for fact in facts),
        rehearsal=manifest.get("rehearsal") is True,
        attempt_id=attempt_id,
        facts=facts,
    )


def _verify_marinskyrl(
    record: RunRecord, files: RunFiles, reader: Reader, gateway: Describes | None
) -> Verification:
    attempt_id, (child, unasked) = files.attempt_id, _child(record, gateway)
    if is_reused(record, files):
        # What cannot be read is the finding of the facts that look there.
        with contextlib.suppress(Unreadable, Unknown):
            attempt_id = attempt_named_in(result_at(files.terminal_manifest_uri, reader), files)
    facts = (
        marinskyrl_facts.tasks_joined(files, attempt_id, reader, child, unasked),
        marinskyrl_facts.model_loaded_as_declared(files, attempt_id, reader),
        marinskyrl_facts.optimizer_steps_advanced(files, attempt_id, reader),
        marinskyrl_facts.terminal_artifacts_exist(
            files, attempt_id, reader, recorded_state=record.state.value
        ),
    )
    return Verification(
        verified=all(fact.ok for fact in facts), rehearsal=False, attempt_id=attempt_id, facts=facts
    )


def record_verification(
    store: ObjectStore, key: RunKey, by: str, verification: Verification
) -> RunEvent | None:
    """Write the answer to the record as a `verified` or `verify_failed` event.

    An answer that is not known is not written: it would take back one that somebody got who could read all.
    Then the return value is None.

    The same answer again writes nothing and returns the event that has it. Where it was read does not make it
    another answer: the scheduler adds evidence only while it runs.

    Raises:
        StoreError: the store failed.
    """
    if not verification.is_known:
        return None
    kind: EventKind = "verified" if verification.verified else "verify_failed"
    facts = verification.model_dump(mode="json")
    record = load_record(store, key)
    latest = answer_on_record(record) if record else None
    if latest is not None and latest.kind == kind and _answer(latest.facts) == _answer(facts):
        return latest
    return append_event(store, key, kind, by, facts)


def answer_on_record(record: RunRecord) -> RunEvent | None:
    """Return the latest `verified` or `verify_failed` event, None if the run was never verified."""
    answers = (event for event in reversed(record.events) if event.kind in ("verified", "verify_failed"))
    return next(answers, None)


def is_open(record: RunRecord, verification: Verification) -> bool:
    """Tell whether a run that ended well is neither verified nor denied: by this answer, or by one on record."""
    ended_well = record.state is RunState.SUCCEEDED
    return ended_well and not verification.is_known and answer_on_record(record) is None


def _answer(facts: dict[str, Any]) -> dict[str, Any]:
    """What was answered, without the places it was read from."""
    each = [{name: value for name, value in fact.items() if name != "evidence"} for fact in facts["facts"]]
    return facts | {"facts": each}


def _child(record: RunRecord, gateway: Describes | None) -> tuple[JobFacts | None, str]:
    """Return what the scheduler tells of the child, and why it was not asked or did not answer."""
    if not record.child_job_ids:
        return None, ""
    if gateway is None:
        return None, "Iris was not asked"
    try:
        return gateway.describe(record.child_job_ids[-1]), ""
    except IrisError as error:
        return None, str(error)


def _verify_imports(record: RunRecord, files: RunFiles, reader: Reader) -> Verification:
    fact, rehearsal = imports_exist(files, reader, recorded_state=record.state.value)
    return Verification(
        verified=fact.ok, rehearsal=rehearsal, attempt_id=files.attempt_id, facts=(fact,), stage="import"
    )
