"""The role plan's values and their agreement with the allocation and with each other."""

from collections.abc import Iterator
from typing import Any

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.geometry.in_step import (
    NODES,
    POLICY_NODES,
    POLICY_WIDTH,
    REFERENCE_WIDTH,
    WIDTH,
    agreed_width,
    fitting_count,
    placement_repair,
    same_width,
    widths_differ,
)
from tools.launcher.preflight.declared import declaration
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.subject import (
    MAX_COUNT,
    PreflightSubject,
    UnreadableValue,
    is_count,
    launcher_reads,
    readable_count,
)
from tools.launcher.preflight.teachers import placement, teachers
from tools.launcher.preflight.wording import counted, set_to, shown
from tools.launcher.rl.topology import ROLE_PLAN_PATHS

_PLACEMENT = "skyrl.trainer.placement"
_FLAGS = (f"{_PLACEMENT}.colocate_all", f"{_PLACEMENT}.colocate_policy_ref")
_ALLOCATION = (NODES, WIDTH)
_COUNTS = tuple(f"skyrl.{path}" for _, path in ROLE_PLAN_PATHS if f"skyrl.{path}" not in _FLAGS)
_SECTIONS = ("trainer", "trainer.placement", "generator")
"""Inner nodes of the role-plan paths."""


@check(
    "GEO-01",
    "role-plan values are positive integers",
    area="geometry",
    rule=f"every count of role plan and allocation is an integer in 1..{MAX_COUNT} and no boolean, text or float "
    "(a warning where the launcher converts it); the two colocation switches are booleans",
    prevents="Division by zero, empty groups, and arithmetic on true or on text.",
    inputs=("spec",),
    source="catalogue GEO-01 (#16); Marin at build time",
)
def geo_01(subject: PreflightSubject) -> Iterator[Finding]:
    for path in (*_ALLOCATION, *_COUNTS):
        value = subject.get(path)
        if value is None or is_count(value):
            continue
        limit = f" of at most {MAX_COUNT}" if type(value) is int and value > 0 else ""
        meant = readable_count(value)
        converted = path in _ALLOCATION and launcher_reads(value) is not None
        reading = f"; the launcher reads it as {meant}" if converted else ""
        yield Finding(
            path=path,
            message=f"{'allocation' if path in _ALLOCATION else 'role plan'}: {path.rpartition('.')[2]} must be "
            f"a positive integer{limit}, got {shown(value)}{reading}",
            repair=set_to(path, fitting_count(subject, path) if meant is None else meant),
            severity="warning" if converted else "error",
        )
    for path in _FLAGS:
        if subject.has(path) and type(subject.get(path)) is not bool:
            yield Finding(
                path=path,
                message=f"role plan: {path.rpartition('.')[2]} must be true or false, got {shown(subject.get(path))}",
                repair=set_to(path, True, False),
            )


