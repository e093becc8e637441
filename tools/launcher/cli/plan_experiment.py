"""What the build action does: experiment source in, pinned launch document and plan out.

Pure: reads the files it is given, knows no clock, network, environment or absolute path.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from tools.launcher.catalog.cards import ClusterCard, DatasetCard, ModelCard
from tools.launcher.cli.experiment_module import ExperimentError
from tools.launcher.cli.plan_detail import plan_detail
from tools.launcher.documents.canonical import CanonicalEncodingError, canonical_json, digest_of
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.documents.yaml_writer import dump_yaml
from tools.launcher.graph.artifact_graph import ArtifactGraph, build_graph
from tools.launcher.graph.fingerprint import step_fingerprint
from tools.launcher.graph.ledger import VersionLedger
from tools.launcher.graph.stages import other_stages
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.preflight.findings import PreflightReport
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.judge import judge
from tools.launcher.preflight.memory import UNCERTAINTY, MemoryEstimate, memory_estimate
from tools.launcher.preflight.pinned_versions import compatible_with, pinned_run, repins_of
from tools.launcher.preflight.planned import PlannedFrom
from tools.launcher.preflight.registry import CHECKS
from tools.launcher.preflight.render_text import report_json, warnings_text
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import counted
from tools.launcher.render.digests import LaunchDigests, digest_file
from tools.launcher.render.graph_document import render_graph_document
from tools.launcher.render.launch_document import Storage, render_launch_document
from tools.launcher.render.plan import (
    LaunchPlan,
    PlannedArtifact,
    PlannedBatches,
    PlannedRole,
    plan_summary,
)
from tools.launcher.rl.artifacts import DataSource
from tools.launcher.rl.context_budget import derived_lengths
from tools.launcher.rl.inputs import BuildInputs
from tools.launcher.rl.steps import ImportStepPayload, SkyRLStepPayload


class PreflightFailed(Exception):
    """The experiment was refused; `report` holds every violation."""

    def __init__(self, report: PreflightReport) -> None:
        super().__init__(f"{len(report.errors)} errors")
        self.report = report


@dataclasses.dataclass(frozen=True)
class PlannedExperiment:
    """The four outputs as bytes, and what a build prints: two lines, then the warnings."""

    launch: bytes
    graph: bytes
    plan: bytes
    digest: bytes
    summary: str


def plan_experiment(
    terminals: tuple[ArtifactStep, ...],
    inputs: BuildInputs,
    *,
    label: str,
    options: Mapping[str, str],
    stage: str,
    smoke: str | None,
    ledger: VersionLedger,
) -> PlannedExperiment:
    """Judge the graph of an experiment and render its outputs.

    Args:
        terminals: what the experiment's main returned.
        inputs: what the target declares.
        label: of the target.
        options: option name -> text, for the plan.
        stage: default terminal stage.
        smoke: label of the experiment whose success a large launch requires, for the plan.
        ledger: what was published before.

    Raises:
        ExperimentError: the graph has no single RL step, or lacks `stage`; its cluster is not the card's; the card has
            no storage; a value that no check can read, or no file can hold; no terminal step has the target's version.
        PreflightFailed: there are errors. Nothing has been rendered for writing then.
    """
    try:
        return _planned_experiment(terminals, inputs, label, options, stage, smoke, ledger)
    except CanonicalEncodingError as error:
        raise ExperimentError(f"a value cannot be pinned: {str(error).removeprefix('$.')}") from None


def _planned_experiment(
    terminals: tuple[ArtifactStep, ...],
    inputs: BuildInputs,
    label: str,
    options: Mapping[str, str],
    stage: str,
    smoke: str | None,
    ledger: VersionLedger,
) -> PlannedExperiment:
    graph = _graph(terminals)
    run, payload = _rl_step(graph)
    _require_cluster(payload, inputs.cluster)
    if stage not in graph.stages:
        raise ExperimentError(f"stage '{stage}' does not end this graph. {other_stages(stage, graph.stages)}")
    storage = _storage(inputs.cluster)
    document = render_launch_document(payload, storage)
    launch_digest = _digest(document)
    subject = _subject(document, graph, payload, inputs, storage, stage, ledger, launch_digest)
    report = judge(subject, CHECKS)
    if report.errors:
        raise PreflightFailed(report)
    _require_judged(report)
    _require_version(terminals, inputs.version)
    digests = LaunchDigests(
        # Again for a document that no file can hold: this names the value's place.
        launch=launch_digest or digest_of(document),
        recipe=step_fingerprint(run),
    )

    launch = dump_yaml(document)
    if load_yaml_mapping(launch, source="launch document") != document:
        raise AssertionError("the written launch document does not read back equal")
    pin = pinned_run(subject)
    graph_document = render_graph_document(
        graph,
        document,
        storage,
        experiment=label,
        default_stage=stage,
        recipe=digests.recipe,
        pinned=pin is not None and pin.recipe == digests.recipe,
        compatible=compatible_with(subject),
        repins=repins_of(subject),
    )
    canonical_json(graph_document)
    plan = LaunchPlan(
        experiment=label,
        version=inputs.version,
        options=dict(sorted(options.items())),
        terminal_stage=stage,
        smoke=smoke,
        preflight=report_json(report),
        **_planned(inputs, graph, payload, subject, digests, graph_document),
    )
    return PlannedExperiment(
        launch=launch,
        graph=_json_bytes(graph_document),
        plan=_json_bytes(plan),
        digest=digest_file(digests),
        summary=plan_summary(plan) + warnings_text(report),
    )


def _require_judged(report: PreflightReport) -> None:
    """A value of a wrong type is no missing fact: what nobody could judge is not planned."""
    if report.unusable:
        needs = "".join(
            f"\n    needed: {need} (for {', '.join(ids)})" for need, ids in report.unusable.items()
        )
        raise ExperimentError(f"preflight cannot judge these values. Write what is needed:{needs}")


def _require_version(terminals: tuple[ArtifactStep, ...], version: str) -> None:
    if all(step.version != version for step in terminals):
        found = ", ".join(step.address for step in terminals)
        raise ExperimentError(
            f"the target has the version {version}, main() returns {found}. Write version=inputs.version"
        )


def _json_bytes(value: LaunchPlan | dict[str, Any]) -> bytes:
    # The writer of the standard library is in Python for indented text, and takes eight times as long.
    return to_json(value, indent=2) + b"\n"


def _graph(terminals: tuple[ArtifactStep, ...]) -> ArtifactGraph:
    try:
        return build_graph(terminals)
    except RecursionError:
        raise ExperimentError(
            "a step is made of itself, by way of its deps, or by far too many of them in a row. Make each step of steps "
            "that were made before it"
        ) from None


def _require_cluster(payload: SkyRLStepPayload, card: ClusterCard) -> None:
    """Refuse a plan for one cluster that the facts of another would judge."""
    if payload.execution.cluster != card.name:
        raise ExperimentError(
            f"IrisSkyRLExecution.cluster is '{payload.execution.cluster}', and `cluster` of the target is the card of "
            f"'{card.name}', by which everything is checked. Write cluster=inputs.cluster.name, or give the target the "
            "other card"
        )


def _rl_step(graph: ArtifactGraph) -> tuple[ArtifactStep, SkyRLStepPayload]:
    runs = [(step, step.payload) for step in graph.steps if isinstance(step.payload, SkyRLStepPayload)]
    if len(runs) != 1:
        found = ", ".join(step.address for step, _ in runs) or "none"
        raise ExperimentError(
            f"an experiment has exactly one skyrl_step, this graph has {len(runs)} ({found}). "
            "Make one experiment for each, and hand the export over as an artifact"
        )
    return runs[0]


def _storage(cluster: ClusterCard) -> Storage:
    if cluster.marin_prefix is None or cluster.temp_bucket is None:
        raise ExperimentError(
            f"cluster card '{cluster.name}' has no marin_prefix or no temp_bucket, so output paths are not known. "
            "Add both to the card"
        )
    return Storage(prefix=cluster.marin_prefix, temporary_bucket=cluster.temp_bucket)


def _subject(
    document: dict[str, Any],
    graph: ArtifactGraph,
    payload: SkyRLStepPayload,
    inputs: BuildInputs,
    storage: Storage,
    stage: str,
    ledger: VersionLedger,
    launch_digest: str | None,
) -> PreflightSubject:
    model = payload.spec.model.step.payload
    return PreflightSubject(
        document=document,
        model=model.card
        if isinstance(model, ImportStepPayload) and isinstance(model.card, ModelCard)
        else None,
        train_dataset=_only_card(payload.spec.train_data),
        validation_dataset=_only_card(payload.spec.validation_data),
        cluster=inputs.cluster,
        runtime=inputs.runtime,
        ledger=ledger,
        planned=PlannedFrom(
            graph=graph,
            prefix=storage.prefix,
            recipe=payload.spec.recipe,
            required_fixes=payload.spec.required_fixes,
            stage=stage,
            launch=launch_digest,
        ),
    )


def _digest(document: dict[str, Any]) -> str | None:
    """The digest, None for a value that no file can hold: what else is wrong is said first."""
    try:
        return digest_of(document)
    except CanonicalEncodingError:
        return None


def _only_card(sources: tuple[DataSource, ...]) -> DatasetCard | None:
    """The card of the data, where one card speaks for all of it."""
    cards = [
        source.step.payload.card for source in sources if isinstance(source.step.payload, ImportStepPayload)
    ]
    return cards[0] if len(cards) == 1 and isinstance(cards[0], DatasetCard) else None


def _planned(
    inputs: BuildInputs,
    graph: ArtifactGraph,
    payload: SkyRLStepPayload,
    subject: PreflightSubject,
    digests: LaunchDigests,
    graph_document: dict[str, Any],
) -> dict[str, Any]:
    """The fields of the plan that follow from graph and document."""
    document = subject.document
    iris = document["iris"]
    geometry = Geometry.of(subject)
    identities = {step["address"]: step["identity"] for step in graph_document["steps"]}
    return {
        "stages": graph.last_steps,
        "runtime": {
            "manifest": inputs.runtime.name,
            "commit": payload.spec.runtime.commit,
            "profile": payload.spec.runtime.profile,
        },
        "entrypoint": document["skyrl"].get("entrypoint") or inputs.runtime.default_entrypoint,
        "allocation": {
            "cluster": iris["cluster"],
            "target_cluster": iris["target_cluster"] or "direct submission",
            **iris["allocation"],
            "priority": iris["priority"],
        },
        "roles": _roles(geometry),
        "batches": _batches(geometry, subject),
        "lengths": derived_lengths(payload.spec.context_budget),
        "memory": _memory(memory_estimate(subject)),
        "artifacts": tuple(
            PlannedArtifact(
                stage=step["stage"],
                kind=step["kind"],
                identity=step["identity"],
                path=step["output_path"],
                adopted=step["adopted"],
                deps=tuple(identities[address] for address in step["deps"]),
            )
            for step in graph_document["steps"]
        ),
        "outputs": {name: uri for name, uri in document["artifacts"].items() if isinstance(uri, str)},
        "digests": digests,
        "detail": plan_detail(payload, subject).model_dump(mode="json"),
    }


def _memory(estimate: MemoryEstimate) -> dict[str, str]:
    """The memory estimate in GB; a component whose facts are missing says which."""
    rows = {
        "training, per GPU": ("states", "parameters"),
        "activations, per GPU": ("activations", "activations"),
        "logits, per GPU": ("logits", "logits"),
        "engine weights, per GPU": ("engine_weights", "engine_weights"),
        "engine KV cache of one window, per GPU": ("engine_kv_cache", "engine_kv_cache"),
        "of a GPU": ("gpu_memory", "gpu_memory"),
        "offloaded, per node": ("host_policy", "host_policy"),
    }
    written = {}
    for row, (name, component) in rows.items():
        size = getattr(estimate, name)
        missing = estimate.missing.get(component, "a fact that is missing")
        written[row] = f"not known: needs {missing}" if size is None else f"{size / 10**9:.3g} GB"
    return written | {"how sure": UNCERTAINTY}


def _roles(geometry: Geometry) -> tuple[PlannedRole, ...]:
    parallel = f"model parallel {geometry.model_parallel('policy')}, data parallel {geometry.policy_dp}"
    policy = PlannedRole(
        role="policy",
        nodes=geometry.policy_nodes,
        gpus=geometry.policy_world,
        layout=f"{geometry.strategy}, {parallel}",
    )
    where = "sharing the policy's GPUs" if not geometry.reference_separate else "on nodes of its own"
    reference = PlannedRole(
        role="reference",
        nodes=geometry.reference_nodes if geometry.reference_active else 0,
        gpus=geometry.reference_world if geometry.reference_active else 0,
        layout=where if geometry.reference_active else "not active: no KL term",
    )
    engines = PlannedRole(
        role="rollout engines",
        nodes=geometry.policy_nodes if geometry.colocate_all else geometry.rollout_nodes,
        gpus=geometry.rollout_gpus,
        layout=(
            f"{counted(geometry.engines, 'engine')} of {counted(geometry.engine_gpus, 'GPU')} (TP {geometry.engine_tp}, "
            f"PP {geometry.engine_pp}, DP {geometry.engine_dp}, EP {geometry.engine_ep})"
            + (", sharing the policy's GPUs" if geometry.colocate_all else "")
        ),
    )
    return policy, reference, engines


def _batches(geometry: Geometry, subject: PreflightSubject) -> PlannedBatches:
    epochs = subject.positive("skyrl.trainer.update_epochs_per_batch")
    return PlannedBatches(
        prompts_per_step=geometry.train_batch,
        samples_per_prompt=geometry.declared_samples,
        rows_per_step=geometry.train_batch * geometry.samples,
        prompts_per_mini_batch=geometry.mini_batch,
        optimizer_steps_per_batch=geometry.train_batch // geometry.mini_batch * epochs,
        data_parallel_ranks=geometry.policy_dp,
        rows_per_rank=geometry.rows_per_rank,
        micro_batch=geometry.micro_batch,
        micro_steps=geometry.rows_per_rank // geometry.micro_batch,
        update_epochs=epochs,
    )
