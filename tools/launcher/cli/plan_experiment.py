"""What the build action does: experiment source in, pinned launch document and plan out.

Pure: reads the files it is given, knows no clock, network, environment or absolute path.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from tools.launcher.cli.judge_experiment import JudgedExperiment, judge_experiment
from tools.launcher.cli.plan_detail import plan_detail
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.documents.yaml_writer import dump_yaml
from tools.launcher.graph.ledger import VersionLedger
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.memory import UNCERTAINTY, MemoryEstimate, memory_estimate
from tools.launcher.preflight.render_text import report_json, warnings_text
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import counted
from tools.launcher.render.digests import digest_file
from tools.launcher.render.plan import (
    LaunchPlan,
    PlannedArtifact,
    PlannedBatches,
    PlannedRole,
    plan_summary,
)
from tools.launcher.rl.context_budget import derived_lengths
from tools.launcher.rl.inputs import BuildInputs


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
        ExperimentError, PreflightFailed: as `judge_experiment`. Nothing has been rendered for writing then.
    """
    judged = judge_experiment(terminals, inputs, label=label, stage=stage, ledger=ledger)
    document = judged.subject.document
    launch = dump_yaml(document)
    if load_yaml_mapping(launch, source="launch document") != document:
        raise AssertionError("the written launch document does not read back equal")
    plan = LaunchPlan(
        experiment=label,
        version=inputs.version,
        options=dict(sorted(options.items())),
        terminal_stage=stage,
        smoke=smoke,
        preflight=report_json(judged.report),
        **_planned(inputs, judged),
    )
    return PlannedExperiment(
        launch=launch,
        graph=_json_bytes(judged.graph_document),
        plan=_json_bytes(plan),
        digest=digest_file(judged.digests),
        summary=plan_summary(plan) + warnings_text(judged.report),
    )


def _json_bytes(value: LaunchPlan | dict[str, Any]) -> bytes:
    # The writer of the standard library is in Python for indented text, and takes eight times as long.
    return to_json(value, indent=2) + b"\n"


def _planned(inputs: BuildInputs, judged: JudgedExperiment) -> dict[str, Any]:
    """The fields of the plan that follow from graph and document."""
    subject, payload, graph_document = judged.subject, judged.payload, judged.graph_document
    document = subject.document
    iris = document["iris"]
    geometry = Geometry.of(subject)
    identities = {step["address"]: step["identity"] for step in graph_document["steps"]}
    return {
        "stages": judged.graph.last_steps,
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
        "digests": judged.digests,
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
