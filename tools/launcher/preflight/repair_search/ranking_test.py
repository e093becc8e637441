"""The order of proposals: a change more, a farther number, a warning or a GPU more is never nearer."""

import math
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.launcher.preflight.repair_search.plan import SWITCHES, Current, Plan
from tools.launcher.preflight.repair_search.ranking import WARNING_DISTANCE, Cost, extent

_NOW = Plan(
    num_nodes=8, gpus_per_node=8, colocate_all=False, colocate_policy_ref=True, policy_nodes=4, policy_width=8,
    reference_nodes=4, reference_width=8, engines=4, tp=1, pp=1, dp=8, ep=8, train=64, mini=64, micro=1,
    samples=8, forward=1, workers=1,
)  # fmt: skip
_CURRENT = Current(_NOW, frozenset(), frozenset(), filled=True)
_NUMBERS = [name for name in Plan._fields if name not in SWITCHES]
_SAME_ALLOCATION = [name for name in _NUMBERS if name not in ("num_nodes", "gpus_per_node")]
_FEW = settings(max_examples=100, deadline=None, derandomize=True, database=None)
_PLANS = st.dictionaries(st.sampled_from(_NUMBERS), st.integers(1, 100), max_size=5).map(
    lambda changes: _NOW.having(changes)
)


def _cost(plan: Plan, remaining: int = 0, warnings: int = 0) -> Cost:
    return Cost.of(_CURRENT, plan, Plan._fields, remaining=remaining, warnings=warnings)


def test_changes_are_counted_and_measured():
    assert extent(_CURRENT, _NOW, Plan._fields) == (0, 0.0)
    assert extent(_CURRENT, _NOW._replace(engines=8), Plan._fields) == (1, pytest.approx(math.log(2)))
    assert extent(_CURRENT, _NOW._replace(engines=2, tp=2), Plan._fields) == (2, pytest.approx(math.log(4)))
    assert extent(_CURRENT, _NOW._replace(colocate_all=True), Plan._fields) == (1, 1.0)


def test_the_widths_of_both_roles_are_one_setting():
    assert extent(_CURRENT, _NOW._replace(policy_width=4, reference_width=4), Plan._fields)[0] == 1
    assert extent(_CURRENT, _NOW._replace(reference_width=4), Plan._fields)[0] == 1


def test_an_unusable_value_is_a_change_whatever_is_written():
    current = _CURRENT._replace(unusable=frozenset({"engines"}))
    assert extent(current, _NOW, Plan._fields) == (1, 0.0)


@_FEW
@given(plan=_PLANS, name=st.sampled_from(_NUMBERS), value=st.integers(1, 100))
def test_a_change_more_is_farther(plan, name, value):
    if getattr(plan, name) == getattr(_NOW, name) != value and "width" not in name:
        assert _cost(plan._replace(**{name: value})) > _cost(plan)


@_FEW
@given(
    plan=_PLANS, name=st.sampled_from(_SAME_ALLOCATION), near=st.integers(65, 99), far=st.integers(100, 200)
)
def test_the_same_change_is_farther_the_larger_it_is(plan, name, near, far):
    assert _cost(plan._replace(**{name: near})) < _cost(plan._replace(**{name: far}))


@_FEW
@given(plan=_PLANS)
def test_an_error_that_remains_and_a_warning_are_farther(plan):
    assert _cost(plan) < _cost(plan, warnings=1) < _cost(plan, remaining=1)
    assert _cost(plan, warnings=1).distance == pytest.approx(_cost(plan).distance + WARNING_DISTANCE)


def test_of_equally_far_plans_the_one_with_fewer_gpus_is_nearer():
    assert _cost(_NOW._replace(num_nodes=4)) < _cost(_NOW._replace(num_nodes=16))


@_FEW
@given(one=_PLANS, other=_PLANS)
def test_the_order_is_total(one, other):
    assert (_cost(one) == _cost(other)) == (one == other)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
