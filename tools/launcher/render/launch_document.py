"""From a typed spec to the `SkyRLLaunchConfig` document.

The result, loaded, equals what Marin renders for the same spec (contract, launch-document.md).
Rendering checks nothing and never fails on bad numbers: preflight judges the result.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.graph.fingerprint import step_identity
from tools.launcher.graph.names import sanitised_job_name
from tools.launcher.graph.paths import (
    data_staging_path,
    model_staging_path,
    output_path,
    rounded_ttl_days,
    temporary_root,
)
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.rl.artifacts import ArtifactHfModel, DataSource, TaskTroveDataSource
from tools.launcher.rl.recipe import JsonValue
from tools.launcher.rl.spec import SkyRLSpec
from tools.launcher.rl.steps import SkyRLStepPayload
from tools.launcher.rl.topology import ROLE_PLAN_PATHS, SkyRLRolePlan

SCHEMA_VERSION = 1

PLACEHOLDER_ATTEMPT_ID = "000000000000"
"""Stands in the pinned document for the only value that differs in every attempt. The
coordinator replaces `run.attempt_id` and `iris.job_name` and nothing else."""

# Constants that the renderer of marin-core 0.2.210 writes (launch-document.md §4.3 and §4.6).
_EXPERIMENTS_DIR = "/app/experiments"
_RAY: dict[str, JsonValue] = {"port": 6379, "spill_backend": "local", "spill_dir": "/tmp/skyrl-ray-spill"}
_RAY_TIMEOUTS: dict[str, JsonValue] = {
    "rendezvous_timeout": 1800,
    "cluster_join_timeout": 1800,
    "driver_liveness_timeout": 9000,
}


class Storage(BaseModel):
    """Roots of the target cluster's storage."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    prefix: str
    """`MARIN_PREFIX`: root of durable artifacts."""
    temporary_bucket: str
    """Root of what may expire, without `tmp/`."""


def run_id(spec: SkyRLSpec) -> str:
    """Return `run.id` of the document, `<name>-<version>`."""
    return f"{spec.name}-{spec.version}"


def artifact_path(step: ArtifactStep, prefix: str) -> str:
    """Return the durable path of a step's output."""
    return step.override_path or output_path(prefix, step.name, step.version)


def render_launch_document(payload: SkyRLStepPayload, storage: Storage) -> dict[str, Any]:
    """Render the source form of the launch document.

    Args:
        payload: spec, placement and export policy of the RL step.
        storage: where the target cluster keeps artifacts.

    Returns:
        The complete document with the placeholder attempt, in the order in which it is written.
    """
    spec, execution = payload.spec, payload.execution
    identifier = run_id(spec)
    durable = output_path(storage.prefix, spec.name, spec.version)
    # A lifetime that is refused anyway (EXE-16) must not stop the other findings.
    ttl_days = max(1, spec.retention.temporary_storage_ttl_days)
    temporary = temporary_root(storage.temporary_bucket, rounded_ttl_days(ttl_days), durable)
    attempts = f"{temporary}/attempts"
    topology = spec.topology
    skyrl = _skyrl_section(spec)
    return {
        "schema_version": SCHEMA_VERSION,
        "run": {
            "id": identifier,
            "attempt_id": PLACEHOLDER_ATTEMPT_ID,
            "seed": spec.seed,
            "mode": "train",
            "submission": "wait",
            "export_hf": payload.export_hf,
        },
        "runtime": {
            "launcher_commit": spec.runtime.commit,
            "profile": spec.runtime.profile,
            "entrypoint": "",
            "experiments_dir": _EXPERIMENTS_DIR,
            "task_env": _task_env(spec.recipe.settings.get("extra_env")),
        },
        "iris": {
            "cluster": execution.cluster,
            "cluster_config": execution.cluster_config,
            "job_name": sanitised_job_name(f"{identifier}-{PLACEHOLDER_ATTEMPT_ID}"),
            "wandb_entity": execution.wandb_entity,
            "allocation": {
                "num_nodes": topology.num_nodes,
                "gpus_per_node": topology.gpus_per_node,
                "gpu_variant": topology.gpu_variant,
                "cpu": execution.cpu,
                "memory": execution.memory,
                "disk": execution.disk,
            },
            "priority": execution.priority,
            "max_retries": execution.max_retries,
            "timeout": execution.job_timeout_seconds,
            "target_cluster": execution.target_cluster,
            "parent_cluster_config": execution.parent_cluster_config,
        },
        # Marin leaves the section out since 0.2.170; the launcher still reads it.
        **({} if execution.ingress is None else {"ingress": execution.ingress.model_dump()}),
        "ray": {
            **_RAY,
            "rendezvous_dir": f"{attempts}/rendezvous",
            "log_dir": f"{attempts}/ray-logs",
            **_RAY_TIMEOUTS,
        },
        "artifacts": {
            "checkpoint_root": f"{temporary}/checkpoints",
            "export_root": f"{durable}/exports",
            "attempts_root": attempts,
            "resolved_config_uri": f"{durable}/resolved-launch.yaml",
            "terminal_manifest_uri": f"{durable}/terminal.json",
            "resume_checkpoint_count": spec.retention.resume_checkpoint_count,
        },
        "inputs": {
            "model": _model_input(spec.model, storage.prefix),
            "data_kind": _data_kind(spec.recipe.settings),
            "train_data": [_data_input(source, storage.prefix) for source in spec.train_data],
            "validation_data": [_data_input(source, storage.prefix) for source in spec.validation_data],
        },
        "skyrl": skyrl,
    }


