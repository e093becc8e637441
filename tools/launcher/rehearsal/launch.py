"""The stand-in for `marinskyrl iris launch`: one document in, one child job, one JSON answer out.

The steps and their order are those of the runtime launcher (contract/launch-document.md §6).
"""

import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from tools.launcher.documents.canonical import canonical_json, sha256_hex
from tools.launcher.documents.files import write_atomically, write_once
from tools.launcher.iris.delivered_secrets import CredentialMissing, delivered
from tools.launcher.iris.jobs import (
    IrisError,
    IrisUnreachable,
    JobFacts,
    JobNameTaken,
    JobRefused,
    JobRequest,
    ReplyLost,
    TaskFacts,
    is_terminal,
)
from tools.launcher.iris.task_bootstrap import CODE_ARCHIVE, bootstrap_argv
from tools.launcher.rehearsal.document import (
    RehearsalDocument,
    document_digest,
    read_document,
)
from tools.launcher.rehearsal.limits import FORWARDED_PREFIX, LimitError, Limits, limits_from
from tools.launcher.rehearsal.outcome import DOCUMENT_FILE, OUTCOME_FILE, PEER_FAILED, Outcome
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import StoreError

# The workers of the embedded cluster are threads which only count: the stand-in asks for the
# document's GPUs, so that placement is real, and for the little CPU and memory it uses itself.
TASK_CPU: Final = 0.5
TASK_MEMORY: Final = "512MB"
TASK_DISK: Final = "1GB"
# Where the document sets no time-out, a toy run still gets one: nothing waits for ever here.
DEFAULT_TIMEOUT_SECONDS: Final = 6 * 3600
MODULE: Final = "tools.launcher.rehearsal"
CHILD_USER: Final = "rehearsal"  # Iris asks for one; a child belongs to its parent's user.

# Iris begins a task's error with what the sentence says already.
_EXIT_CODE: Final = re.compile(r"^\s*Exit code: -?\d+\.?\s*(stderr:\s*)?")

_POLL_SECONDS: Final = 0.2
# Once the gang has written its outcome, its job ends within a second. Before that, questions would take the
# processor from those who work.
_ENDING_POLL_SECONDS: Final = 0.05
_ERROR_TAIL_CHARACTERS: Final = 1200


class Gateway(Protocol):
    """What the launcher needs of Iris (`tools.launcher.iris.gateway.IrisGateway` has it)."""

    def job_id_of(self, user: str, name: str) -> str:
        """Return the id a job of this name gets."""
        ...

    def submit(self, request: JobRequest) -> str:
        """Submit a job, return its id."""
        ...

    def describe(self, job_id: str) -> JobFacts | None:
        """Return what is known about a job."""
        ...

    def cancel(self, job_id: str) -> None:
        """End a job."""
        ...


class Answer(BaseModel):
    """The one JSON object the launcher prints. Field names and meaning are the runtime launcher's."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    run_id: str
    attempt_id: str
    state: str
    iris_job_id: str | None
    iris_job_state: str | None
    launcher_commit: str
    runtime_profile: str
    model: str
    failure: str | None


class LaunchFailed(Exception):
    """The attempt ended without success. The message is the answer's `failure`."""

    def __init__(self, reason: str, job_id: str | None = None, job_state: str | None = None) -> None:
        self.reason, self.job_id, self.job_state = reason, job_id, job_state
        super().__init__(reason)


