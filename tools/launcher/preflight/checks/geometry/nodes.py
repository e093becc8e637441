"""How many nodes the roles need, the allocation has, and the cluster can give."""

from collections.abc import Iterator

from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.geometry.in_step import (
    NODES,
    POLICY_NODES,
    REFERENCE_NODES,
    VARIANT,
    WIDTH,
    placement_repair,
    resized,
    same_width,
)
from tools.launcher.preflight.engine_sizes import ENGINES
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import NVL72_GPUS_PER_POD, Geometry, ceil_div, node_width_of
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.teachers import teacher_nodes
from tools.launcher.preflight.wording import counted, listed, set_to, shown

NVL72_SCHEDULABLE_RACK_NODES = 16
NVL72_LEAST_NODES_PER_RACK = 10
"""Placement rule of Iris for racks of 18 nodes (marin-iris 0.2.210; contract, runtime-facts.md §14)."""


@check(
    "GEO-09",
    "the roles fit the allocation",
    area="geometry",
    rule="planned GPUs <= num_nodes*gpus_per_node",
    prevents="Ray waits for GPUs that do not exist.",
    inputs=("spec", "runtime"),
    source="catalogue GEO-09 (#24); Marin at build time",
    implied_by=("GEO-14", "GEO-16"),
)
def geo_09(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    allocated = geometry.num_nodes * geometry.policy_gpus_per_node
    if geometry.planned_gpus > allocated:
        yield Finding(
            path=NODES,
            message=f"roles need {counted(geometry.planned_gpus, 'GPU')}, the allocation of {counted(geometry.num_nodes, 'node')} "
            f"has {allocated}",
            repair=_fitting(subject, geometry),
        )


_FILLED = (POLICY_NODES, REFERENCE_NODES, ENGINES)
"""Counts which the launcher fills from the whole allocation, so that they grow with it."""


def _fitting(subject: PreflightSubject, geometry: Geometry) -> str:
    """The repair which gives every role its nodes."""
    left_out = [path for path in _FILLED if not subject.has(path)]
    if left_out and not geometry.colocate_all and not geometry.export_mode:
        return f"write {listed(left_out)}: the launcher fills what is left out from the whole allocation"
    nodes = max(geometry.derived_nodes, ceil_div(geometry.planned_gpus, geometry.policy_gpus_per_node))
    return set_to(NODES, nodes)


@check(
    "GEO-10",
    "the allocation has exactly the nodes of the roles",
    area="geometry",
    rule="num_nodes == policy + rollout + separate reference + draft training + teacher nodes",
    prevents="Marin accepts an idle node; the launcher refuses it after the coordinator started.",
    inputs=("spec", "runtime"),
    source="catalogue GEO-10 (#25), contract typed-spec.md §4 example G; the launcher",
    implied_by=("GEO-09", "GEO-14", "GEO-16"),
)
def geo_10(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    wanted = geometry.derived_nodes
    if geometry.export_mode:
        parts = f"policy {wanted}, export mode"
    else:
        counts = (
            ("policy", geometry.policy_nodes),
            ("rollout", geometry.rollout_nodes),
            ("reference", geometry.separate_reference_nodes),
            ("draft training", geometry.draft_training_nodes),
            ("teachers", teacher_nodes(subject)),
        )
        parts = listed(f"{name} {count}" for name, count in counts if count)
    if geometry.num_nodes != wanted:
        yield Finding(
            path=NODES,
            message=f"allocation has {counted(geometry.num_nodes, 'node')}, the roles occupy {wanted} ({parts})",
            repair=_fitting(subject, geometry),
        )


@check(
    "GEO-14",
    "a separate reference has its nodes",
    area="geometry",
    rule="an active reference that is not colocated adds ref_num_nodes to the sum",
    prevents="Too few nodes.",
    inputs=("spec", "runtime"),
    source="catalogue GEO-14 (#29), contract typed-spec.md §4 example E; Marin and the launcher",
)
def geo_14(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if (
        geometry.reference_separate
        and not geometry.export_mode
        and geometry.num_nodes < geometry.derived_nodes
    ):
        yield Finding(
            path=NODES,
            message=f"separate reference adds {counted(geometry.reference_nodes, 'node')}: {geometry.derived_nodes} needed, "
            f"{geometry.num_nodes} allocated",
            repair=_fitting(subject, geometry),
        )


@check(
    "GEO-16",
    "draft training has its node",
    area="geometry",
    rule="generator.speculative_decoding.training adds one node to the sum",
    prevents="Off by one node.",
    inputs=("spec", "runtime"),
    source="catalogue GEO-16 (#31), contract typed-spec.md §4 example I; the launcher",
)
def geo_16(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if (
        geometry.draft_training_nodes
        and not geometry.export_mode
        and geometry.num_nodes < geometry.derived_nodes
    ):
        yield Finding(
            path=NODES,
            message=f"draft training adds 1 node: {geometry.derived_nodes} needed, {geometry.num_nodes} allocated",
            repair=_fitting(subject, geometry),
        )


def nvl72_racks(nodes: int, rack: int) -> int | None:
    """Return over how many racks a gang of `nodes` is split evenly, None where Iris refuses it."""
    racks = ceil_div(nodes, rack)
    if racks == 1:
        return 1
    return racks if nodes % racks == 0 and nodes // racks >= NVL72_LEAST_NODES_PER_RACK else None


@check(
    "GEO-21",
    "a gang on NVL72 racks can be admitted",
    area="geometry",
    rule="GB200, GB300: pods use 4 GPUs; n <= 16 nodes, or racks=ceil(n/16), n % racks == 0, n/racks >= 10",
    prevents="The gang is never admitted.",
    inputs=("spec", "cluster"),
    source="catalogue GEO-21 (#36); Iris, at submission",
)
def geo_21(subject: PreflightSubject) -> Iterator[Finding]:
    variant = subject.text(VARIANT)
    if node_width_of(variant) is None:
        return
    geometry = Geometry.of(subject)
    rack, nodes = _rack(subject), geometry.num_nodes
    if nvl72_racks(nodes, rack) is None:
        valid = sorted(_racked(subject, nodes, rack), key=lambda n: (abs(n - nodes), n))[:4]
        yield Finding(
            path=NODES,
            message=f"{nodes} NVL72 nodes do not split evenly over {ceil_div(nodes, rack)} racks of {rack} with at "
            f"least {NVL72_LEAST_NODES_PER_RACK} each. Valid near {nodes}: {listed(sorted(valid))}",
            repair=placement_repair(subject, resized(subject, valid[0])),
        )
    known = subject.cluster is not None and subject.cluster.gpus_per_node is not None
    if geometry.gpus_per_node != NVL72_GPUS_PER_POD and not known:  # EXE-06 compares with a card
        yield Finding(
            path=WIDTH,
            message=f"pods on {shown(variant)} use {NVL72_GPUS_PER_POD} GPUs, gpus_per_node={geometry.gpus_per_node}",
            repair=placement_repair(subject, same_width(subject, NVL72_GPUS_PER_POD)),
        )


def _racked(subject: PreflightSubject, nodes: int, rack: int) -> list[int]:
    """The sizes of a gang around `nodes` that racks admit and the cluster has; 1 is always one."""
    most = subject.cluster.max_nodes if subject.cluster is not None else None
    top = nodes + 2 * rack if most is None else min(nodes + 2 * rack, most + 1)
    return [n for n in range(max(1, min(nodes, top) - 2 * rack), top) if nvl72_racks(n, rack)] or [1]


def _rack(subject: PreflightSubject) -> int:
    rack = subject.cluster.schedulable_rack_nodes if subject.cluster is not None else None
    return rack if rack is not None else NVL72_SCHEDULABLE_RACK_NODES


@check(
    "GEO-25",
    "the cluster has as many nodes",
    area="geometry",
    rule="num_nodes and policy_num_nodes <= the cluster's nodes",
    prevents="The gang can never be admitted.",
    inputs=("spec", "cluster"),
    source="catalogue GEO-25 (new); nobody checks it",
)
def geo_25(subject: PreflightSubject) -> Iterator[Finding]:
    available = subject.cluster_fact("max_nodes")
    if available is None:
        return
    name = subject.cluster.name if subject.cluster is not None else ""
    nodes = Geometry.of(subject).num_nodes
    if nodes > available:
        yield Finding(
            path=NODES,
            message=f"{counted(nodes, 'node')} requested, {name} has {available}",
            repair=placement_repair(subject, resized(subject, _most_nodes(subject, available))),
        )


def _most_nodes(subject: PreflightSubject, available: int) -> int:
    """The largest gang of at most `available` nodes that racks admit, where the machine has racks (GEO-21)."""
    if node_width_of(subject.get(VARIANT)) is None:
        return available
    return max(_racked(subject, available, _rack(subject)))


CHECKS = (geo_09, geo_10, geo_14, geo_16, geo_21, geo_25)
