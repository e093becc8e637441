"""Legal placements near the present one: nodes, widths, engines."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tools.launcher.preflight.checks.geometry.nodes import nvl72_racks
from tools.launcher.preflight.geometry import ceil_div, divisors
from tools.launcher.preflight.repair_search.facts import Facts
from tools.launcher.preflight.repair_search.plan import PLACEMENT_SETTINGS, Current, Plan
from tools.launcher.preflight.repair_search.ranking import extent

LARGEST_NODE_COUNT = 1024
LARGEST_WIDTH = 256
"""GPUs of a node; no machine comes near it."""
_NODES_AROUND = 8
_REFERENCE_NODES_AROUND = 3
_RACK_NODES_AROUND = 16
"""Two gangs that NVL72 racks admit are up to one rack apart."""
_LISTED_WIDTH = 16
_WIDTHS = ("gpus_per_node", "policy_width", "reference_width")
_ENGINE_SIZES = ("tp", "pp", "dp", "ep")


class Roles(NamedTuple):
    """Where policy and reference lie; compares by how near it is."""

    steps: int
    distance: float
    plan: Plan
    ranks: int
    """dp of the policy."""
    dispatch: int
    """lcm of the data-parallel sizes of all roles."""


class Placement(NamedTuple):
    """Roles together with engines and allocation."""

    steps: int
    """Changed settings, and rules of the recipe's own sizes that stay broken."""
    distance: float
    """Without what warnings weigh."""
    warnings: tuple[str, ...]
    """Ids of those that tell of idle GPUs: GEO-22, GEO-24."""
    plan: Plan


def role_options(facts: Facts, current: Current, start: Plan) -> list[Roles]:
    """Return where policy and reference may lie, nearest first.

    Args:
        facts: what may not change.
        current: what the document holds.
        start: its plan, with the colocation that is searched.
    """
    tolerated = _world_faults(facts, current.plan)
    found = set()
    for alloc, width, reference_width in _widths(facts, start):
        for shared in _shared(facts, start):
            for nodes in _node_counts(facts, start):
                for reference in _reference_nodes(facts, current, start, nodes, shared):
                    plan = start._replace(
                        gpus_per_node=alloc,
                        policy_width=width,
                        reference_width=reference_width,
                        colocate_policy_ref=shared,
                        policy_nodes=nodes,
                        reference_nodes=reference or start.reference_nodes,
                    )
                    roles = _roles(facts, current, plan, tolerated)
                    if roles is not None:
                        found.add(roles)
    return sorted(found)


_ROLE_SETTINGS = (*_WIDTHS, "colocate_all", "colocate_policy_ref", "policy_nodes", "reference_nodes")


def _roles(facts: Facts, current: Current, plan: Plan, tolerated: int) -> Roles | None:
    ranks = facts.policy.data_parallel(plan.policy_nodes * plan.policy_width)
    reference = facts.reference.data_parallel(_reference_world(plan)) if facts.reference_active else 1
    faults = _world_faults(facts, plan)
    if ranks is None or reference is None or (faults and not tolerated):
        return None
    # What the launcher fills from the allocation is compared when the allocation is known.
    names = [name for name in _ROLE_SETTINGS if name not in current.absent]
    steps, distance = extent(current, plan, names)
    return Roles(steps + faults, distance, plan, ranks, math.lcm(ranks, reference))


def _reference_world(plan: Plan) -> int:
    if plan.colocate_all or plan.colocate_policy_ref:
        return plan.policy_nodes * plan.policy_width
    return plan.reference_nodes * plan.reference_width


def _world_faults(facts: Facts, plan: Plan) -> int:
    faults = facts.policy.faults(plan.policy_nodes * plan.policy_width)
    return faults + (facts.reference.faults(_reference_world(plan)) if facts.reference_active else 0)


def _widths(facts: Facts, now: Plan) -> list[tuple[int, int, int]]:
    """One width for all roles (GEO-02, -11, -12); an export may leave GPUs of its node idle."""
    wanted = dict.fromkeys((now.gpus_per_node, now.policy_width, now.reference_width, *facts.widths))
    most = facts.most_width or LARGEST_WIDTH
    # NVL72 pods take all GPUs of their node (GEO-21).
    options = [
        (width, width, width) for width in wanted if width == most or (width < most and facts.rack is None)
    ]
    if facts.export_mode and now.policy_width < now.gpus_per_node:
        options.append((now.gpus_per_node, now.policy_width, now.policy_width))
    return options