def launch(
    document_bytes: bytes,
    *,
    source: str,
    object_root_url: str,
    object_root: ObjectRoot,
    code_archive: bytes,
    gateway: Callable[[], Gateway],
    environ: Mapping[str, str],
    say: Callable[[str], None],
    credentials: tuple[str, ...] = (),
) -> Answer:
    """Launch a document and follow it as its `run.submission` asks.

    Args:
        document_bytes: the attempt document.
        source: how messages call it.
        object_root_url: `file:///` URL of the object root, for the tasks.
        object_root: the same, opened.
        code_archive: the launcher's code, for the tasks.
        gateway: opens Iris; called only when something is submitted.
        environ: the process environment; variables that steer a rehearsal are handed on.
        say: takes progress for people.
        credentials: names of what Iris delivered to this task and is to deliver to the child's.

    Returns:
        The answer; its state is `prepared`, `submitted`, `succeeded` or `failed`.

    Raises:
        DocumentProblem: nothing could be answered because the document cannot be read.
    """
    document = read_document(document_bytes, source=source)
    try:
        limits = limits_from(environ, document.ray.cluster_join_timeout)
        _refuse_finished(document, object_root)
        if document.run.submission == "prepare":
            return _answer(document, "prepared", None, None, None)
        request = child_request(
            document,
            document_bytes,
            object_root_url,
            code_archive,
            environ,
            delivered(credentials, environ),
        )
        iris = gateway()
        job_id = _submit_or_adopt(request, iris, say)
        if document.run.submission == "detach":
            return _answer(document, "submitted", job_id, "submitted", None)
        attempt = object_root.path(document.attempt_uri)
        facts = _follow(iris, job_id, attempt, limits, say)
        if facts.state != "succeeded":
            raise LaunchFailed(failure_reason(facts, attempt), job_id, facts.state)
        outcome = _read_outcome(document, document_bytes, object_root, job_id)
    except LaunchFailed as failure:
        _record_failure(document, object_root, failure)
        return _answer(document, "failed", failure.job_id, failure.job_state, failure.reason)
    except (LimitError, CredentialMissing, IrisError, StoreError, OSError) as error:
        _record_failure(document, object_root, LaunchFailed(str(error)))
        return _answer(document, "failed", None, None, str(error))
    _record_success(document, object_root, outcome, job_id)
    return _answer(document, "succeeded", job_id, "succeeded", None)


def child_request(
    document: RehearsalDocument,
    document_bytes: bytes,
    object_root_url: str,
    code_archive: bytes,
    environ: Mapping[str, str],
    secrets: Mapping[str, SecretStr],
) -> JobRequest:
    """Return the gang's request: the document's topology, the stand-in's own CPU and memory.

    The values of `secrets` are in the request's own `secrets` and nowhere else in it.
    """
    allocation = document.iris.allocation
    return JobRequest(
        name=document.iris.job_name,
        user=CHILD_USER,
        # The digest is for whoever finds the job: it tells what the job was submitted for.
        argv=bootstrap_argv(
            MODULE,
            [
                "task",
                f"--object-root={object_root_url}",
                f"--document={sha256_hex(document_bytes)}",
                *(f"--credential={name}" for name in sorted(secrets)),
            ],
        ),
        cpu=TASK_CPU,
        memory=TASK_MEMORY,
        disk=TASK_DISK,
        replicas=allocation.num_nodes,
        gpu_variant=allocation.gpu_variant,
        gpus_per_task=allocation.gpus_per_node,
        files={CODE_ARCHIVE: code_archive, DOCUMENT_FILE: document_bytes},
        env={name: value for name, value in sorted(environ.items()) if name.startswith(FORWARDED_PREFIX)},
        timeout_seconds=document.iris.timeout or DEFAULT_TIMEOUT_SECONDS,
        max_task_retries=document.iris.max_retries,
        coscheduled=allocation.num_nodes > 1,
        secrets=dict(secrets),
    )


def failure_reason(facts: JobFacts, attempt: Path) -> str:
    """Say why a child job failed: the task that caused it, its exit code, what it said last.

    A gang dies together, so most of its tasks failed because of another one. The cause is a task
    which ended by itself and did not blame a peer.
    """
    ended = [task for task in facts.tasks if task.exit_code is not None and task.exit_code != 0]
    causes = [task for task in ended if task.state == "failed" and task.exit_code != PEER_FAILED]
    culprit = next(iter(causes or [task for task in ended if task.state == "failed"] or ended), None)
    total = len(facts.tasks)
    if culprit is None:
        return f"child job {facts.job_id} is {facts.state}: {_tail(facts.error) or 'no task says why'}"
    sentence = (
        f"child job {facts.job_id} is {facts.state}: task {culprit.index} of {total} ended with "
        f"exit code {culprit.exit_code}{_signal_words(culprit)}"
    )
    said = _said(culprit, attempt)
    return f"{sentence}: {said}" if said else sentence


