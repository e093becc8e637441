import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.launcher.rl.recipe import SkyRLRecipe, leaves

LEAF = st.integers() | st.text() | st.booleans() | st.lists(st.integers())
NAMES = st.sampled_from(["trainer", "generator", "a", "b"])
PART = st.recursive(LEAF, lambda inner: st.dictionaries(NAMES, inner), max_leaves=8).filter(
    lambda value: isinstance(value, dict)
)


def test_parts_merge_leaf_by_leaf():
    recipe = SkyRLRecipe.combine(
        base={"trainer": {"epochs": 1, "algorithm": {"use_kl_loss": False}}},
        objective={"trainer": {"algorithm": {"advantage_estimator": "grpo"}}},
    )
    assert recipe.settings == {
        "trainer": {"epochs": 1, "algorithm": {"use_kl_loss": False, "advantage_estimator": "grpo"}}
    }
    assert recipe.origins["trainer.algorithm.advantage_estimator"] == "objective"
    assert recipe.conflicts == ()


def test_equal_leaves_are_no_conflict():
    assert SkyRLRecipe.combine(a={"x": {"y": 1}}, b={"x": {"y": 1}}).conflicts == ()


@pytest.mark.parametrize("second", [2, 1.0, True, "1", None, [1], {"y": 1}])
def test_a_leaf_set_differently_names_both_parts(second):
    (conflict,) = SkyRLRecipe.combine(a={"x": 1}, b={"x": second}).conflicts
    assert (conflict.path, conflict.first_part, conflict.second_part) == ("x", "a", "b")
    assert (conflict.first_value, conflict.second_value) == (1, second)


def test_a_section_against_a_leaf_names_the_part_that_made_the_section():
    (conflict,) = SkyRLRecipe.combine(a={"x": {"y": 1}}, b={"x": 2}).conflicts
    assert (conflict.path, conflict.first_part) == ("x", "a")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"x": (1, 2)}, "recipe part 'p': x is a tuple. Use text, numbers, booleans, lists or mappings"),
        ({"x": {3: 1}}, "recipe part 'p': key 3 of x is not text"),
        ({"x": [{"y": {1}}]}, "recipe part 'p': x[0].y is a set"),
        ({"x": float("nan")}, "recipe part 'p': x is nan. Use a finite number"),
        ({"x": [float("-inf")]}, "recipe part 'p': x[0] is -inf. Use a finite number"),
        ({"x": "\ud800"}, "recipe part 'p': x holds a lone surrogate. Use valid Unicode"),
        (None, "recipe part 'p' is a NoneType. Give a mapping"),
        ("trainer: {}", "recipe part 'p' is a str. Give a mapping"),
        ([1], "recipe part 'p' is a list. Give a mapping"),
    ],
)
def test_values_that_yaml_would_change_are_refused(value, sentence):
    with pytest.raises(TypeError) as caught:
        SkyRLRecipe.combine(p=value)
    assert sentence in str(caught.value)


def test_all_values_that_are_refused_are_named_at_once():
    with pytest.raises(TypeError) as caught:
        SkyRLRecipe.combine(a={"x": {"y": {1}}, "z": object()}, b=3)
    assert str(caught.value) == (
        "recipe part 'a': x.y is a set. Use text, numbers, booleans, lists or mappings; "
        "recipe part 'a': z is an object. Use text, numbers, booleans, lists or mappings; "
        "recipe part 'b' is an int. Give a mapping, such as {'trainer': {'epochs': 1}}"
    )


def test_a_part_that_holds_itself_is_refused():
    mine: dict[str, Any] = {}
    mine["x"] = mine
    with pytest.raises(TypeError, match="is nested more than 50 deep"):
        SkyRLRecipe.combine(p=mine)


@pytest.mark.parametrize(("one", "other"), [([1], [True]), ([{"a": 1}], [{"a": 1.0}]), ([1], [1, 1])])
def test_lists_that_python_calls_equal_are_a_conflict(one, other):
    (conflict,) = SkyRLRecipe.combine(a={"x": one}, b={"x": other}).conflicts
    assert conflict.path == "x"
    assert SkyRLRecipe.combine(a={"x": one}, b={"x": list(one)}).conflicts == ()


def test_parts_are_copies():
    mine = {"x": {"y": [1]}}
    recipe = SkyRLRecipe.combine(p=mine)
    mine["x"]["y"].append(2)
    assert recipe.settings == {"x": {"y": [1]}}


@given(PART, PART)
def test_without_conflicts_order_does_not_matter(one, two):
    forward, backward = SkyRLRecipe.combine(a=one, b=two), SkyRLRecipe.combine(b=two, a=one)
    assert bool(forward.conflicts) == bool(backward.conflicts)
    if not forward.conflicts:
        assert forward.settings == backward.settings
        assert set(dict(leaves(one))) - {p for p, v in leaves(one) if v == {}} <= set(
            dict(leaves(forward.settings))
        )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
