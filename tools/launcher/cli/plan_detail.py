"""The part of the plan that only its report shows: who is on which GPU, deadline, retention, origins."""

from collections.abc import Iterator, Mapping
from typing import Any

from tools.launcher.documents.longest_run import longest_run
from tools.launcher.graph.paths import rounded_ttl_days
from tools.launcher.preflight.checks.backend.roles import MegatronRole, megatron_roles
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.teachers import teacher_nodes
from tools.launcher.render.detail import PlanDetail, PlannedDeadline, PlannedRetention, PlannedSetting
from tools.launcher.render.layout import ClusterLayout, EngineLayout, OtherNodes, TrainerLayout
from tools.launcher.rl.execution import IrisSkyRLExecution
from tools.launcher.rl.recipe import SkyRLRecipe, leaves
from tools.launcher.rl.steps import SkyRLStepPayload
from tools.launcher.rl.topology import ROLE_PLAN_PATHS

_TEMPORARY_OUTPUTS = ("checkpoint_root", "attempts_root")
_BUDGET = "context_budget"
_ROLE_PLAN = frozenset(path for _, path in ROLE_PLAN_PATHS)


def plan_detail(payload: SkyRLStepPayload, subject: PreflightSubject) -> PlanDetail:
    """Return the detail of a plan that preflight has accepted.

    Args:
        payload: of the RL step.
        subject: what was judged.
    """
    retention = payload.spec.retention
    return PlanDetail(
        layout=cluster_layout(subject),
        deadline=deadline_of(payload.execution, subject.document["iris"]["allocation"]["num_nodes"]),
        retention=PlannedRetention(
            temporary_days=rounded_ttl_days(retention.temporary_storage_ttl_days),
            temporary_outputs=_TEMPORARY_OUTPUTS,
            resume_checkpoint_count=retention.resume_checkpoint_count,
        ),
        settings=tuple(_settings(subject.document["skyrl"], payload.spec.recipe)),
    )


def deadline_of(execution: IrisSkyRLExecution, nodes: int) -> PlannedDeadline:
    """Return when a job on so many nodes is ended at the latest."""
    longest = longest_run(
        job_timeout_seconds=execution.job_timeout_seconds,
        max_retries=execution.max_retries,
        nodes=nodes,
        coordinator_timeout_hours=execution.coordinator_timeout_hours,
    )
    return PlannedDeadline(seconds=longest.seconds, setting=longest.setting, attempts=longest.attempts)


def cluster_layout(subject: PreflightSubject) -> ClusterLayout:
    """Return which role is on which nodes, with its sizes. Raises like `Geometry`."""
    geometry = Geometry.of(subject)
    megatron = {role.name: role for role in megatron_roles(subject)}
    policy = _trainer(geometry, "policy", 0, geometry.policy_nodes, megatron.get("policy"))
    taken = geometry.policy_nodes
    reference = None
    if geometry.reference_separate:
        reference = _trainer(geometry, "ref", taken, geometry.reference_nodes, megatron.get("ref"))
        taken += geometry.reference_nodes
    elif geometry.reference_active:
        reference = _trainer(geometry, "ref", 0, geometry.policy_nodes, megatron.get("ref"))
    engines = _engines(geometry, 0 if geometry.colocate_all else taken) if geometry.engines_local else None
    taken += geometry.rollout_nodes
    others = []
    for role, nodes in (
        ("teachers", teacher_nodes(subject)),
        ("draft training", geometry.draft_training_nodes),
    ):
        if nodes:
            others.append(OtherNodes(role=role, first_node=taken, nodes=nodes))
            taken += nodes
    return ClusterLayout(
        nodes=geometry.num_nodes,
        gpus_per_node=geometry.gpus_per_node,
        policy=policy,
        reference=reference,
        engines=engines,
        others=tuple(others),
    )


def _trainer(
    geometry: Geometry, name: str, first_node: int, nodes: int, megatron: MegatronRole | None
) -> TrainerLayout:
    own = name == "ref" and geometry.reference_separate
    return TrainerLayout(
        strategy=geometry.strategy,
        first_node=first_node,
        nodes=nodes,
        gpus_per_node=geometry.reference_gpus_per_node if own else geometry.policy_gpus_per_node,
        tensor=megatron.tp if megatron else 1,
        pipeline=megatron.pp if megatron else 1,
        context=megatron.cp if megatron else 1,
        sequence=1 if megatron else geometry.model_parallel(name),
        expert=megatron.ep if megatron else 1,
        expert_tensor=megatron.etp if megatron else 1,
    )


def _engines(geometry: Geometry, first_node: int) -> EngineLayout:
    """Colocated engines fill their nodes; a slice of one never straddles two (GEO-03)."""
    apart = geometry.colocate_all or geometry.multiprocess_engines
    return EngineLayout(
        first_node=first_node,
        gpus_per_node=geometry.policy_gpus_per_node,
        count=geometry.engines,
        tensor=geometry.engine_tp,
        pipeline=geometry.engine_pp,
        data=geometry.engine_dp,
        expert=geometry.engine_ep,
        unit=geometry.engine_slice if apart else geometry.engine_gpus,
    )


def _settings(section: Mapping[str, Any], recipe: SkyRLRecipe) -> Iterator[PlannedSetting]:
    for path, value in leaves(section):
        if path in _ROLE_PLAN:
            origin = "role plan"
        elif path.startswith(f"{_BUDGET}."):
            origin = "context budget"
        else:
            origin = recipe.origins[path]
        yield PlannedSetting(path=path, value=value, origin=origin)