def _skyrl_section(spec: SkyRLSpec) -> dict[str, JsonValue]:
    section = _copied(spec.recipe.settings)
    section.pop("context_budget", None)  # CTX-03 reports it; the budget of the spec is judged.
    ordered: dict[str, JsonValue] = (
        {"entrypoint": section.pop("entrypoint")} if "entrypoint" in section else {}
    )
    ordered["context_budget"] = spec.context_budget.declared()
    ordered.update(section)
    _apply_role_plan(ordered, spec.topology.role_plan)
    if "extra_env" in ordered:
        ordered["extra_env"] = ordered.pop("extra_env")  # last, as Marin writes it
    return ordered


def _apply_role_plan(section: dict[str, JsonValue], plan: SkyRLRolePlan) -> None:
    for field, path in ROLE_PLAN_PATHS:
        *inner, leaf = path.split(".")
        node: Any = section
        for key in inner:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                break  # GEO-19 reports a scalar where a section must be.
        else:
            node[leaf] = getattr(plan, field)


def _task_env(extra_env: JsonValue) -> JsonValue:
    """Null is dropped, booleans become 0 or 1, the rest text (runtime-facts.md §12)."""
    if extra_env is None:
        return {}
    if not isinstance(extra_env, dict):
        return extra_env  # EXE-13 reports it.
    return {
        name: str(int(value)) if isinstance(value, bool) else str(value)
        for name, value in extra_env.items()
        if value is not None
    }


def _data_kind(settings: dict[str, JsonValue]) -> JsonValue:
    data = settings.get("data")
    return data.get("kind", "tasks") if isinstance(data, dict) else "tasks"


def _model_input(model: ArtifactHfModel, prefix: str) -> dict[str, JsonValue]:
    path = artifact_path(model.step, prefix)
    return {
        "uri": f"{path}/{model.relative_path}" if model.relative_path else path,
        "identity": step_identity(model.step),
        "local_path": model_staging_path(model.step.name),
        "tokenizer_uri": model.tokenizer_uri,
        "tokenizer_revision": model.tokenizer_revision,
        "chat_template": None,
    }


def _data_input(source: DataSource, prefix: str) -> dict[str, JsonValue]:
    common: dict[str, JsonValue] = {
        "uri": artifact_path(source.step, prefix),
        "identity": step_identity(source.step),
        "local_path": data_staging_path(source.step.name),
        "relative_path": source.relative_path,
    }
    if not isinstance(source, TaskTroveDataSource):
        return common | {"kind": "directory"}
    return common | {
        "verifier_ref": source.verifier_ref,
        "selection": source.selection.model_dump(mode="json"),
        "kind": "tasktrove_parquet",
    }


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
