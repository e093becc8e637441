"""Ranks on GPUs: every GPU once, every group whole, and the order of the libraries' own documents."""

import sys
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tools.launcher.render.layout import (
    ClusterLayout,
    EngineLayout,
    TrainerLayout,
    dimensions_of,
    engine_rank,
    gpus_of,
    groups_of,
)


def trainer(nodes: int, gpus_per_node: int, **sizes: int) -> TrainerLayout:
    ones = dict.fromkeys(("tensor", "pipeline", "context", "sequence", "expert", "expert_tensor"), 1)
    given = {"first_node": 0, "nodes": nodes, "gpus_per_node": gpus_per_node}
    return TrainerLayout(strategy="megatron", **(ones | given | sizes))


def cluster(
    policy: TrainerLayout, engines: EngineLayout | None = None, nodes: int | None = None
) -> ClusterLayout:
    return ClusterLayout(
        nodes=nodes or policy.nodes,
        gpus_per_node=policy.gpus_per_node,
        policy=policy,
        reference=None,
        engines=engines,
        others=(),
    )


def numbered_groups(layout: ClusterLayout, role: str, dimension: str) -> list[list[int]]:
    """Groups by number of the GPU in the cluster."""
    return [
        [node * layout.gpus_per_node + slot for node, slot in group.members]
        for group in groups_of(layout)
        if (group.role, group.dimension) == (role, dimension)
    ]


def test_the_example_of_megatrons_documentation():
    """16 GPUs, TP 2, PP 4: the groups that the docstring of initialize_model_parallel lists."""
    layout = cluster(trainer(2, 8, tensor=2, pipeline=4))
    assert numbered_groups(layout, "policy", "TP") == [[first, first + 1] for first in range(0, 16, 2)]
    assert numbered_groups(layout, "policy", "PP") == [
        [first, first + 4, first + 8, first + 12] for first in range(4)
    ]
    assert numbered_groups(layout, "policy", "DP") == [
        [0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9, 11], [12, 14], [13, 15],
    ]  # fmt: skip


def test_experts_spread_over_data_parallel_ranks_of_one_stage():
    layout = cluster(trainer(2, 8, pipeline=2, expert=4))
    assert numbered_groups(layout, "policy", "EP") == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 10, 11],
        [12, 13, 14, 15],
    ]


def test_expert_tensor_parallel_ranks_are_neighbours():
    layout = cluster(trainer(1, 8, tensor=2, expert=4, expert_tensor=2))
    assert numbered_groups(layout, "policy", "EP") == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_ranks_that_share_a_sequence_are_neighbours():
    layout = cluster(trainer(1, 8, sequence=4))
    assert numbered_groups(layout, "policy", "SP") == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert numbered_groups(layout, "policy", "DP") == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_what_sequence_parallelism_does_not_divide_is_left_over():
    ranks = [gpu.policy for gpu in gpus_of(cluster(trainer(1, 8, sequence=3)))]
    assert [rank is not None for rank in ranks] == [True] * 6 + [False] * 2


def test_an_engine_that_does_not_fill_a_node_leaves_gpus_idle():
    """Worked example H of the contract: five engines of TP 3 need three nodes and use 15 of 24 GPUs."""
    engines = engine_layout(1, 8, count=5, tensor=3, unit=3)
    assert engines.nodes == 3
    layout = cluster(trainer(1, 8), engines, nodes=4)
    placed = [(gpu.node, gpu.slot, gpu.engine.group) for gpu in gpus_of(layout) if gpu.engine]
    assert len(placed) == 15
    assert {(node, engine) for node, _, engine in placed} == {(1, 0), (1, 1), (2, 2), (2, 3), (3, 4)}
    assert {slot for _, slot, _ in placed} == {0, 1, 2, 3, 4, 5}


def engine_layout(
    first_node: int, gpus_per_node: int, *, count: int, unit: int, **sizes: int
) -> EngineLayout:
    ones = dict.fromkeys(("tensor", "pipeline", "data", "expert"), 1)
    return EngineLayout(
        first_node=first_node, gpus_per_node=gpus_per_node, count=count, unit=unit, **(ones | sizes)
    )


POWERS = st.sampled_from([1, 2, 4])


@st.composite
def trainers(draw: st.DrawFn) -> TrainerLayout:
    gpus_per_node, tensor, pipeline, context = (
        draw(st.sampled_from([4, 8])),
        draw(POWERS),
        draw(POWERS),
        draw(POWERS),
    )
    nodes = draw(st.sampled_from([1, 2, 4])) * max(1, tensor * pipeline * context // gpus_per_node)
    per_stage = nodes * gpus_per_node // pipeline
    expert = draw(st.sampled_from([size for size in (1, 2, 4, 8) if per_stage % size == 0]))
    return trainer(nodes, gpus_per_node, tensor=tensor, pipeline=pipeline, context=context, expert=expert)


@settings(max_examples=40, deadline=None)
@given(trainers())
def test_every_gpu_of_the_policy_has_one_rank_and_groups_partition_them(policy):
    layout = cluster(policy, nodes=policy.nodes + 1)
    ranks = {(gpu.node, gpu.slot): gpu.policy for gpu in gpus_of(layout) if gpu.policy}
    assert sorted(rank.number for rank in ranks.values()) == list(range(policy.world))
    assert all(node < policy.nodes for node, _ in ranks)
    # Without the experts' own dimension, coordinates name a rank.
    places = {tuple(item for item in rank.coordinates if item[0] != "EP") for rank in ranks.values()}
    assert len(places) == policy.world
    all_groups = groups_of(layout)
    for dimension, size in dimensions_of(layout)["policy"].items():
        groups = [group for group in all_groups if group.dimension == dimension]
        assert {len(group.members) for group in groups} == {size}
        assert Counter(member for group in groups for member in group.members) == Counter(list(ranks))
        for group in groups:
            indices = [dict(ranks[member].coordinates)[dimension] for member in group.members]
            assert sorted(indices) == list(range(size))


@settings(max_examples=60, deadline=None)
@given(
    gpus_per_node=st.sampled_from([4, 8]),
    tensor=POWERS,
    pipeline=POWERS,
    data=POWERS,
    count=st.integers(1, 9),
    apart=st.booleans(),
)
def test_every_engine_has_its_gpus_and_no_part_of_one_straddles_nodes(
    gpus_per_node, tensor, pipeline, data, count, apart
):
    unit = tensor * pipeline * (1 if apart else data)
    assume(unit <= gpus_per_node)
    engines = engine_layout(
        0,
        gpus_per_node,
        count=count,
        unit=unit,
        tensor=tensor,
        pipeline=pipeline,
        data=data,
        expert=tensor * data,
    )
    layout = cluster(trainer(engines.nodes, gpus_per_node), engines)
    placed = [(gpu.node, gpu.engine) for gpu in gpus_of(layout) if gpu.engine]
    assert sorted((rank.group, rank.number) for _, rank in placed) == [
        (engine, number) for engine in range(count) for number in range(engines.gpus)
    ]
    parts: dict[tuple[int, int], set[int]] = {}
    for node, rank in placed:
        parts.setdefault((rank.group, rank.number // unit), set()).add(node)
    assert all(len(nodes) == 1 for nodes in parts.values())
    for group in groups_of(layout):
        if group.role == "engine":
            assert len(group.members) == dimensions_of(layout)["engine"][group.dimension]


def test_before_its_nodes_a_role_has_no_ranks():
    assert engine_rank(engine_layout(2, 8, count=1, unit=1), 1, 7) is None


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