def _shared(facts: Facts, now: Plan) -> list[bool]:
    """Values of colocate_policy_ref: kept, unless GEO-13 or GEO-23 asks for true."""
    return [True] if now.colocate_all or not facts.reference_active else [now.colocate_policy_ref]


def _node_counts(facts: Facts, now: Plan) -> list[int]:
    """Policy nodes near everything that speaks for a number of them."""
    anchors = {now.policy_nodes, now.reference_nodes, now.num_nodes - facts.extra_nodes}
    if now.colocate_all:
        anchors.add(ceil_div(now.engines * now.tp * now.pp * now.dp, now.policy_width))
    else:
        others = facts.extra_nodes + _rollout_nodes(facts, now)
        anchors.update((now.num_nodes - others, now.num_nodes - others - now.reference_nodes))
        if facts.most_nodes is not None:  # what is left of the cluster, for the policy alone or for both
            free = facts.most_nodes - others
            anchors.update((free, free // 2))
    if facts.most_nodes is not None:
        anchors.add(facts.most_nodes - facts.extra_nodes)
    reach = _NODES_AROUND if facts.rack is None else _RACK_NODES_AROUND
    return _around(facts, anchors, reach)


def _rollout_nodes(facts: Facts, plan: Plan) -> int:
    """Nodes of engines that have their own."""
    unit = plan.tp * plan.pp if facts.multiprocess else plan.tp * plan.pp * plan.dp
    units = plan.engines * (plan.dp if facts.multiprocess else 1)
    return ceil_div(units, max(1, plan.policy_width // unit))


def _around(facts: Facts, anchors: set[int], reach: int) -> list[int]:
    most = min(LARGEST_NODE_COUNT, facts.most_nodes or LARGEST_NODE_COUNT)
    counts = {count for anchor in anchors for count in range(anchor - reach, anchor + reach + 1)}
    return sorted(count for count in counts if 1 <= count <= most)


def _reference_nodes(
    facts: Facts, current: Current, now: Plan, policy: int, shared: bool
) -> Sequence[int | None]:
    """Nodes of the reference; None where the launcher fills them and nobody asks."""
    if now.colocate_all or shared:
        return (None,) if "reference_nodes" in current.absent and not facts.reference_active else (policy,)
    total = min(now.num_nodes, facts.most_nodes or now.num_nodes)
    left = total - facts.extra_nodes - policy - _rollout_nodes(facts, now)
    return sorted({policy, *_around(facts, {now.reference_nodes, left}, _REFERENCE_NODES_AROUND)})


class EngineSizes(NamedTuple):
    """TP, PP, DP and EP of an engine; compares by how many of them change."""

    steps: int
    values: tuple[int, int, int, int]


def engine_sizes(facts: Facts, current: Current, plan: Plan) -> list[EngineSizes]:
    """Return the sizes that suit model and node, fewest changes first; of `plan` only `engine_key` counts."""
    fitting = [
        values
        for values in _engine_sizes(facts, current, plan)
        if not facts.engines_local or facts.fits_model(tp=values[0], ep=values[3])
    ]
    changed = (extent(current, plan.having(_named(values)), _ENGINE_SIZES)[0] for values in fitting)
    return sorted(EngineSizes(steps, values) for steps, values in zip(changed, fitting, strict=True))


def engine_key(plan: Plan) -> tuple[int, int]:
    """Return what decides which engines fit: node width, and the GPUs that colocated ones share."""
    return plan.policy_width, plan.policy_nodes * plan.policy_width if plan.colocate_all else 0


def _named(values: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(_ENGINE_SIZES, values, strict=True))


def placements(
    facts: Facts, current: Current, roles: Roles, sizes: list[EngineSizes], most_steps: int
) -> Iterator[Placement]:
    """Yield what can stand beside `roles` with at most `most_steps` changed settings.

    Args:
        facts: what may not change.
        current: what the document holds.
        roles: where policy and reference lie.
        sizes: of `engine_sizes`.
        most_steps: bound of `Placement.steps`.
    """
    for size in sizes:
        if roles.steps + size.steps > most_steps:
            return
        plan = roles.plan.having(_named(size.values))
        for engines, nodes in _engine_counts(facts, plan):
            if not _admitted(facts, nodes):
                continue
            whole = plan._replace(engines=engines, num_nodes=nodes)
            if "reference_nodes" in current.absent and not facts.reference_active:
                whole = whole._replace(reference_nodes=int(current.default("reference_nodes", whole)))
            steps, distance = extent(current, whole, PLACEMENT_SETTINGS)
            steps += _world_faults(facts, whole)
            if steps <= most_steps:
                yield Placement(steps, distance, _idle(facts, whole), whole)


def _engine_sizes(facts: Facts, current: Current, now: Plan) -> Iterator[tuple[int, int, int, int]]:
    """Yield (TP, PP, DP, EP) that obey GEO-03 to -07."""
    if not facts.engines_local:
        yield from ((now.tp, now.pp, now.dp, ep) for ep in _expert_sizes(facts, current, now.tp * now.dp))
        return
    width, world = now.policy_width, now.policy_nodes * now.policy_width
    listed = [1] if facts.sglang else sorted({*range(1, min(width, _LISTED_WIDTH) + 1), *divisors(width)})
    # An engine gets no kind of parallelism that it did not have, except TP.
    staged = current.plan.pp > 1 or "pp" in current.unusable
    ranked = current.plan.dp > 1 or current.plan.ep > 1 or not current.unusable.isdisjoint(("dp", "ep"))
    for tp in listed:
        for pp in listed if staged else (1,):
            unit = tp * pp
            if unit > width or (now.colocate_all and width % unit):
                continue
            whole = {max(1, world // unit)} if now.colocate_all else set()
            for dp in sorted({*listed, now.dp, *whole}) if ranked else (1,):
                fits = world % (unit * dp) == 0 if now.colocate_all else unit * dp <= width
                if fits or (facts.multiprocess and not now.colocate_all):
                    yield from ((tp, pp, dp, ep) for ep in _expert_sizes(facts, current, tp * dp))


def _expert_sizes(facts: Facts, current: Current, group: int) -> list[int]:
    """EP: over the whole engine or not at all; experts that lie together are not spread."""
    now = current.plan.ep
    if "ep" not in current.unusable and (now == 1 or (facts.sglang and group % now == 0)):
        return [now]
    return sorted({1, group})


def _engine_counts(facts: Facts, plan: Plan) -> Iterator[tuple[int, int]]:
    """Yield (E, nodes of the allocation) that obey GEO-08 to -10."""
    each = plan.tp * plan.pp * plan.dp
    alone = plan.policy_nodes + facts.extra_nodes
    if (
        facts.reference_active
        and not facts.export_mode
        and not (plan.colocate_all or plan.colocate_policy_ref)
    ):
        alone += plan.reference_nodes
    if plan.colocate_all and facts.engines_local:
        yield plan.policy_nodes * plan.policy_width // each, alone
        return
    if facts.export_mode or not facts.engines_local:
        yield plan.engines, alone
        return
    per_node = plan.policy_width // (plan.tp * plan.pp if facts.multiprocess else each)
    units = plan.dp if facts.multiprocess else 1
    for engines in sorted(_near_engines(facts, plan, alone, per_node, units)):
        yield engines, alone + _rollout_nodes(facts, plan._replace(engines=engines))


def _near_engines(facts: Facts, plan: Plan, alone: int, per_node: int, units: int) -> set[int]:
    """E as it is, in full nodes around, and for each count of rollout nodes that the allocation suggests."""
    now = plan.engines
    step = per_node // math.gcd(per_node, units)
    wanted = {now, now // step * step, ceil_div(now, step) * step}
    spread = 1 if facts.rack is None else _RACK_NODES_AROUND
    totals = set(range(plan.num_nodes - spread, plan.num_nodes + spread + 1))
    if facts.most_nodes is not None:
        totals.add(facts.most_nodes)
    for total in totals:
        rollout = total - alone
        if rollout < 1 or not _admitted(facts, total):
            continue
        most, least = rollout * per_node // units, (rollout - 1) * per_node // units + 1
        if 1 <= least <= most:
            wanted.update((most, min(max(now, least), most)))
    return {engines for engines in wanted if engines > 0}


def _admitted(facts: Facts, nodes: int) -> bool:
    """Whether cluster and racks take a gang of `nodes` (GEO-21, GEO-25)."""
    if nodes > min(facts.most_nodes or LARGEST_NODE_COUNT, LARGEST_NODE_COUNT):
        return False
    return facts.rack is None or nvl72_racks(nodes, facts.rack) is not None


def _idle(facts: Facts, plan: Plan) -> tuple[str, ...]:
    if plan.colocate_all or not facts.engines_local:
        return ()
    size = plan.tp * plan.pp * (1 if facts.multiprocess else plan.dp)
    width = plan.policy_width
    unfilled = not facts.multiprocess and plan.engines % (width // size) > 0
    return ("GEO-22",) * (width % size > 0) + ("GEO-24",) * unfilled
