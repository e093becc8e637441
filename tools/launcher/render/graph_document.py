"""`<name>.graph.json`: the steps, their identities and paths, for the coordinator."""

from typing import Any

from tools.launcher.graph.artifact_graph import ArtifactGraph
from tools.launcher.graph.fingerprint import identity_with, step_fingerprint
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.render.launch_document import Storage, artifact_path
from tools.launcher.rl.pinning import apart_from_runtime, earlier_fingerprints
from tools.launcher.rl.steps import ImportStepPayload, SkyRLStepPayload

GRAPH_SCHEMA = 1


def render_graph_document(
    graph: ArtifactGraph,
    launch_document: dict[str, Any],
    storage: Storage,
    *,
    experiment: str,
    default_stage: str,
    recipe: str,
    pinned: bool = False,
    compatible: tuple[str, ...] = (),
    repins: int = 0,
) -> dict[str, Any]:
    """Describe the graph, dependencies first.

    Args:
        graph: with exactly one RL step.
        launch_document: the rendered document of that step.
        storage: where the target cluster keeps artifacts.
        experiment: label of the target, `//experiments/name:name`.
        default_stage: terminal stage of a launch without --stage.
        recipe: fingerprint of the RL step.
        pinned: whether the version ledger has the RL step exactly as it is.
        compatible: earlier fingerprints of the RL step whose unfinished output it may go on from.
        repins: how often the version was repinned, by the ledger.
    """
    run = next(step for step in graph.steps if isinstance(step.payload, SkyRLStepPayload))
    payload = run.payload
    return {
        "schema": GRAPH_SCHEMA,
        "experiment": experiment,
        "experiment_name": experiment.rsplit(":", 1)[-1],
        "stages": graph.last_steps,
        "default_stage": default_stage,
        "coordinator_timeout_hours": payload.execution.coordinator_timeout_hours,
        "cluster": payload.execution.cluster,
        "max_retries": payload.execution.max_retries,
        "credentials": sorted(payload.execution.credentials or ()),
        "pinned": pinned,
        "repins": repins,
        "apart_from_runtime": apart_from_runtime(run),
        "steps": [
            _step(step, recipe if step is run else step_fingerprint(step), graph, launch_document, storage)
            | {"compatible": list(earlier_fingerprints(step, run, compatible))}
            for step in graph.steps
        ],
    }


def _step(
    step: ArtifactStep,
    fingerprint: str,
    graph: ArtifactGraph,
    launch_document: dict[str, Any],
    storage: Storage,
) -> dict[str, Any]:
    return {
        "address": step.address,
        "name": step.name,
        "version": step.version,
        "kind": step.kind,
        "stage": step.stage,
        "fingerprint": fingerprint,
        "identity": identity_with(step, fingerprint),
        "adopted": step.recorded_fingerprint is not None,
        "output_path": artifact_path(step, storage.prefix),
        "temporary_root": launch_document["artifacts"]["checkpoint_root"].removesuffix("/checkpoints")
        if step.kind == "skyrl"
        else None,
        "deps": [dep.address for dep in step.deps],
        "config": _work(step, graph, launch_document),
    }


def _work(step: ArtifactStep, graph: ArtifactGraph, launch_document: dict[str, Any]) -> dict[str, Any]:
    """What the coordinator needs to make the artifact; identity is in the fingerprint."""
    if step.kind == "skyrl":
        return {
            "runtime_commit": launch_document["runtime"]["launcher_commit"],
            **launch_document["iris"]["allocation"],
        }
    if step.kind == "evaluate":
        return dict(step.config)
    relative_paths: list[str] = []
    environment = launch_document["skyrl"].get("environment")
    env_class = environment.get("env_class") if isinstance(environment, dict) else None
    for run in graph.steps:
        if not isinstance(run.payload, SkyRLStepPayload):
            continue
        spec = run.payload.spec
        if spec.model.step == step and spec.model.relative_path:
            relative_paths.append(spec.model.relative_path)
        relative_paths += [
            source.relative_path
            for source in (*spec.train_data, *spec.validation_data)
            if source.step == step
        ]
    card = step.payload.card.name if isinstance(step.payload, ImportStepPayload) else None
    if step.kind == "hf_model":
        return {"model": card, "relative_path": relative_paths[0] if relative_paths else None}
    return {"dataset": card, "relative_paths": sorted(set(relative_paths)), "env_class": env_class}
