"""Where a run's files are and what the plan promised: read from the bundle, the only source of it."""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.launcher.documents.strict_yaml import load_yaml
from tools.launcher.observe.evidence import Unreadable, read_object
from tools.launcher.store.bundles import BUNDLE_PREFIX, unpack, verify_bundle
from tools.launcher.store.content import get_content
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import ObjectStore, StoreError
from tools.launcher.store.records import RunRecord, attempt_id_of

_TRAINS = "skyrl"
_EVALUATES = "evaluate"


class PlanUnreadable(StoreError):
    """A record's bundle does not tell what the run was meant to do."""


class PlannedStep(BaseModel):
    """A step that the run makes or uses.

    Attributes:
        address: `name@version`.
        kind: hf_model, dataset, skyrl or evaluate.
        fingerprint: hex digits of its recipe, 64, or 8 of an artifact that was adopted.
        output_path: URI of its artifact.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    address: str
    kind: str
    fingerprint: str
    output_path: str


class RunFiles(BaseModel):
    """The part of a launch document and its graph which observing needs.

    Attributes:
        run_id: of the document.
        attempt_id: 12 hex digits of the record's own attempt.
        attempts: ids of all attempts of this document up to the record's, oldest first.
        num_nodes: tasks of the gang; a task stands for a node.
        gpus_per_node, gpu_variant: of one node.
        model_uri, model_identity, model_local_path, tokenizer_revision: the declared starting weights.
        launcher_commit: of the runtime, "" if the document does not say.
        rendezvous_dir: where the tasks of a gang find each other, likewise.
        attempts_root, checkpoint_root, export_root, terminal_manifest_uri, resolved_config_uri: URIs.
        max_steps: training steps, None if the document leaves it to the data.
        export_hf: whether success needs an export.
        rl_step: `name@version` of the graph's skyrl step, None if the run's stage ends before it.
        steps: all that the run's stage makes or uses, in the graph's order.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    run_id: str
    attempt_id: str
    attempts: tuple[str, ...]
    num_nodes: int = Field(ge=1)
    gpus_per_node: int
    gpu_variant: str
    model_uri: str
    model_identity: str
    model_local_path: str
    tokenizer_revision: str
    launcher_commit: str
    rendezvous_dir: str
    attempts_root: str
    checkpoint_root: str
    export_root: str
    terminal_manifest_uri: str
    resolved_config_uri: str
    max_steps: int | None
    export_hf: bool
    rl_step: str | None
    steps: tuple[PlannedStep, ...]

    @property
    def imports(self) -> tuple[PlannedStep, ...]:
        """The models and data."""
        return tuple(step for step in self.steps if step.kind not in (_TRAINS, _EVALUATES))

    @property
    def evaluations(self) -> tuple[PlannedStep, ...]:
        """The evaluations of what was trained."""
        return tuple(step for step in self.steps if step.kind == _EVALUATES)

    def attempt_uri(self, attempt_id: str) -> str:
        """Folder of an attempt's files."""
        return f"{self.attempts_root}/{attempt_id}"

    def attempts_before(self, attempt_id: str) -> tuple[str, ...]:
        """Ids of the attempts of this document before one, newest first; none if it is not of them."""
        if attempt_id not in self.attempts:
            return ()
        return self.attempts[: self.attempts.index(attempt_id)][::-1]


def run_files(record: RunRecord, store: ObjectStore) -> RunFiles:
    """Return what `record`'s bundle says.

    Raises:
        PlanUnreadable: the record names no bundle, or the bundle lacks something.
        StoreError: the bundle is missing or damaged.
    """
    if not record.bundle_digest:
        raise PlanUnreadable(
            f"{record.key}: the record names no bundle, so nothing is known of its files. Launch it again"
        )
    bundle = unpack(get_content(store, BUNDLE_PREFIX, record.bundle_digest))
    digests = verify_bundle(bundle)
    if digests.launch != record.key.launch_digest:
        raise PlanUnreadable(
            f"{record.key}: its bundle holds the launch document sha256:{digests.launch}. The record was "
            "tampered with"
        )
    document: Any = load_yaml(bundle.launch_yaml, source="launch.yaml")
    try:
        steps = tuple(
            PlannedStep.model_validate(step)
            for step in json.loads(bundle.graph_json)["steps"]
            if not record.artifacts or step["address"] in record.artifacts
        )
        run, artifacts = document["run"], document["artifacts"]
        model, allocation = document["inputs"]["model"], document["iris"]["allocation"]
        return RunFiles(
            run_id=run["id"],
            attempt_id=record.attempt_ids[-1] if record.attempt_ids else attempt_id_of(record.key),
            attempts=tuple(
                attempt_id_of(record.key.model_copy(update={"ordinal": ordinal}))
                for ordinal in range(1, record.key.ordinal + 1)
            ),
            num_nodes=allocation["num_nodes"],
            gpus_per_node=allocation["gpus_per_node"],
            gpu_variant=allocation["gpu_variant"],
            model_uri=model["uri"],
            model_identity=model["identity"],
            model_local_path=model["local_path"],
            tokenizer_revision=model["tokenizer_revision"],
            launcher_commit=document.get("runtime", {}).get("launcher_commit", ""),
            rendezvous_dir=document.get("ray", {}).get("rendezvous_dir", ""),
            attempts_root=artifacts["attempts_root"],
            checkpoint_root=artifacts["checkpoint_root"],
            export_root=artifacts["export_root"],
            terminal_manifest_uri=artifacts["terminal_manifest_uri"],
            resolved_config_uri=artifacts["resolved_config_uri"],
            max_steps=document["skyrl"]["trainer"].get("max_steps"),
            export_hf=run.get("export_hf", True),
            rl_step=next((step.address for step in steps if step.kind == _TRAINS), None),
            steps=steps,
        )
    except (KeyError, TypeError, AttributeError, ValueError, ValidationError) as error:
        what = " ".join(str(error).split())[:200]
        raise PlanUnreadable(
            f"{record.key}: its launch document or graph cannot be read ({type(error).__name__}: {what}). "
            "Build the experiment again and launch it"
        ) from None


def answering_attempt(record: RunRecord, files: RunFiles, object_root: ObjectRoot) -> str:
    """Return the id of the attempt whose files answer for this run.

    That is the record's own attempt, unless its RL step was reused: then the one that made it, which the
    terminal manifest names.
    """
    if not is_reused(record, files):
        return files.attempt_id
    try:
        return attempt_named_in(read_object(object_root, files.terminal_manifest_uri), files)
    except Unreadable:
        return files.attempt_id


def attempt_named_in(manifest: dict[str, Any], files: RunFiles) -> str:
    """Return the id of the attempt that wrote a terminal manifest, the record's own if it names none."""
    made_by = manifest.get("attempt_id")
    return made_by if isinstance(made_by, str) and made_by.isalnum() else files.attempt_id


def is_reused(record: RunRecord, files: RunFiles) -> bool:
    """Tell whether another run had made the RL step, so that this one made no child."""
    reused = any(
        event.kind == "step_reused" and event.facts.get("step") == files.rl_step for event in record.events
    )
    return reused and not record.child_job_ids
