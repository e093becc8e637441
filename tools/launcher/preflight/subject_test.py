import sys

import pytest

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.subject import MAX_COUNT, PreflightSubject, UnreadableValue
from tools.launcher.preflight.testing.subjects import cluster_card, pinned_runtime

_RUNTIME = pinned_runtime()


def subject(content, **facts):
    return PreflightSubject(document=content, **facts)


def test_values_have_exactly_the_type_that_is_asked_for():
    one = subject({"a": {"int": 1, "true": True, "float": 1.0, "text": "1", "none": None}})
    assert one.value("a.int", int) == 1 and one.flag("a.true") and one.text("a.text") == "1"
    for path in ("a.true", "a.float", "a.text", "a.none", "a.missing", "a.int.below", "b"):
        with pytest.raises(UnreadableValue):
            one.positive(path)


def test_absent_and_null_are_the_same():
    content = subject({"a": None})
    assert not content.has("a") and not content.has("b") and content.get("a") is content.get("b") is None


@pytest.mark.parametrize("value", [0, -1, MAX_COUNT + 1])
def test_counts_have_bounds(value):
    with pytest.raises(UnreadableValue, match="a as a positive integer up to 1000000000"):
        subject({"a": value}).positive("a")


def test_an_absent_setting_has_the_default_of_the_runtime():
    path = "skyrl.trainer.train_batch_size"
    assert subject({}, runtime=_RUNTIME).positive(path) == 1024
    assert (
        subject({"skyrl": {"trainer": {"train_batch_size": None}}}, runtime=_RUNTIME).positive(path) == 1024
    )
    with pytest.raises(MissingFact, match="a runtime manifest"):
        subject({}).positive(path)
    with pytest.raises(
        UnreadableValue, match=r"skyrl\.x, which is missing and has no default in the runtime manifest"
    ):
        subject({}, runtime=_RUNTIME).positive("skyrl.x")
    with pytest.raises(UnreadableValue, match=r"iris\.x, which is missing"):
        subject({}, runtime=_RUNTIME).positive("iris.x")


def test_a_fact_that_no_card_holds_is_missing():
    assert subject({}, cluster=cluster_card(max_nodes=3)).cluster_fact("max_nodes") == 3
    with pytest.raises(MissingFact, match="max_nodes in the cluster card 'lab-cluster'"):
        subject({}, cluster=cluster_card()).cluster_fact("max_nodes")
    with pytest.raises(MissingFact, match="a model card with vocab_size"):
        subject({}).model_fact("vocab_size")


@pytest.mark.parametrize(
    ("content", "source_form"),
    [
        ({"runtime": {"entrypoint": ""}, "skyrl": {"context_budget": {}}}, True),
        ({"runtime": {"entrypoint": "m"}, "skyrl": {"config_groups": {}}}, True),
        ({"runtime": {"entrypoint": ""}, "skyrl": {}}, True),
        ({}, True),
        ({"runtime": {"entrypoint": "m"}, "skyrl": {}}, False),
    ],
)
def test_the_two_forms_are_told_apart(content, source_form):
    assert subject(content).source_form is source_form


def test_the_entry_point_has_one_name_in_both_forms():
    assert subject({}, runtime=_RUNTIME).entrypoint == "standard"
    assert subject({"skyrl": {"entrypoint": "fully_async"}}).entrypoint == "fully_async"
    module = "skyrl_train.entrypoints.fully_async"
    assert subject({"runtime": {"entrypoint": module}}, runtime=_RUNTIME).entrypoint == "fully_async"
    with pytest.raises(UnreadableValue, match="a registered module, it is 'x'"):
        _ = subject({"runtime": {"entrypoint": "x"}}, runtime=_RUNTIME).entrypoint


def test_only_records_are_data_sources():
    content = subject({"inputs": {"train_data": [{"uri": "a"}, 3], "validation_data": {"uri": "b"}}})
    assert list(content.data_sources()) == [("inputs.train_data[0]", {"uri": "a"})]


def test_texts_are_those_of_lists_and_mappings_and_no_keys():
    content = {"a": "x", "b": [{"c": "y", "d.e": ["z", "x", 1]}, None], "f": True}
    assert subject(content).texts == {"x", "y", "z"}


def test_a_document_alone_has_no_origin():
    with pytest.raises(MissingFact, match="the artifact graph, which a document alone does not carry"):
        subject({}).origin()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
