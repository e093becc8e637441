"""Submitting exactly once: the state machine of design.md §8.

    PLANNED --bundle stored--> STORED --version claimed, turn taken--> RESERVED --intent recorded--> INTENT
    INTENT --submit(name, never replace)--> ?
      accepted       -> `submitted` recorded                         SUBMITTED
      already exists -> its launch digest is ours -> recorded        ADOPTED, else CONFLICT
      reply lost     -> looked up by name; found -> compared; absent -> tried once more, else UNKNOWN
      refused        -> `refused` recorded                           REFUSED
    SUBMITTED --provenance stored--> done

Every arrow writes before the next begins, and every write is write-once, so after a crash at any line
the next call reads how far the last one came. The one thing that can be done twice, the submission, is
made unique by the scheduler: the job's name is a function of the record's key. A version or a turn that is
another's stops the launch before the intent (TAKEN).
"""

import enum
from collections.abc import Mapping
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, SecretStr

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.iris.jobs import (
    IrisError,
    IrisUnreachable,
    JobFacts,
    JobNameTaken,
    JobRefused,
    JobRequest,
    ReplyLost,
)
from tools.launcher.iris.task_bootstrap import CODE_ARCHIVE
from tools.launcher.store.bundles import BUNDLE_PREFIX, LaunchBundle, pack, verify_bundle
from tools.launcher.store.content import put_content
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import (
    EventKind,
    RunKey,
    RunRecord,
    RunState,
    append_event,
    append_event_once,
    load_record,
    put_first_event,
    reload_record,
)
from tools.launcher.store.version_claims import ClaimRefused, claim_versions
from tools.launcher.submit.claims import version_claims
from tools.launcher.submit.code_archive import CodeArchive
from tools.launcher.submit.intent import intent_facts
from tools.launcher.submit.provenance import write_provenance
from tools.launcher.submit.request import LaunchFacts, argument_of, coordinator_request, run_key
from tools.launcher.submit.settle import LooksAtJobs, cancelled_facts, settle, settled_record_of
from tools.launcher.submit.source_state import SourceState
from tools.launcher.submit.stage_steps import RL_KIND, steps_digest, steps_of_stage
from tools.launcher.submit.turns import TurnRefused, take_turn

# How often one call submits: once, and once more after a lost reply whose job is not there.
MAX_SUBMISSIONS = 2


class SubmitState(enum.StrEnum):
    """How a call of `submit_once` ended."""

    SUBMITTED = "submitted"
    ADOPTED = "adopted"
    FINISHED_BEFORE = "finished_before"
    FAILED_BEFORE = "failed_before"
    CANCELLED_BEFORE = "cancelled_before"
    TAKEN = "taken"
    CONFLICT = "conflict"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"

    @property
    def has_job(self) -> bool:
        """True if the run's one job lives or has succeeded: follow it, exit 0 if it ends well."""
        return self in (SubmitState.SUBMITTED, SubmitState.ADOPTED, SubmitState.FINISHED_BEFORE)


_OURS = (
    SubmitState.SUBMITTED,
    SubmitState.ADOPTED,
    SubmitState.FINISHED_BEFORE,
    SubmitState.FAILED_BEFORE,
    SubmitState.CANCELLED_BEFORE,
)
"""The run is this launch's, whatever became of it."""


class SubmitOutcome(BaseModel):
    """What `submit_once` found or did.

    Attributes:
        state: which end.
        key: the record's key.
        job_id: the coordinator's job, None if there is none or none is known.
        record: as stored now; None if nothing was recorded, which only TAKEN leaves behind.
        message: one sentence or two for the user: what happened, and what to do if anything.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    state: SubmitState
    key: RunKey
    job_id: str | None
    record: RunRecord | None
    message: str


class SubmitGateway(LooksAtJobs, Protocol):
    """What is asked of the scheduler; `iris.gateway.IrisGateway` has it."""

    def job_id_of(self, user: str, name: str) -> str:
        """Return the id a job of this user and name has."""
        ...

    def submit(self, request: JobRequest) -> str:
        """Submit under a name never used before and return the job's id; raises as IrisGateway.submit."""
        ...


