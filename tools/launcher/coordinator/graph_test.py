"""graph.json, artifact records and claims."""

import sys

import pytest

from tools.launcher.coordinator.artifact_record import (
    ArtifactMismatch,
    claim_output,
    read_record,
    reusable,
    write_run_record,
)
from tools.launcher.coordinator.bundle_for_test import DATA, EVALUATION, MODEL, RUN, RUN_OUTPUT, graph
from tools.launcher.coordinator.graph_file import GraphProblem, read_graph, steps_up_to
from tools.launcher.documents.canonical import canonical_json
from tools.launcher.rehearsal.standin import import_dataset, import_model
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.objects import FolderObjects


@pytest.fixture
def objects(tmp_path):
    return FolderObjects(ObjectRoot(tmp_path))


def _read(value):
    return read_graph(canonical_json(value))


def _step(address):
    return next(step for step in _read(graph()).steps if step.address == address)


def test_a_stage_takes_what_it_needs_in_order():
    read = _read(graph())
    assert [step.address for step in steps_up_to(read, "evaluate")] == [MODEL, DATA, RUN, EVALUATION]
    assert [step.address for step in steps_up_to(read, "rl")] == [MODEL, DATA, RUN]
    assert [step.address for step in steps_up_to(read, "import")] == [MODEL, DATA]


def _change(**changes):
    value = graph()
    value.update(changes)
    return value


def _swap():
    value = graph()
    value["steps"] = [value["steps"][2], *value["steps"][:2], value["steps"][3]]
    return value


def _drop_fingerprint():
    value = graph()
    del value["steps"][0]["fingerprint"]
    return value


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (_change(schema=2), "graph.json has schema 2, this coordinator reads 1"),
        (_change(steps=graph()["steps"] * 2), f"graph.json has {MODEL} twice"),
        (_swap(), f"graph.json: {RUN} comes before {MODEL}, which it reads"),
        (_change(stages={"rl": "x@1"}), "graph.json: stage 'rl' ends at x@1, which is no step"),
        (_drop_fingerprint(), "graph.json: steps.0.fingerprint: Field required"),
    ],
)
def test_a_graph_that_cannot_be_walked_is_refused(value, sentence):
    with pytest.raises(GraphProblem) as caught:
        _read(value)
    assert sentence in str(caught.value)


def test_what_is_no_graph_is_refused():
    with pytest.raises(GraphProblem, match=r"graph\.json: the file: Invalid JSON"):
        read_graph(b"{")


def test_an_unfinished_artifact_is_not_reused(objects):
    assert not reusable(_step(MODEL), read_record(objects, _step(MODEL)))


def test_the_rehearsals_records_are_read(objects):
    model, data = _step(MODEL), _step(DATA)
    import_model(
        objects.root.path(model.output_path),
        name=model.name,
        version=model.version,
        fingerprint=model.fingerprint,
        relative_path="hf",
        model_name="m",
        tokenizer_uri="t",
        tokenizer_revision="r",
    )
    import_dataset(
        objects.root.path(data.output_path),
        name=data.name,
        version=data.version,
        fingerprint=data.fingerprint,
        relative_paths=["train.parquet"],
        env_class="gsm8k",
    )
    assert reusable(model, read_record(objects, model))
    assert reusable(data, read_record(objects, data))
    with pytest.raises(ArtifactMismatch):
        reusable(model, read_record(objects, data))


def test_the_coordinators_own_record_is_read(objects):
    run = _step(RUN)
    write_run_record(objects, run, rehearsal=True, export="s3://b/e", attempt_id="0" * 12)
    record = read_record(objects, run)
    assert reusable(run, record)
    assert (record.export, record.rehearsal) == ("s3://b/e", True)


def test_an_adopted_step_is_compared_by_the_digits_on_record(objects):
    adopted = _step(MODEL).model_copy(update={"fingerprint": "1512cff8"})
    write_run_record(objects, _step(MODEL), rehearsal=True, export=None, attempt_id="0" * 12)
    assert reusable(adopted, read_record(objects, adopted))
    with pytest.raises(ArtifactMismatch):
        reusable(adopted.model_copy(update={"fingerprint": "1512cff9"}), read_record(objects, adopted))


@pytest.mark.parametrize("change", [{"fingerprint": "0" * 64}, {"version": "dev"}, {"kind": "dataset"}])
def test_another_artifact_is_named_with_what_was_wanted(objects, change):
    run = _step(RUN)
    write_run_record(objects, run.model_copy(update=change), rehearsal=True, export=None, attempt_id="0" * 12)
    with pytest.raises(ArtifactMismatch) as caught:
        reusable(run, read_record(objects, run))
    assert f"{run.output_path} holds lab/cat-count@" in str(caught.value)
    assert f"the plan wants {RUN} (skyrl, fingerprint a1a1a1a1)" in str(caught.value)


def test_a_record_that_cannot_be_read_is_no_excuse_to_overwrite(objects):
    objects.write(f"{RUN_OUTPUT}/.artifact.json", b"{")
    with pytest.raises(ArtifactMismatch) as caught:
        read_record(objects, _step(RUN))
    assert str(caught.value).startswith(
        f"{RUN_OUTPUT}: the record .artifact.json cannot be read: the record: Invalid JSON"
    )


def test_an_output_that_was_begun_is_of_one_fingerprint(objects):
    step = _step(RUN)
    claim_output(objects, step)
    claim_output(objects, step)
    changed = step.model_copy(update={"fingerprint": "ab" * 32})
    with pytest.raises(ArtifactMismatch) as caught:
        claim_output(objects, changed)
    assert str(caught.value) == (
        f"{step.output_path} was begun for another plan of {RUN} (fingerprint {step.fingerprint[:8]}, this plan "
        "has abababab), and its checkpoints are that plan's. Give the changed step a new version, or build "
        "the plan that began it"
    )
    # An allowed repin goes on where its earlier recipe began, and no other does.
    claim_output(objects, changed.model_copy(update={"compatible": ["cd" * 32, step.fingerprint]}))
    with pytest.raises(ArtifactMismatch):
        claim_output(objects, changed.model_copy(update={"compatible": ["cd" * 32]}))
    objects.write(f"{RUN_OUTPUT}/.claim.json", b"")
    with pytest.raises(ArtifactMismatch, match="fingerprint not to be read"):
        claim_output(objects, step)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
