import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.launcher.compare.compare_testlib import example, with_values
from tools.launcher.compare.fields import field_changes, with_changes
from tools.launcher.documents.canonical import canonical_json

SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, -0.0]) | st.text(max_size=3)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.text(max_size=2), VALUES, max_size=4)


@given(DOCUMENTS)
def test_a_document_has_no_difference_from_itself(document):
    assert field_changes(document, dict(reversed(document.items()))) == ()


@given(DOCUMENTS, DOCUMENTS)
def test_changes_lead_from_one_to_the_other_and_no_equal_digest_hides_one(before, after):
    changes = field_changes(before, after)
    # Canonical JSON keeps 1, 1.0 and true apart, as digests do.
    assert canonical_json(with_changes(before, changes)) == canonical_json(after)
    assert (changes == ()) == (canonical_json(before) == canonical_json(after))


@given(DOCUMENTS, DOCUMENTS)
def test_the_other_way_round_every_change_is_turned(before, after):
    def places(changes, added, removed):
        return {
            (change.path, {"added": added, "removed": removed}.get(change.kind, "changed"))
            for change in changes
        }

    forth, back = field_changes(before, after), field_changes(after, before)
    assert places(forth, "+", "-") == places(back, "-", "+")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("skyrl.generator.inference_engine_tensor_parallel_size", 4),
        ("run.seed", 18),
        ("run.seed", 17.0),
        ("iris.allocation.memory", None),
        ("skyrl.trainer.algorithm.use_kl_loss", 0),
    ],
)
def test_one_mutation_is_exactly_that_field(path, value):
    document = example("smoke-fsdp")
    assert [change.path for change in field_changes(document, with_values(document, {path: value}))] == [path]


def test_places_are_written_as_preflight_writes_them():
    before = {"inputs": {"train_data": [{"uri": "a"}, {"uri": "b"}]}, "gone": {"x": 1}}
    after = {"inputs": {"train_data": [{"uri": "c"}]}, "new": None}
    assert [(change.path, change.kind) for change in field_changes(before, after)] == [
        ("gone", "removed"),
        ("inputs.train_data[0].uri", "changed"),
        ("inputs.train_data[1]", "removed"),
        ("new", "added"),
    ]


def test_a_number_that_is_none_equals_itself():
    assert field_changes({"x": math.nan}, {"x": float("nan")}) == ()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
