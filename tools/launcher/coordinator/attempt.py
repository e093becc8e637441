"""The attempt document: the pinned one with exactly its two per-attempt fields replaced.

Where the run is federated, its two routing fields are null in it as well. They say how the hub is reached
from outside, and have done their work when the hub handed the coordinator to the cluster. Inside, the
controller of the coordinator's own task is the right one; with a target, the runtime launcher would look for
the hub's configuration file and a person's login in the coordinator's task (MarinSkyRL
cloud/iris/iris_backend.py@019c9759, `launch`). Marin writes null there for the same reason
(marin/rl/skyrl.py, `submit_through_ambient_controller`).
"""

import copy
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.documents.canonical import digest_of
from tools.launcher.documents.strict_yaml import DocumentError, load_yaml
from tools.launcher.documents.yaml_writer import dump_yaml
from tools.launcher.graph.names import sanitised_job_name
from tools.launcher.store.records import RunKey, attempt_id_of

PER_ATTEMPT_FIELDS = (("run", "attempt_id"), ("iris", "job_name"))
ROUTING_FIELDS = (("iris", "target_cluster"), ("iris", "parent_cluster_config"))


class AttemptProblem(ValueError):
    """The attempt document cannot be made from the pinned one."""


class Attempt(BaseModel):
    """One attempt of a run.

    Attributes:
        attempt_id: 12 hex digits, from launch digest and ordinal.
        job_name: of the child job.
        document: the attempt document, YAML.
        digest: of its values, 64 hex digits (the pinned document's is the launch digest).
        run_id, launcher_commit, runtime_profile, submission: of the document, to check answers against.
        attempts_root, terminal_manifest_uri: of the document.
        tokenizer_uri, tokenizer_revision: of `inputs.model`.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    attempt_id: str
    job_name: str
    document: bytes
    digest: str
    run_id: str
    launcher_commit: str
    runtime_profile: str
    submission: str
    attempts_root: str
    terminal_manifest_uri: str
    tokenizer_uri: str
    tokenizer_revision: str


def make_attempt(pinned_bytes: bytes, key: RunKey) -> Attempt:
    """Make the attempt of `key` from the pinned launch document.

    A restarted coordinator makes the same attempt, byte for byte.

    Raises:
        AttemptProblem: a field is missing, the document is not the one of `key`, or the result
            differs from it elsewhere than in the per-attempt and routing fields.
        DocumentError: it is not YAML.
    """
    pinned = load_yaml(pinned_bytes, source="launch.yaml")
    if digest_of(pinned) != key.launch_digest:
        raise AttemptProblem(
            f"launch.yaml has the digest {digest_of(pinned)}, the run is for {key.launch_digest}. "
            "Launch again"
        )
    run_id = _text(pinned, "run", "id")
    attempt_id = attempt_id_of(key)
    job_name = sanitised_job_name(f"{run_id}-{attempt_id}")
    document = copy.deepcopy(pinned)
    for (section, field), value in zip(PER_ATTEMPT_FIELDS, (attempt_id, job_name), strict=True):
        _text(document, section, field)
        document[section][field] = value
    for section, field in ROUTING_FIELDS:
        if field in document[section]:
            document[section][field] = None
    data = dump_yaml(document)
    # What is written is read again: the proof is about the bytes the runtime gets.
    written = load_yaml(data, source="the attempt document")
    digest = digest_of(written)
    if digest_of(with_fields_of(written, pinned)) != key.launch_digest:
        raise AttemptProblem("the attempt document differs from the pinned one in more than it may")
    return Attempt(
        attempt_id=attempt_id,
        job_name=job_name,
        document=data,
        digest=digest,
        run_id=run_id,
        launcher_commit=_text(pinned, "runtime", "launcher_commit"),
        runtime_profile=_text(pinned, "runtime", "profile"),
        submission=_text(pinned, "run", "submission"),
        attempts_root=_text(pinned, "artifacts", "attempts_root"),
        terminal_manifest_uri=_text(pinned, "artifacts", "terminal_manifest_uri"),
        tokenizer_uri=_text(pinned, "inputs", "model", "tokenizer_uri"),
        tokenizer_revision=_text(pinned, "inputs", "model", "tokenizer_revision"),
    )


def is_same_run(document: bytes, attempt: Attempt) -> bool:
    """Tell whether `document` is another attempt's document of the run which `attempt` is of."""
    try:
        other = load_yaml(document, source="an earlier attempt's document")
        mine = load_yaml(attempt.document, source="the attempt document")
        return digest_of(with_fields_of(other, mine)) == attempt.digest
    except (DocumentError, KeyError, TypeError):
        return False


def with_fields_of(document: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return `document` with the per-attempt and routing fields of `other`."""
    result = copy.deepcopy(document)
    for section, field in PER_ATTEMPT_FIELDS:
        result[section][field] = other[section][field]
    for section, field in ROUTING_FIELDS:
        if field in result[section]:
            result[section][field] = other[section][field]
    return result


def _text(document: Any, *path: str) -> str:
    value = document
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    if not isinstance(value, str):
        raise AttemptProblem(
            f"launch.yaml: {'.'.join(path)} is {value!r}. It must be text: build the experiment again"
        )
    return value
