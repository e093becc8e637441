"""Sizes of rollout engines, and how they fit nodes."""

from collections.abc import Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.geometry.in_step import (
    colocated_changes,
    engines_of_allocation,
    placement_repair,
    widths_differ,
)
from tools.launcher.preflight.engine_sizes import (
    DP,
    ENGINES,
    EP,
    TP,
    engine_changes,
    engine_settings,
)
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry, ceil_div, divisors, nearest
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue, is_count
from tools.launcher.preflight.wording import counted, listed, set_to, shown


def _slice_repair(subject: PreflightSubject, geometry: Geometry) -> str:
    """The largest slice that fills a node of disaggregated engines, and as many engines as the allocation holds.

    PP changes only if it must.
    """
    width, present = geometry.policy_gpus_per_node, geometry.engine_pp
    pp = present if width % present == 0 else 1
    tp = max(tp for tp in divisors(width // pp) if tp <= geometry.engine_tp)
    changes = engine_changes(subject, tp=tp, pp=pp)
    try:
        engines = engines_of_allocation(subject.with_values(changes))
    except (MissingFact, UnreadableValue):
        engines = None
    return engine_settings(subject, tp=tp, pp=pp, **({} if engines is None else {"engines": engines}))


@check(
    "GEO-03",
    "colocated engine slices tile a node",
    area="geometry",
    rule="colocated: gpus_per_node % (TP*PP) == 0",
    prevents="A slice straddles two nodes, and its all-reduce waits forever at engine start.",
    inputs=("spec",),
    source="catalogue GEO-03 (#18), failure rows 11 (MarinSkyRL debug log) and 38 (OpenRLHF#889)",
    implied_by=("GEO-05",),
)
def geo_03(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if not geometry.colocate_all or not geometry.engines_local:
        return
    width, size = geometry.policy_gpus_per_node, geometry.engine_slice
    if width % size:
        yield Finding(
            path=TP,
            message=f"colocated engine slice TP*PP={size} does not tile {counted(width, 'GPU')} per node "
            f"({width} % {size} = {width % size}). Choose TP*PP from {listed(divisors(width))}",
            repair=placement_repair(subject, colocated_changes(subject)),
        )


@check(
    "GEO-04",
    "a disaggregated engine fits a node",
    area="geometry",
    rule="disaggregated: TP*PP*DP <= gpus_per_node, unless inference_engine_mp_backend is true",
    prevents="Ray cannot place an engine that is larger than a node.",
    inputs=("spec", "runtime"),
    source="catalogue GEO-04 (#19); Marin refuses every larger engine, the launcher allows the multiprocess form",
    implied_by=("GEO-05",),
)
def geo_04(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if geometry.colocate_all or not geometry.engines_local:
        return
    width, gpus = geometry.policy_gpus_per_node, geometry.engine_gpus
    if gpus <= width:
        return
    fitting = max(1, width // geometry.engine_slice)
    # As many ranks as before, in smaller engines.
    engines = subject.get(ENGINES)
    more = {"engines": max(1, engines * geometry.engine_dp // fitting)} if is_count(engines) else {}
    repair = engine_settings(subject, dp=fitting, **more)
    if geometry.multiprocess_engines:
        yield Finding(
            path=DP,
            message=f"one engine of {gpus} GPUs crosses nodes of {width}: only the launcher's multiprocess back end "
            "allows it, Marin's own build refuses it",
            repair=repair,
            severity="warning",
        )
        return
    yield Finding(
        path=DP,
        message=f"one engine needs TP*PP*DP={gpus} GPUs, a node has {width}. Reduce DP to {fitting} and use more engines",
        repair=repair,
    )


@check(
    "GEO-05",
    "an engine slice fits a node",
    area="geometry",
    rule="TP*PP <= gpus_per_node",
    prevents="No placement exists in any mode.",
    inputs=("spec",),
    source="catalogue GEO-05 (#20), failure row 40 (OpenRLHF#758); Marin and the launcher",
)
def geo_05(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if not geometry.engines_local:
        return
    width, size = geometry.policy_gpus_per_node, geometry.engine_slice
    if size > width:
        yield Finding(
            path=TP,
            message=f"TP*PP={size} exceeds the {counted(width, 'GPU')} of a node",
            repair=placement_repair(subject, colocated_changes(subject))
            if geometry.colocate_all
            else _slice_repair(subject, geometry),
        )


@check(
    "GEO-06",
    "expert ranks fill their group",
    area="geometry",
    rule="(TP*DP) % EP == 0",
    prevents="Expert ranks do not fill the group.",
    inputs=("spec",),
    source="catalogue GEO-06 (#21); Marin at build time",
    implied_by=("GEO-07",),
)
def geo_06(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if geometry.expert_group % geometry.engine_ep:
        yield Finding(
            path=EP,
            message=f"EP={geometry.engine_ep} does not divide TP*DP={geometry.expert_group}. "
            f"Divisors: {listed(divisors(geometry.expert_group))}",
            repair=set_to(EP, nearest(divisors(geometry.expert_group), geometry.engine_ep)),
        )


@check(
    "GEO-07",
    "vLLM spreads experts over the whole engine or not at all",
    area="geometry",
    rule="EP == 1 or EP == TP*DP (vLLM)",
    prevents="Marin and the launcher accept EP=4 of 8; the trainer stops after the GPUs were allocated.",
    inputs=("spec",),
    source="catalogue GEO-07 (#22); the trainer, after allocation",
)
def geo_07(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if subject.get("skyrl.generator.backend") == "sglang":
        return
    if geometry.engine_ep not in (1, geometry.expert_group):
        yield Finding(
            path=EP,
            message=f"EP={geometry.engine_ep} with TP*DP={geometry.expert_group}: vLLM spans exactly TP*DP ranks",
            repair=set_to(EP, *dict.fromkeys((geometry.expert_group, 1))),
        )


@check(
    "GEO-08",
    "colocated engines use exactly the policy's GPUs",
    area="geometry",
    rule="colocated: policy GPUs == E*TP*PP*DP",
    prevents="A placement bundle index out of range, or idle GPUs.",
    inputs=("spec",),
    source="catalogue GEO-08 (#23), failure row 37 (OpenRLHF#728); Marin at build time",
    implied_by=("GEO-19",),
)
def geo_08(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if not geometry.colocate_all or not geometry.engines_local:
        return
    world, rollout, each = geometry.policy_world, geometry.rollout_gpus, geometry.engine_gpus
    # With the width that GEO-02 and GEO-11 ask for, the policy has other GPUs.
    if world == rollout or widths_differ(subject):
        return
    if world % each == 0 and geometry.policy_gpus_per_node % geometry.engine_slice == 0:
        repair = set_to(ENGINES, world // each)
    else:
        repair = placement_repair(subject, colocated_changes(subject))
    yield Finding(
        path=ENGINES,
        message=f"colocated: policy has {counted(world, 'GPU')}, engines use E*TP*PP*DP={geometry.engines}*{each}={rollout}",
        repair=repair,
    )


@check(
    "GEO-20",
    "node-local inference has its layout",
    area="geometry",
    rule="node-local: vLLM, async engine, not colocated, TP=PP=1, EP==DP<=gpus_per_node",
    prevents="The layout is refused, by launcher or trainer, depending on the commit.",
    inputs=("spec", "runtime"),
    source="catalogue GEO-20 (#35)",
)
def geo_20(subject: PreflightSubject) -> Iterator[Finding]:
    manifest = subject.manifest()
    if "node_local_inference" not in manifest.model_fields_set:
        raise MissingFact("node_local_inference in the runtime manifest: the setting that switches it on")
    if (
        manifest.node_local_inference is None
        or subject.get(f"skyrl.{manifest.node_local_inference}") is not True
    ):
        return
    geometry = Geometry.of(subject)
    width = geometry.policy_gpus_per_node
    wrong = [
        f"{name}={value if isinstance(value, str) else shown(value)}"
        for name, value, right in (
            (
                "backend",
                subject.text("skyrl.generator.backend"),
                subject.text("skyrl.generator.backend") == "vllm",
            ),
            ("async_engine", *([subject.flag("skyrl.generator.async_engine")] * 2)),
            ("colocate_all", geometry.colocate_all, not geometry.colocate_all),
            ("TP", geometry.engine_tp, geometry.engine_tp == 1),
            ("PP", geometry.engine_pp, geometry.engine_pp == 1),
            ("EP", geometry.engine_ep, geometry.engine_ep == geometry.engine_dp),
            ("DP", geometry.engine_dp, geometry.engine_dp <= width),
        )
        if not right
    ]
    if wrong:
        yield Finding(
            path=f"skyrl.{manifest.node_local_inference}",
            message="node_local inference needs vllm, async_engine, no colocation, TP=PP=1 and "
            f"EP==DP<={width}; got {listed(wrong)}",
            repair=set_to(f"skyrl.{manifest.node_local_inference}", False),
        )


@check(
    "GEO-22",
    "disaggregated engines leave no GPU of a node idle",
    area="geometry",
    rule="disaggregated: floor(g/(TP*PP*DP))*(TP*PP*DP) == g",
    prevents="TP=3 leaves 2 of 8 GPUs idle on every rollout node.",
    inputs=("spec", "runtime"),
    source="catalogue GEO-22 (new); nobody checks it",
    implied_by=("GEO-04", "GEO-05"),
)
def geo_22(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if geometry.colocate_all or not geometry.engines_local:
        return
    width = geometry.policy_gpus_per_node
    size = geometry.engine_slice if geometry.multiprocess_engines else geometry.engine_gpus
    if size <= width and width % size:
        yield Finding(
            path=TP,
            message=f"engines of {counted(size, 'GPU')} leave {width % size} of {width} GPUs idle per rollout node. "
            f"Sizes that fill a node: {listed(divisors(width))}",
            repair=engine_settings(subject, tp=nearest(divisors(width), size), pp=1, dp=1),
            severity="warning",
        )


@check(
    "GEO-24",
    "the last rollout node is full",
    area="geometry",
    rule="disaggregated: E is a multiple of the engines per node",
    prevents="5 engines at 2 per node waste half a node.",
    inputs=("spec", "runtime"),
    source="catalogue GEO-24 (new), contract typed-spec.md §4 examples H and J; nobody checks it",
    implied_by=("GEO-04", "GEO-05"),
)
def geo_24(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if geometry.colocate_all or not geometry.engines_local or geometry.multiprocess_engines:
        return
    fit, engines = geometry.engines_per_node, geometry.engines
    if engines % fit:
        full = ceil_div(engines, fit) * fit
        yield Finding(
            path=ENGINES,
            message=f"{counted(engines, 'engine')} at {fit} per node leave room for {full - engines} more on the last rollout node",
            repair=set_to(ENGINES, full, *([full - fit] if full > fit else [])),
            severity="warning",
        )


CHECKS = (geo_03, geo_04, geo_05, geo_06, geo_07, geo_08, geo_20, geo_22, geo_24)
