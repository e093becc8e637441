"""The search for the nearest legal batch, against the rules themselves."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.launcher.preflight.checks.batches.legal import (
    FORWARD,
    MICRO,
    MINI,
    TRAIN,
    batch_repair,
    near_trains,
    nearest_legal_batch,
    smaller_batch_repair,
    whole_batch_repair,
)
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.testing.cases.batches import ENTRYPOINT, SAMPLES
from tools.launcher.preflight.testing.cases.geometry import POLICY
from tools.launcher.preflight.testing.subjects import changed, document, pinned_runtime

_RUNTIME = pinned_runtime()
_SMOKE = document("smoke")


def subject(train, mini, micro, samples, nodes=1, **changes):
    sizes = {TRAIN: train, MINI: mini, MICRO: micro, SAMPLES: samples, POLICY: nodes}
    return PreflightSubject(document=changed(_SMOKE, sizes | changes), runtime=_RUNTIME)


def is_legal(geometry, train, mini, micro):
    ranks, rows = geometry.policy_dp, mini * geometry.samples
    return (
        train >= geometry.dispatch_multiple
        and train % mini == 0
        and rows % ranks == 0
        and mini % micro == 0
        and rows // ranks % micro == 0
        and rows >= ranks
    )


_SIZES = st.integers(1, 40)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(train=_SIZES, mini=_SIZES, micro=_SIZES, samples=st.integers(1, 9), nodes=st.integers(1, 3))
def test_the_answer_is_legal_and_changes_the_fewest_values(train, mini, micro, samples, nodes):
    geometry = Geometry(subject(train, mini, micro, samples, nodes))
    found = nearest_legal_batch(geometry, near_trains, one_mini_batch=False)
    assert found is not None and is_legal(geometry, *found)
    changes = sum(old != new for old, new in zip((train, mini, micro), found, strict=True))
    assert (changes == 0) == is_legal(geometry, train, mini, micro)
    if any(is_legal(geometry, train, mini, other) for other in range(1, micro + 1)):
        assert found[:2] == (train, mini)
    one = nearest_legal_batch(geometry, near_trains, one_mini_batch=True)
    assert one is not None and one[0] == one[1] and is_legal(geometry, *one)


@pytest.mark.parametrize(
    ("numbers", "repair"),
    [
        ((16, 6, 1, 4), f"set {MINI}=8"),
        ((8, 16, 1, 4), f"set {MINI}=8"),
        ((8, 1, 1, 4), f"set {MINI}=2"),
        ((4, 4, 1, 4), f"set {TRAIN}=8"),
        ((16, 16, 3, 4), f"set {MICRO}=2"),
        ((12, 12, 4, 4), f"set {MICRO}=3"),
    ],
)
def test_repairs_change_one_value_where_one_is_enough(numbers, repair):
    assert batch_repair(subject(*numbers), "otherwise") == repair


@pytest.mark.parametrize(
    ("numbers", "repair"),
    [
        # 48 alone would leave a mini batch that does not divide it.
        ((40, 20, 1, 8, 2), f"set {TRAIN}=48 and set {MINI}=24"),
        ((40, 8, 1, 8, 2), f"set {TRAIN}=48"),
        ((20, 20, 1, 4, 1), f"set {TRAIN}=24 and set {MINI}=24"),
    ],
)
def test_a_batch_that_drops_prompts_is_made_whole_without_breaking_the_mini_batch(numbers, repair):
    assert whole_batch_repair(subject(*numbers), "otherwise") == repair


@pytest.mark.parametrize(
    ("numbers", "most", "repair"),
    [
        ((64, 64, 1, 4), 50, f"set {TRAIN}=48 and set {MINI}=48"),
        ((64, 16, 1, 4), 50, f"set {TRAIN}=48"),
        ((64, 64, 1, 4), 7, "otherwise"),
    ],
)
def test_a_batch_shrinks_to_the_data_together_with_its_mini_batch(numbers, most, repair):
    assert smaller_batch_repair(subject(*numbers), most, "otherwise") == repair


def test_a_micro_batch_of_megatron_changes_for_forward_and_training():
    changes = {"skyrl.trainer.strategy": "megatron"}
    assert batch_repair(subject(16, 16, 3, 4, **changes), "") == f"set {MICRO}=2 and set {FORWARD}=2"


def test_fully_async_keeps_one_mini_batch():
    assert batch_repair(subject(16, 8, 1, 4, **{ENTRYPOINT: "fully_async"}), "") == f"set {MINI}=16"


@pytest.mark.parametrize(
    ("numbers", "changes"),
    [((16, 16, 1, "4"), {}), ((10**6, 7, 1, 4), {}), ((16, 6, 1, 4), {"skyrl.trainer.strategy": 3})],
)
def test_without_the_numbers_there_is_another_repair(numbers, changes):
    assert batch_repair(subject(*numbers, **changes), "otherwise") == "otherwise"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