def _refuse_finished(document: RehearsalDocument, object_root: ObjectRoot) -> None:
    uri = document.artifacts.terminal_manifest_uri
    if object_root.path(uri).exists():
        raise LaunchFailed(
            f"the terminal manifest {uri} exists: this version has already finished. Give it a new version"
        )


def _submit_or_adopt(request: JobRequest, iris: Gateway, say: Callable[[str], None]) -> str:
    try:
        job_id = iris.submit(request)
    except JobNameTaken as taken:
        _refuse_foreign(iris.describe(taken.job_id), taken.job_id, request)
        say(f"adopts the child job {taken.job_id}")
        return taken.job_id
    except ReplyLost:
        job_id = iris.job_id_of(request.user, request.name)
        facts = iris.describe(job_id)
        if facts is None:
            raise LaunchFailed(
                f"the submission of {request.name} was not answered and Iris has no such job. Launch again"
            ) from None
        _refuse_foreign(facts, job_id, request)
        say(f"the answer to the submission was lost; Iris has the child job {job_id}")
        return job_id
    except JobRefused as refused:
        raise LaunchFailed(f"Iris refused the child job {request.name}: {refused.reason}") from None
    gpus = f"{request.replicas} x {request.gpus_per_task} {request.gpu_variant}"
    say(f"submitted the child job {job_id}: {gpus}")
    return job_id


def _refuse_foreign(facts: JobFacts | None, job_id: str, request: JobRequest) -> None:
    """Refuse to follow a job that is not this attempt's: its arguments name document and object root."""
    if facts is not None and facts.argv[1:] != request.argv[1:]:  # Iris may replace the interpreter.
        first = request.argv.index("task")
        raise LaunchFailed(
            f"the job {job_id} was submitted for another document or object root: its command ends "
            f"{' '.join(facts.argv[first:])!r}, this attempt's {' '.join(request.argv[first:])!r}. It is left "
            "alone; launch as a new ordinal"
        )


def _follow(
    iris: Gateway, job_id: str, attempt: Path, limits: Limits, say: Callable[[str], None]
) -> JobFacts:
    state, changed_at, seen, unreachable_since = "", time.monotonic(), (0.0, 0), None
    while True:
        now = time.monotonic()
        try:
            facts = iris.describe(job_id)
            unreachable_since = None
        except IrisUnreachable as error:
            # A controller restart takes seconds; one that stays away ends the wait.
            unreachable_since = unreachable_since or now
            if now - unreachable_since > limits.progress:
                raise LaunchFailed(
                    f"{error}; the child job {job_id} may still run", job_id, "unknown"
                ) from None
            time.sleep(_POLL_SECONDS)
            continue
        if facts is None:
            raise LaunchFailed(f"Iris no longer knows the child job {job_id}", job_id, "missing")
        if is_terminal(facts.state):
            return facts
        marks = _progress(attempt)
        if facts.state != state or marks != seen:
            if facts.state != state:
                say(
                    f"child job is {facts.state}"
                    + (f": {facts.pending_reason}" if facts.pending_reason else "")
                )
            state, changed_at, seen = facts.state, now, marks
        limit = limits.progress if facts.state == "running" else limits.pending
        if now - changed_at > limit:
            waited_for = facts.pending_reason or "no task made progress"
            iris.cancel(job_id)
            raise LaunchFailed(
                f"child job {job_id} stayed {facts.state} for {limit:g} s and was cancelled: {waited_for}",
                job_id,
                facts.state,
            )
        time.sleep(_ENDING_POLL_SECONDS if (attempt / OUTCOME_FILE).exists() else _POLL_SECONDS)


def _progress(attempt: Path) -> tuple[float, int]:
    """Return something which changes whenever a task has done something worth a file."""
    newest, count = 0.0, 0
    for pattern in ("metrics.jsonl", "joined/*.json", "model_load/*.json", "failures/*.json"):
        for path in attempt.glob(pattern):
            try:
                newest = max(newest, path.stat().st_mtime)
            except FileNotFoundError:
                continue
            count += 1
    return newest, count


