"""Candidates of nodes and engines, against the arithmetic of the contract (typed-spec.md §4)."""

import sys
from typing import Any

import pytest

from tools.launcher.preflight.repair_search.facts import Facts
from tools.launcher.preflight.repair_search.placement import (
    Placement,
    Roles,
    engine_sizes,
    placements,
    role_options,
)
from tools.launcher.preflight.repair_search.plan import PATHS, Current, Plan, read_current
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.testing.subjects import changed, cluster_card, document, pinned_runtime

_MULTIPROCESS = {"skyrl.generator.inference_engine_mp_backend": True}


def _read(base: str, changes: dict[str, Any] | None = None, **values: Any) -> tuple[Facts, Current]:
    cards = {name: values.pop(name) for name in ("cluster", "model") if name in values}
    content = changed(
        document(base), {PATHS[name]: value for name, value in values.items()} | (changes or {})
    )
    subject = PreflightSubject(document=content, runtime=pinned_runtime(), **cards)
    return Facts.of(subject), read_current(subject, Plan._fields)


def _roles(facts: Facts, current: Current) -> list[Roles]:
    return role_options(facts, current, current.plan)


def _all(facts: Facts, current: Current, most_steps: int) -> list[Placement]:
    return [
        placed
        for roles in _roles(facts, current)
        for placed in placements(facts, current, roles, engine_sizes(facts, current, roles.plan), most_steps)
    ]


def _near(facts: Facts, current: Current, most_steps: int = 1) -> list[dict[str, Any]]:
    """What placements change, nearest first."""
    found = sorted(_all(facts, current, most_steps), key=lambda placed: (placed.steps, placed.distance))
    return [
        {name: getattr(placed.plan, name) for name in Plan._fields if current.moved(name, placed.plan)}
        for placed in found
        if placed.steps
    ]


def test_roles_come_nearest_first_with_their_ranks():
    facts, current = _read("moe")
    first, second, *_ = _roles(facts, current)
    assert (first.steps, first.plan.policy_nodes, first.ranks, first.dispatch) == (0, 4, 16, 16)
    assert second.steps > 0
    assert all(roles.plan.policy_nodes % 2 == 0 for roles in _roles(facts, current))  # dp % ep == 0


def test_a_world_that_breaks_the_recipes_sizes_already_may_stay():
    facts, current = _read("moe", {"skyrl.trainer.policy.megatron_config.expert_model_parallel_size": 3})
    kept = [roles for roles in _roles(facts, current) if roles.plan.policy_nodes == 4]
    assert [roles.steps for roles in kept] == [2]  # one for each rule that stays broken


def test_a_separate_reference_has_nodes_of_its_own():
    facts, current = _read("moe", num_nodes=13, colocate_policy_ref=False)
    assert {"num_nodes": 12} in _near(facts, current) and {"reference_nodes": 5} not in _near(facts, current)
    far, held = _read("moe", num_nodes=28, reference_nodes=40, colocate_policy_ref=False)
    assert {"reference_nodes": 20} in _near(far, held)


def test_colocated_engines_use_the_policys_gpus():
    facts, current = _read("smoke", engines=4, tp=3)
    assert _near(facts, current) == [{"tp": 2}]
    for placed in _all(*_read("smoke", tp=3), 4):
        plan = placed.plan
        assert plan.engines * plan.tp * plan.pp * plan.dp == plan.policy_nodes * plan.policy_width
        assert plan.policy_width % (plan.tp * plan.pp) == 0 and plan.num_nodes == plan.policy_nodes


def test_the_nodes_of_disaggregated_engines_are_counted():
    facts, current = _read("smoke", colocate_all=False, num_nodes=3, engines=5, tp=3)
    near = _near(facts, current)
    assert near[0] == {"engines": 4} and {"num_nodes": 4} in near and {"tp": 2} in near
    idle = [placed.warnings for placed in _all(facts, current, 1) if placed.plan.num_nodes == 4]
    assert idle == [("GEO-22", "GEO-24")]


def test_engines_of_the_multiprocess_back_end_cross_nodes():
    facts, current = _read("moe", _MULTIPROCESS, num_nodes=7, dp=16, ep=16, engines=2)
    assert _near(facts, current)[0] == {"num_nodes": 8}
    alone, held = _read("moe", num_nodes=7, dp=16, ep=16, engines=2)
    assert all(placed.plan.dp <= 8 for placed in _all(alone, held, 4))


def test_engines_get_no_stages_and_ranks_that_they_did_not_have():
    facts, current = _read("smoke", engines=7)
    assert {(placed.plan.pp, placed.plan.dp, placed.plan.ep) for placed in _all(facts, current, 3)} == {
        (1, 1, 1)
    }
    staged, held = _read("smoke", engines=7, pp=2)
    assert {placed.plan.pp for placed in _all(staged, held, 3)} == {1, 2, 4, 8}
    unread, held = _read("moe", ep=0)
    assert {placed.plan.ep for placed in _all(unread, held, 1)} == {1, 8}


def test_sglang_engines_have_one_gpu():
    facts, current = _read("smoke", {"skyrl.generator.backend": "sglang"}, engines=7)
    assert {(placed.plan.tp, placed.plan.engines) for placed in _all(facts, current, 1)} == {(1, 8)}


@pytest.mark.parametrize(("nodes", "admitted"), [(17, {16, 20}), (18, {16, 20}), (33, {33, 32, 36})])
def test_gangs_on_racks_split_evenly(nodes, admitted):
    sizes = dict.fromkeys(("num_nodes", "policy_nodes", "reference_nodes"), nodes)
    widths = dict.fromkeys(("gpus_per_node", "policy_width", "reference_width"), 4)
    variant = {"iris.allocation.gpu_variant": "GB200"}
    facts, current = _read("smoke", variant, **sizes, **widths, engines=nodes * 4)
    found = {placed.plan.num_nodes for placed in _all(facts, current, 4)}
    assert admitted <= found and not {17, 18, 19, 21, 31, 34, 35} & found
    assert {placed.plan.gpus_per_node for placed in _all(facts, current, 4)} == {4}


def test_the_cluster_bounds_nodes_and_widths():
    cluster = cluster_card(max_nodes=6, gpus_per_node=8)
    facts, current = _read("moe", gpus_per_node=16, cluster=cluster)
    found = _all(facts, current, 4)
    assert found and {placed.plan.gpus_per_node for placed in found} == {8}
    assert max(placed.plan.num_nodes for placed in found) == 6


def test_an_export_places_the_policy_alone_and_may_leave_gpus():
    facts, current = _read("moe", {"run.mode": "checkpoint_export"})
    assert _near(facts, current)[0] == {"num_nodes": 4}
    narrow, held = _read("smoke", {"run.mode": "checkpoint_export"}, gpus_per_node=16)
    assert narrow.export_mode and min(roles.steps for roles in _roles(narrow, held)) == 0


def test_remote_engines_occupy_no_node():
    facts, current = _read("moe", {"skyrl.generator.run_engines_locally": False}, ep=3)
    assert _near(facts, current, 2)[0] == {"num_nodes": 4, "ep": 8}


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