def submit_once(
    store: ObjectStore,
    gateway: SubmitGateway,
    bundle: LaunchBundle,
    facts: LaunchFacts,
    source: SourceState,
    code: CodeArchive,
    *,
    secrets: Mapping[str, SecretStr],
) -> SubmitOutcome:
    """Bring it about that the launch has exactly one job, however often and by whomever this is called.

    Args:
        store: the store at `facts.store_url`.
        gateway: the cluster's scheduler.
        bundle: the reviewed files.
        facts: the launch.
        source: who launches from what.
        code: the launcher's code for the job.
        secrets: value of each of `facts.credentials`. They go to the scheduler and nowhere else.

    Raises:
        BundleError: launch document and digest file do not agree.
        LaunchMismatch: bundle, facts and secrets do not go together.
        StoreError: the store failed; call again when it works.
    """
    digests = verify_bundle(bundle)
    key = run_key(facts, digests.launch)
    record = load_record(store, key)
    outcome = None if record is None else decided_before(record, bundle, facts)
    if outcome is None:
        # Everything that can be refused without anybody else is refused before anything is written.
        packed = pack(bundle)
        request = coordinator_request(
            facts, launch_digest=digests.launch, bundle_digest=sha256_hex(packed), code=code, secrets=secrets
        )
        intent = intent_facts(
            bundle,
            digests=digests,
            bundle_digest=sha256_hex(packed),
            facts=facts,
            request=request,
            source=source,
            code=code,
        )
        put_content(store, BUNDLE_PREFIX, packed)
        outcome = _Launch(store, gateway, bundle, facts, request, key, source.who).go_on(record, intent)
    complete(store, outcome, bundle)
    return outcome


def complete(store: ObjectStore, outcome: SubmitOutcome, bundle: LaunchBundle) -> None:
    """Write what belongs to a submitted run and may be missing: its call was killed, or the store cleaned.

    Args:
        store: where the record is.
        outcome: of the launch.
        bundle: the reviewed files.

    Raises:
        StoreError: the store failed.
    """
    if outcome.record is not None and outcome.job_id is not None and outcome.state in _OURS:
        put_content(store, BUNDLE_PREFIX, pack(bundle))
        write_provenance(store, outcome.record, bundle)


