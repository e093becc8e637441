"""What a document holds, and how a plan is written into it."""

import copy
import sys
from typing import Any

import pytest

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.repair_search.plan import (
    BATCH_SETTINGS,
    PATHS,
    PLACEMENT_SETTINGS,
    Current,
    Plan,
    changes_to,
    read_current,
)
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.testing.subjects import DELETED, changed, document, pinned_runtime

_NAMES = Plan._fields


def _subject(base: str = "moe", runtime: Any = None, **values: Any) -> PreflightSubject:
    content = changed(document(base), {PATHS[name]: value for name, value in values.items()})
    return PreflightSubject(document=content, runtime=runtime or pinned_runtime())


def _read(subject: PreflightSubject) -> Current:
    return read_current(subject, _NAMES)


def test_every_setting_has_a_place():
    assert tuple(PATHS) == Plan._fields == (*PLACEMENT_SETTINGS, *BATCH_SETTINGS)
    assert Plan._fields[-len(BATCH_SETTINGS)] == "train"


def test_the_values_of_a_document_are_read():
    current = _read(_subject())
    assert current.plan[:13] == (8, 8, False, True, 4, 8, 4, 8, 4, 1, 1, 8, 8)
    assert current.plan[13:18] == (64, 64, 1, 8, 1)
    assert (current.unusable, current.absent) == (frozenset(), frozenset({"workers"}))
    assert current.plan.gpus == 64


@pytest.mark.parametrize(
    ("value", "meant"),
    [(0, 1), (-8, 8), ("8", 8), ("many", 1), (7.6, 8), (0.2, 1), (float("nan"), 1), (float("inf"), 1),
     (True, 1), ([], 1), ({}, 1), (10**20, 10**9), (16**5000, 10**9)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_an_unusable_value_stands_for_the_count_that_was_meant(value, meant):
    current = _read(_subject(engines=value))
    assert current.plan.engines == meant and current.unusable == {"engines"}
    assert current.moved("engines", current.plan)


def test_a_count_that_the_launcher_converts_is_usable():
    current = _read(_subject(num_nodes="8"))
    assert current.plan.num_nodes == 8 and not current.unusable


def test_what_is_left_out_follows_the_allocation():
    absent = ("policy_nodes", "policy_width", "reference_nodes", "reference_width", "engines")
    current = _read(_subject(**dict.fromkeys(absent, DELETED), dp=1))
    assert current.absent == {*absent, "workers"}
    assert [getattr(current.plan, name) for name in absent] == [8, 8, 8, 8, 64]
    smaller = current.plan._replace(num_nodes=4, policy_nodes=4)
    assert not current.moved("policy_nodes", smaller) and current.moved("reference_nodes", smaller)
    narrow = current.plan._replace(gpus_per_node=4, policy_width=4)
    assert not current.moved("policy_width", narrow) and current.moved("reference_width", narrow)


def test_what_is_left_out_elsewhere_has_the_runtimes_default():
    current = _read(_subject(train=DELETED))
    assert "train" in current.absent and not current.moved("train", current.plan)
    assert _read(_subject(num_nodes=DELETED)).unusable == {"num_nodes"}


def test_a_section_that_is_no_mapping_and_a_switch_that_is_none_stop_the_reading():
    for changes in (
        {"skyrl.generator": 3},
        {"skyrl.trainer.placement": None},
        {PATHS["colocate_all"]: "yes"},
    ):
        content = changed(document("moe"), changes)
        with pytest.raises(UnreadableValue):
            _read(PreflightSubject(document=content, runtime=pinned_runtime()))
    with pytest.raises(MissingFact):
        _read(PreflightSubject(document=changed(document("moe"), {PATHS["train"]: DELETED})))


def test_changes_are_written_without_touching_the_document():
    subject = _subject(engines=[3])
    before = copy.deepcopy(subject.document)
    current = _read(subject)
    changes = changes_to(subject, current, current.plan._replace(num_nodes=9, engines=5), _NAMES)
    assert [(change.path, change.old, change.new) for change in changes] == [
        (PATHS["num_nodes"], "8", 9),
        (PATHS["engines"], "a list", 5),
    ]
    after = subject.with_values({change.path: change.new for change in changes}).document
    assert subject.document == before
    assert after == changed(before, {PATHS["num_nodes"]: 9, PATHS["engines"]: 5})
    assert after["inputs"] is subject.document["inputs"]


def test_sections_that_are_missing_are_made():
    subject = PreflightSubject(document={"skyrl": {"trainer": None}})
    (change,) = changes_to(
        subject,
        Current(Plan(*[1] * 19), frozenset({"workers"}), frozenset(), filled=False),
        Plan(*[1] * 19),
        ("workers",),
    )
    assert subject.with_values({change.path: change.new}).document == {
        "skyrl": {"trainer": {"fully_async": {"num_parallel_generation_workers": 1}}}
    }


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