def _read_outcome(
    document: RehearsalDocument, document_bytes: bytes, object_root: ObjectRoot, job_id: str
) -> Outcome:
    resolved = object_root.path(document.artifacts.resolved_config_uri)
    try:
        stored = resolved.read_bytes()
    except OSError:
        raise LaunchFailed(
            f"the child job ended well but {document.artifacts.resolved_config_uri} was not stored",
            job_id,
            "succeeded",
        ) from None
    if document_digest(stored, source="the stored document") != document_digest(
        document_bytes, source="the document"
    ):
        raise LaunchFailed(
            f"{document.artifacts.resolved_config_uri} is not the document of this attempt",
            job_id,
            "succeeded",
        )
    try:
        outcome = Outcome.model_validate_json(
            (object_root.path(document.attempt_uri) / OUTCOME_FILE).read_bytes()
        )
    except (OSError, ValidationError):
        raise LaunchFailed(
            "the child job ended well but rank 0 left no outcome", job_id, "succeeded"
        ) from None
    for what, uri in (("checkpoint", outcome.checkpoint), ("export", outcome.export)):
        if uri is not None and not object_root.path(uri).is_dir():
            raise LaunchFailed(
                f"the child job ended well but its {what} {uri} is missing", job_id, "succeeded"
            )
    return outcome


def _record_success(
    document: RehearsalDocument, object_root: ObjectRoot, outcome: Outcome, job_id: str
) -> None:
    identity = {"run_id": document.run.id, "attempt_id": document.run.attempt_id}
    record = {
        **identity,
        "state": "succeeded",
        "failure": None,
        "iris_job_id": job_id,
        **outcome.model_dump(),
    }
    write_atomically(object_root.path(document.attempt_record_uri), canonical_json(record) + b"\n")
    manifest = {"slipway_rehearsal": True, **identity, "iris_job_id": job_id, **outcome.model_dump()}
    # Two launchers may follow one child (a restarted coordinator): the first one writes.
    write_once(object_root.path(document.artifacts.terminal_manifest_uri), canonical_json(manifest) + b"\n")


def _record_failure(document: RehearsalDocument, object_root: ObjectRoot, failure: LaunchFailed) -> None:
    record = {
        "run_id": document.run.id,
        "attempt_id": document.run.attempt_id,
        "state": "failed",
        "failure": failure.reason,
        "iris_job_id": failure.job_id,
        "rehearsal": True,
    }
    try:
        path = object_root.path(document.attempt_record_uri)
        # A refusal because the version has finished must not overwrite how it finished.
        if failure.job_id is not None:
            write_atomically(path, canonical_json(record) + b"\n")
        else:
            write_once(path, canonical_json(record) + b"\n")
    except (OSError, StoreError):
        # The answer carries the reason as well; the store it should go to is what failed.
        return


def _answer(
    document: RehearsalDocument, state: str, job_id: str | None, job_state: str | None, failure: str | None
) -> Answer:
    return Answer(
        run_id=document.run.id,
        attempt_id=document.run.attempt_id,
        state=state,
        iris_job_id=job_id,
        iris_job_state=job_state,
        launcher_commit=document.runtime.launcher_commit,
        runtime_profile=document.runtime.profile,
        model=document.inputs.model.identity,
        failure=failure,
    )


def _said(task: TaskFacts, attempt: Path) -> str:
    try:
        left = json.loads((attempt / "failures" / f"{task.index}.json").read_bytes())
        # One of an earlier start says nothing about how this one ended.
        if left["start"] == task.attempts - 1:
            return str(left["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return _tail(_EXIT_CODE.sub("", task.error))


def _tail(text: str) -> str:
    return " ".join(text.split())[-_ERROR_TAIL_CHARACTERS:]


def _signal_words(task: TaskFacts) -> str:
    code = task.exit_code or 0
    number = -code if code < 0 else code - 128
    return {9: " (killed)", 15: " (terminated)", 11: " (segmentation fault)"}.get(number, "")