class _Launch:
    """One call's view of one run. Holds no state of its own: all of it is in the store and in Iris."""

    def __init__(
        self,
        store: ObjectStore,
        gateway: SubmitGateway,
        bundle: LaunchBundle,
        facts: LaunchFacts,
        request: JobRequest,
        key: RunKey,
        by: str,
    ) -> None:
        self._store, self._gateway, self._bundle, self._facts = store, gateway, bundle, facts
        self._request, self._key, self._by = request, key, by
        self._job_id = gateway.job_id_of(request.user, request.name)

    def go_on(self, record: RunRecord | None, intent: dict[str, Any]) -> SubmitOutcome:
        """Take the arrows that are left; the bundle is stored.

        Args:
            record: as read before, which decided nothing; None if there was none.
            intent: facts of the intent event.
        """
        if record is not None and record.state.is_live:
            # Its version and turn are its own already, and nothing is submitted any more.
            return self.recover()
        try:
            self._reserve()
        except (ClaimRefused, TurnRefused) as refusal:
            return SubmitOutcome(
                state=SubmitState.TAKEN,
                key=self._key,
                job_id=None,
                record=load_record(self._store, self._key),
                message=str(refusal),
            )
        _, fresh = put_first_event(self._store, self._key, "intent", self._by, intent)
        if fresh:
            return self.submit()
        # Somebody may have opened the record since it was read.
        return decided_before(self.record(), self._bundle, self._facts) or self.recover()

    def _reserve(self) -> None:
        """Claim the versions that the launch makes, and take the turn of the one it trains.

        Raises:
            ClaimRefused, TurnRefused: a version, or its turn, is another's.
            StoreError: the store failed.
        """
        graph_json, stage = self._bundle.graph_json, self._facts.stage
        claims = version_claims(graph_json, stage=stage, launch_digest=self._key.launch_digest)
        claim_versions(self._store, claims, self._by)
        record_of = settled_record_of(self._store, self._gateway, self._facts.route, self._by)
        for step in steps_of_stage(graph_json, stage):
            if step["kind"] == RL_KIND:
                take_turn(self._store, self._key, step["name"], step["version"], self._by, record_of)

    def recover(self) -> SubmitOutcome:
        """Continue where an earlier call stopped: look before acting."""
        try:
            job = self._gateway.describe(self._job_id)
        except IrisError as error:
            return self._not_answered(error)
        if job is not None:
            return self._compare(job, SubmitState.ADOPTED)
        record = self.record()
        if record.state.is_live:
            # It was accepted once and is gone: starting it again unasked could be a second run.
            record = settle(self._store, self._gateway, record, self._by)
            return ended_before(record) or self._unknown(
                "its record says that it was accepted, and it is not there"
            )
        return ended_before(self._without_cancelled(record)) or self.submit()

    def _without_cancelled(self, record: RunRecord) -> RunRecord:
        """Return the record; of a run without a job that was to be cancelled, with its end."""
        if record.state.is_final or not record.cancel_requests:
            return record
        authorized = record.cancel_requests[-1].facts.get("authorized")
        self._append("cancelled", cancelled_facts(authorized, []))
        return self.record()

    def submit(self) -> SubmitOutcome:
        """Submit, and find out what happened if the scheduler does not say."""
        for _ in range(MAX_SUBMISSIONS):
            try:
                job_id = self._gateway.submit(self._request)
            except JobNameTaken:
                return self._found_by_name(SubmitState.ADOPTED)
            except JobRefused as error:
                self._append("refused", {"reason": error.reason})
                return self.end(
                    SubmitState.REFUSED,
                    f"Iris refused the job {self._job_id}: {error.reason}. Nothing runs; correct that and "
                    "launch again",
                )
            except IrisUnreachable as error:
                return self._not_answered(error)
            except ReplyLost:
                found = self._found_after_lost_reply()
                if found is not None:
                    return found
                continue
            # Of this call: the intent may be of an earlier one, by another build of the launcher, and
            # somebody else may have answered for other gates.
            code = sha256_hex(self._request.files[CODE_ARCHIVE])
            self._append(
                "submitted",
                {
                    "job_id": job_id,
                    "bundle": self._bundle_digest(),
                    "adopted": False,
                    "code": code,
                    **self._facts.gates,
                },
            )
            return self.end(SubmitState.SUBMITTED, f"submitted {job_id}", job_id)
        return self._unknown("the request was sent and its answer lost, and the job is not there yet")

    def _found_after_lost_reply(self) -> SubmitOutcome | None:
        try:
            job = self._gateway.describe(self._job_id)
        except IrisError as error:
            return self._unknown(
                f"the request was sent, its answer lost, and the job could not be looked up: {error}"
            )
        return None if job is None else self._compare(job, SubmitState.SUBMITTED)

    def _found_by_name(self, state: SubmitState) -> SubmitOutcome:
        try:
            job = self._gateway.describe(self._job_id)
        except IrisError as error:
            return self._unknown(f"Iris has a job of this name and it could not be looked up: {error}")
        if job is None:
            return self._unknown("Iris said that a job of this name exists, then that it does not")
        return self._compare(job, state)

    def _compare(self, job: JobFacts, state: SubmitState) -> SubmitOutcome:
        """Take up the job that has our name if it is our launch, else stop."""
        seen = argument_of(job.argv, "launch")
        if seen != self._key.launch_digest:
            return self._conflict(
                job,
                f"job {job.job_id} exists with the launch digest "
                f"{'sha256:' + seen if seen else '(none to be seen)'}, "
                f"expected sha256:{self._key.launch_digest}. It is not this launch and is left alone. "
                "Find out whose it is, or give the experiment another name",
                seen,
            )
        reports_to, ours = argument_of(job.argv, "store"), argument_of(self._request.argv, "store")
        if reports_to != ours:
            return self._conflict(
                job,
                f"job {job.job_id} runs this launch and records in the store {reports_to}, this command "
                f"uses {ours}. "
                "Use that store",
                seen,
            )
        record = self.record()
        if not any(event.kind == "submitted" for event in record.events):
            facts = {
                "job_id": job.job_id,
                "bundle": argument_of(job.argv, "bundle") or self._bundle_digest(),
                "adopted": True,
            }
            # Of many who find the job one writes it down. Whoever submitted it says so besides.
            append_event_once(self._store, self._key, "submitted", self._by, facts)
            record = self.record()
        record = settle(self._store, self._gateway, record, self._by)
        if ended := ended_before(record):
            return ended
        verb = "submitted" if state is SubmitState.SUBMITTED else "already submitted: following"
        return self.end(state, f"{verb} {job.job_id}", job.job_id)

    def _conflict(self, job: JobFacts, message: str, seen: str | None) -> SubmitOutcome:
        record = self.record()
        if not (record.state is RunState.CONFLICT and record.reason == message):
            self._append("conflict", {"job_id": job.job_id, "seen": seen, "reason": message})
        return self.end(SubmitState.CONFLICT, message, job.job_id)

    def _not_answered(self, error: IrisError) -> SubmitOutcome:
        return self.end(SubmitState.UNREACHABLE, f"{error}. Nothing was submitted by this call")

    def _unknown(self, why: str) -> SubmitOutcome:
        return self.end(
            SubmitState.UNKNOWN,
            f"job {self._job_id} may exist: {why}. Launch again: that looks the job up by name before it "
            "acts",
        )

    def end(self, state: SubmitState, message: str, job_id: str | None = None) -> SubmitOutcome:
        """Return the outcome with the record as it is now."""
        return SubmitOutcome(state=state, key=self._key, job_id=job_id, record=self.record(), message=message)

    def _append(self, kind: EventKind, facts: dict[str, Any]) -> None:
        append_event(self._store, self._key, kind, self._by, facts)

    def _bundle_digest(self) -> str | None:
        return argument_of(self._request.argv, "bundle")

    def record(self) -> RunRecord:
        """Return the record as it is now."""
        return reload_record(self._store, self._key)