@check(
    "GEO-02",
    "the policy uses whole nodes of the allocation",
    area="geometry",
    rule="policy_num_nodes <= num_nodes; policy_num_gpus_per_node == gpus_per_node",
    prevents="Fractions of a node cannot be reserved, and other roles land on the rest.",
    inputs=("spec", "cluster"),
    source="catalogue GEO-02 (#17); Marin at build time",
)
def geo_02(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if _takes_part_of_nodes(subject):
        policy, node = geometry.policy_gpus_per_node, geometry.gpus_per_node
        yield Finding(
            path=POLICY_WIDTH,
            message=f"policy uses {policy} of {node} GPUs per node; roles take whole nodes only",
            repair=placement_repair(subject, same_width(subject, agreed_width(subject))),
        )
    if geometry.policy_nodes > geometry.num_nodes:
        yield Finding(
            path=POLICY_NODES,
            message=f"policy_num_nodes={geometry.policy_nodes} exceeds the allocation of {counted(geometry.num_nodes, 'node')}",
            repair=placement_repair(subject, {NODES: _needed_nodes(subject)}),
        )


def _takes_part_of_nodes(subject: PreflightSubject) -> bool:
    """Whether the policy leaves GPUs of its nodes; if it has their real width, the allocation is wrong (GEO-11)."""
    geometry = Geometry.of(subject)
    policy = geometry.policy_gpus_per_node
    part = policy < geometry.gpus_per_node and policy != agreed_width(subject)
    return part and not geometry.export_mode


def _needed_nodes(subject: PreflightSubject) -> int:
    """The nodes of all roles, those of the policy where others cannot be read."""
    geometry = Geometry.of(subject)
    try:
        return max(geometry.derived_nodes, geometry.policy_nodes)
    except (MissingFact, UnreadableValue):
        return geometry.policy_nodes


@check(
    "GEO-11",
    "allocation and policy agree on the node width",
    area="geometry",
    rule="allocation.gpus_per_node == policy_num_gpus_per_node (export mode: >=)",
    prevents="Ranks look for GPUs 4 to 7 on a node of 4 GPUs, and engines take a wrong address.",
    inputs=("spec", "cluster"),
    source="catalogue GEO-11 (#26), failure row 43 (slime#2012); the launcher",
)
def geo_11(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    policy, node = geometry.policy_gpus_per_node, geometry.gpus_per_node
    if not widths_differ(subject) or _takes_part_of_nodes(subject):
        return
    card = subject.cluster.gpus_per_node if subject.cluster is not None else None
    both = f"must equal the node's {card}" if card is not None else "must be equal"
    yield Finding(
        path=WIDTH,
        message=f"allocation.gpus_per_node={node}, policy uses {policy}; both {both}",
        repair=placement_repair(subject, same_width(subject, agreed_width(subject))),
    )


@check(
    "GEO-12",
    "all roles use nodes of one width",
    area="geometry",
    rule="ref_num_gpus_per_node == policy_num_gpus_per_node == gpus_per_node of every local teacher",
    prevents="Mixed widths break the mapping from rank to node.",
    inputs=("spec",),
    source="catalogue GEO-12 (#27); the launcher",
)
def geo_12(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if widths_differ(subject):
        return  # The repair of GEO-02 and GEO-11 decides the width.
    if geometry.reference_gpus_per_node != geometry.policy_gpus_per_node:
        yield Finding(
            path=REFERENCE_WIDTH,
            message=f"roles use node widths {geometry.policy_gpus_per_node} (policy) and "
            f"{geometry.reference_gpus_per_node} (reference); one width is needed",
            repair=set_to(REFERENCE_WIDTH, geometry.policy_gpus_per_node),
        )
    for path, settings in teachers(subject):
        resources = settings.get("resources")
        width = resources.get("gpus_per_node") if isinstance(resources, dict) else None
        if (
            placement(settings) in ("pinned", "rotating")
            and is_count(width)
            and width != geometry.policy_gpus_per_node
        ):
            yield Finding(
                path=f"{path}.resources.gpus_per_node",
                message=f"roles use node widths {geometry.policy_gpus_per_node} (policy) and {width} (teacher); "
                "one width is needed",
                repair=set_to(f"{path}.resources.gpus_per_node", geometry.policy_gpus_per_node),
            )


@check(
    "GEO-13",
    "a colocated reference lies where the policy lies",
    area="geometry",
    rule="colocate_all implies colocate_policy_ref; a colocated reference has the policy's node count",
    prevents="The trainer places the reference on other GPUs than the plan counted.",
    inputs=("spec",),
    source="catalogue GEO-13 (#28); Marin and the trainer",
)
def geo_13(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if geometry.colocate_all and not geometry.colocate_policy_ref:
        yield Finding(
            path=f"{_PLACEMENT}.colocate_policy_ref",
            message="colocate_all needs colocate_policy_ref: true, got false",
            repair=set_to(f"{_PLACEMENT}.colocate_policy_ref", True),
        )
    placed = subject.has(f"{_PLACEMENT}.ref_num_nodes") or geometry.reference_active
    shares = geometry.colocate_all or geometry.colocate_policy_ref
    if placed and shares and geometry.reference_nodes != geometry.policy_nodes:
        yield Finding(
            path=f"{_PLACEMENT}.ref_num_nodes",
            message=f"a colocated reference lies where the policy lies: policy_num_nodes={geometry.policy_nodes}, "
            f"ref_num_nodes={geometry.reference_nodes}",
            repair=set_to(f"{_PLACEMENT}.ref_num_nodes", geometry.policy_nodes),
        )


@check(
    "GEO-18",
    "the recipe leaves the role plan alone",
    area="geometry",
    rule="no recipe path is one that the role plan renders, not even with an equal value",
    prevents="Two truths: 16.0 is not 16, true is not 1, and an equal value stops being equal at the next edit.",
    inputs=("spec",),
    source="catalogue GEO-18 (#33), stricter: Marin lets an equal value pass",
)
def geo_18(subject: PreflightSubject) -> Iterator[Finding]:
    subject.origin()
    for field, path in ROLE_PLAN_PATHS:
        found, planned = declaration(subject, path), subject.get(f"skyrl.{path}")
        if found is None:
            continue
        agree = found.written == shown(found.value)
        same = agree and type(found.value) is type(planned) and found.value == planned
        relation = "repeats" if same else "disagrees with"
        yield Finding(
            path=f"skyrl.{path}",
            message=f"{found.where}{path}={found.written}{_kind(found.value)}, "
            f"which {relation} {field}={shown(planned)} of the role plan",
            repair=found.repair,
        )


@check(
    "GEO-19",
    "sections of role-plan values are mappings",
    area="geometry",
    rule=f"{', '.join(_SECTIONS)} are mappings where they are set",
    prevents="Merging the role plan overwrites the section, or fails.",
    inputs=("spec",),
    source="catalogue GEO-19 (#34); Marin at build time",
)
def geo_19(subject: PreflightSubject) -> Iterator[Finding]:
    for path in ("skyrl", *(f"skyrl.{section}" for section in _SECTIONS)):
        value = subject.get(path)
        # A null section stops the launcher; a null document is ART-16.
        missing = not subject.declares(path) or (value is None and path == "skyrl")
        if not missing and not isinstance(value, dict):
            section = path.removeprefix("skyrl.")
            found = declaration(subject, section) if subject.planned is not None else None
            yield Finding(
                path=path,
                message=f"{path} must be a mapping, got {shown(value)}{_kind(value)}"
                if found is None
                else f"{found.where}{section}={found.written}, which must be a mapping",
                repair=f"write the settings of {path} as a mapping, or delete {path}",
                section=None if path == "skyrl" else path,  # DOC-04 says it of skyrl.
            )


def _kind(value: Any) -> str:
    """The type of a number, text or boolean, which its written form may not show."""
    return f" ({type(value).__name__})" if isinstance(value, bool | int | float | str) else ""


@check(
    "GEO-23",
    "no nodes are planned for a reference that does not exist",
    area="geometry",
    rule="without a KL term, colocate_policy_ref is true",
    prevents="Marin counts the reference's GPUs, the launcher does not: one demands nodes that the other calls idle.",
    inputs=("spec",),
    source="catalogue GEO-23 (new), contract typed-spec.md §4 example E3",
    implied_by=("GEO-13",),
)
def geo_23(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if not geometry.colocate_policy_ref and not geometry.reference_active:
        yield Finding(
            path=f"{_PLACEMENT}.colocate_policy_ref",
            message="no KL term is active, so the reference does not exist, but colocate_policy_ref is false",
            repair=set_to(f"{_PLACEMENT}.colocate_policy_ref", True),
        )


CHECKS = (geo_01, geo_02, geo_11, geo_12, geo_13, geo_18, geo_19, geo_23)
