"""Role and batch arithmetic. The letters are the worked examples of the contract, typed-spec.md §4."""

import sys

import pytest

from tools.launcher.preflight.geometry import Geometry, ceil_div, divisors, nearest, nearest_multiples
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.testing.cases.geometry import (
    COLOCATED,
    COLOCATED_REFERENCE,
    DP,
    DRAFT,
    ENGINES,
    EP,
    KL,
    LOCAL,
    MULTIPROCESS,
    NODES,
    POLICY,
    POLICY_WIDTH,
    REFERENCE,
    REFERENCE_WIDTH,
    TP,
    WIDTH,
)
from tools.launcher.preflight.testing.subjects import changed, document, pinned_runtime

_RUNTIME = pinned_runtime()
_NARROW = {WIDTH: 4, POLICY_WIDTH: 4, REFERENCE_WIDTH: 4}
_SEPARATE = {KL: True, COLOCATED_REFERENCE: False}
_PP = "skyrl.trainer.policy.megatron_config.pipeline_model_parallel_size"


def geometry(base, **changes):
    subject = PreflightSubject(document=changed(document(base), changes), runtime=_RUNTIME)
    return Geometry.of(subject)


@pytest.mark.parametrize(
    ("example", "base", "changes", "nodes"),
    [
        ("A", "smoke", {}, 1),
        ("B", "smoke", {POLICY: 2, ENGINES: 1, DP: 16, EP: 16}, 2),
        ("C", "moe", {}, 8),
        ("D", "moe", {TP: 2, DP: 4}, 8),
        ("D3 multiprocess", "moe", {DP: 16, EP: 16, ENGINES: 2, MULTIPROCESS: True}, 8),
        ("E", "moe", _SEPARATE, 12),
        ("E2", "moe", _SEPARATE | {REFERENCE: 2}, 10),
        ("E3", "moe", {KL: False, COLOCATED_REFERENCE: False}, 8),
        ("F", "moe", _NARROW | {DP: 4, EP: 4}, 8),
        ("F2 multiprocess", "moe", _NARROW | {DP: 8, EP: 8, ENGINES: 2, MULTIPROCESS: True}, 8),
        ("H", "smoke", {COLOCATED: False, ENGINES: 5, TP: 3}, 4),
        ("I", "moe", {ENGINES: 1, f"{DRAFT}.training": {"interval_steps": 1}}, 6),
        ("J", "smoke", {COLOCATED: False, POLICY: 2, ENGINES: 12}, 4),
        ("remote engines", "moe", {LOCAL: False}, 4),
    ],
)
def test_nodes_of_the_worked_examples(example, base, changes, nodes):
    assert geometry(base, **changes).derived_nodes == nodes, example


def test_batches_of_the_worked_examples():
    moe = geometry("moe")
    assert (moe.policy_world, moe.policy_dp, moe.rows_per_rank, moe.dispatch_multiple) == (32, 16, 32, 16)
    smoke = geometry("smoke")
    assert (smoke.policy_world, smoke.policy_dp, smoke.rows_per_rank, smoke.dispatch_multiple) == (8, 8, 8, 8)


def test_a_megatron_world_must_divide_and_an_fsdp_world_is_rounded_down():
    with pytest.raises(UnreadableValue, match="a policy world that its model-parallel size 3 divides"):
        _ = geometry("moe", **{_PP: 3}).policy_dp
    assert geometry("smoke", **{"skyrl.trainer.policy.sequence_parallel_size": 3}).policy_dp == 2


def test_one_bad_value_silences_only_what_needs_it():
    broken = geometry("smoke", **{NODES: True})
    with pytest.raises(UnreadableValue, match=f"{NODES} as int, it is true"):
        _ = broken.num_nodes
    assert broken.derived_nodes == 1


def test_small_arithmetic():
    assert [ceil_div(number, 4) for number in (1, 4, 5, 10**18 + 1)] == [1, 1, 2, 25 * 10**16 + 1]
    assert divisors(1) == [1] and divisors(36) == [1, 2, 3, 4, 6, 9, 12, 18, 36]
    assert len(divisors(10**9)) == 100 and divisors(10**27) == [1, 10**27]
    assert nearest([1, 2, 4, 8], 3) == 4 and nearest([1, 2, 4, 8], 16) == 8
    assert nearest_multiples(16, 6) == [18, 12] and nearest_multiples(4, 6) == [6]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
