"""Is the run what its plan promised? Four facts, each with the evidence it was read from."""

import contextlib
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.iris.jobs import IrisError, JobFacts
from tools.launcher.observe import marinskyrl_facts
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
from tools.launcher.store.objects import ObjectReader
from tools.launcher.store.records import EventKind, RunEvent, RunKey, RunRecord, append_event, load_record

FACT_NAMES = (
    "tasks_joined",
    "model_loaded_as_declared",
    "optimizer_steps_advanced",
    "terminal_artifacts_exist",
)


class FilesElsewhere(StoreError):
    """The files that would answer are where this command does not read. The message names them."""


class Verification(BaseModel):
    """The answer.

    Attributes:
        verified: True only if all four facts hold.
        rehearsal: True if the files say that a stand-in made them: the launch works, no model was trained.
        attempt_id: whose files were read; another run's if its step was reused.
        facts: in the order of FACT_NAMES.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    verified: bool
    rehearsal: bool
    attempt_id: str
    facts: tuple[Fact, Fact, Fact, Fact]

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
    if files.rl_step is None:
        return _nothing_trained(record, files)
    if record.runtime == "marinskyrl" and objects is not None:
        return _verify_marinskyrl(record, files, Reader(objects), gateway)
    if object_root is None or record.runtime == "marinskyrl":
        raise FilesElsewhere(
            f"{record.key} left its files at {files.attempts_root}, which this command does not read, so it "
            "is not known whether the run did what it was launched for. Look at its terminal manifest "
            f"{files.terminal_manifest_uri}"
        )
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


def _nothing_trained(record: RunRecord, files: RunFiles) -> Verification:
    seen = f"the run stops at stage {record.stage!r}, before training"

    def absent(name: str) -> Fact:
        return Fact(
            name=name, ok=False, expected="a training step", seen=seen, evidence=(f"record {record.key}",)
        )

    first, second, third, fourth = (absent(name) for name in FACT_NAMES)
    return Verification(
        verified=False, rehearsal=False, attempt_id=files.attempt_id, facts=(first, second, third, fourth)
    )