def decided_before(record: RunRecord, bundle: LaunchBundle, facts: LaunchFacts) -> SubmitOutcome | None:
    """The outcome that the record alone decides, without the scheduler; None if there is something to do.

    Args:
        record: of the launch's key.
        bundle: the reviewed files, which may have other steps than the record was opened with.
        facts: the launch, which may be for another place than the record was opened for.
    """
    return _other_place(record, facts) or _other_graph(record, bundle) or ended_before(record)


def ended_before(record: RunRecord) -> SubmitOutcome | None:
    """The outcome for a run that is over, None for one that is not."""
    key, job_id = record.key, record.coordinator_job_id
    again = (
        'ask for a relaunch explicitly (--relaunch --authorize="who: why"; through Bazel: `-- --relaunch ...`): '
        "it becomes attempt "
        f"{key.ordinal + 1}"
    )
    attempt = f"attempt {key.ordinal} of {key.experiment} (launch sha256:{key.launch_digest[:8]})"
    if record.state is RunState.SUCCEEDED:
        state, message = SubmitState.FINISHED_BEFORE, f"already finished as {job_id}: nothing to submit"
    elif record.state is RunState.FAILED:
        state = SubmitState.FAILED_BEFORE
        message = (
            f"{attempt} failed as {job_id}: {record.reason or 'no reason was recorded'}. Nothing was "
            f"submitted. To try the same document again, {again}"
        )
    elif record.state is RunState.CANCELLED:
        state = SubmitState.CANCELLED_BEFORE
        message = (
            f"{attempt} was cancelled: {record.reason or 'no reason was recorded'}. Nothing was submitted. "
            f"To run the same document after all, {again}"
        )
    else:
        return None
    return SubmitOutcome(state=state, key=key, job_id=job_id, record=record, message=message)


def _other_place(record: RunRecord, facts: LaunchFacts) -> SubmitOutcome | None:
    """The outcome if the record is of a run elsewhere, else None.

    A rehearsal must not pass for the run, and the job of somebody else's local Iris cannot be looked up in
    ours: it would be taken for lost.
    """
    opening = record.events[0]
    differing = [
        f"{name} {recorded}, this launch {ours}"
        for name, recorded, ours in (
            ("runtime", record.runtime, facts.runtime),
            ("cluster", record.cluster, facts.cluster),
            # Written as null for real object storage, and not at all by earlier versions.
            ("objects", opening.facts.get("object_root", facts.object_root_url), facts.object_root_url),
        )
        if recorded != ours and not (recorded is None and name != "objects")
    ]
    if not differing:
        return None
    return SubmitOutcome(
        state=SubmitState.CONFLICT,
        key=record.key,
        job_id=record.coordinator_job_id,
        record=record,
        message=(
            f"{record.key} was begun by {opening.by} at {opening.at} in another place: "
            f"{'; '.join(differing)}. One store holds one run of a document: give this one another store "
            "with --store"
        ),
    )


def _other_graph(record: RunRecord, bundle: LaunchBundle) -> SubmitOutcome | None:
    """The outcome if the record was opened with other steps, else None."""
    opening = record.events[0]
    # A record of an older launcher does not say.
    recorded, ours = opening.facts.get("steps"), steps_digest(bundle.graph_json)
    if recorded is None or recorded == ours:
        return None
    return SubmitOutcome(
        state=SubmitState.CONFLICT,
        key=record.key,
        job_id=record.coordinator_job_id,
        record=record,
        message=(
            f"{record.key} was begun by {opening.by} at {opening.at} with other steps: recorded "
            f"sha256:{recorded}, "
            f"this build sha256:{ours}. The launch document is the same, a step around it is not. "
            "Give the experiment a new version"
        ),
    )
