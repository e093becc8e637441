"""graph.json, artifact records and the commands made from steps."""

import json
import sys
from pathlib import Path

import pytest

from tools.launcher.coordinator.artifact_record import (
    ArtifactMismatch,
    claim_output,
    read_record,
    reusable,
    write_run_record,
)
from tools.launcher.coordinator.bundle_for_test import DATA, EVALUATION, MODEL, RUN, graph
from tools.launcher.coordinator.graph_file import GraphProblem, read_graph, steps_up_to
from tools.launcher.coordinator.runtime import NoMaker, marinskyrl_runtime, rehearsal_runtime
from tools.launcher.documents.canonical import canonical_json
from tools.launcher.rehearsal.standin import import_dataset, import_model


def _read(value):
    return read_graph(canonical_json(value))


def _step(address):
    return next(step for step in _read(graph()).steps if step.address == address)


def test_a_stage_takes_what_it_needs_in_order():
    read = _read(graph())
    assert [step.address for step in steps_up_to(read, "evaluate")] == [MODEL, DATA, RUN, EVALUATION]
    assert [step.address for step in steps_up_to(read, "rl")] == [MODEL, DATA, RUN]
    assert [step.address for step in steps_up_to(read, "import")] == [DATA]


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


def test_an_unfinished_artifact_is_not_reused(tmp_path):
    assert not reusable(_step(MODEL), read_record(tmp_path))


def test_the_rehearsals_records_are_read(tmp_path):
    model, data = _step(MODEL), _step(DATA)
    import_model(
        tmp_path / "m",
        name=model.name,
        version=model.version,
        fingerprint=model.fingerprint,
        relative_path="hf",
        model_name="m",
        tokenizer_uri="t",
        tokenizer_revision="r",
    )
    import_dataset(
        tmp_path / "d",
        name=data.name,
        version=data.version,
        fingerprint=data.fingerprint,
        relative_paths=["train.parquet"],
        env_class="gsm8k",
    )
    assert reusable(model, read_record(tmp_path / "m"))
    assert reusable(data, read_record(tmp_path / "d"))
    with pytest.raises(ArtifactMismatch):
        reusable(model, read_record(tmp_path / "d"))


def test_the_coordinators_own_record_is_read(tmp_path):
    run = _step(RUN)
    write_run_record(tmp_path, run, rehearsal=True, export="s3://b/e", attempt_id="0" * 12)
    record = read_record(tmp_path)
    assert reusable(run, record)
    assert (record.export, record.rehearsal) == ("s3://b/e", True)


def test_an_adopted_step_is_compared_by_the_digits_on_record(tmp_path):
    adopted = _step(MODEL).model_copy(update={"fingerprint": "1512cff8"})
    write_run_record(tmp_path, _step(MODEL), rehearsal=True, export=None, attempt_id="0" * 12)
    assert reusable(adopted, read_record(tmp_path))
    with pytest.raises(ArtifactMismatch):
        reusable(adopted.model_copy(update={"fingerprint": "1512cff9"}), read_record(tmp_path))


@pytest.mark.parametrize("change", [{"fingerprint": "0" * 64}, {"version": "dev"}, {"kind": "dataset"}])
def test_another_artifact_is_named_with_what_was_wanted(tmp_path, change):
    run = _step(RUN)
    write_run_record(
        tmp_path, run.model_copy(update=change), rehearsal=True, export=None, attempt_id="0" * 12
    )
    with pytest.raises(ArtifactMismatch) as caught:
        reusable(run, read_record(tmp_path))
    assert f"{run.output_path} holds lab/cat-count@" in str(caught.value)
    assert f"the plan wants {RUN} (skyrl, fingerprint a1a1a1a1)" in str(caught.value)


def test_a_record_that_cannot_be_read_is_no_excuse_to_overwrite(tmp_path):
    (tmp_path / ".artifact.json").write_text("{")
    with pytest.raises(
        ArtifactMismatch, match=r"the record \.artifact\.json cannot be read: the record: Invalid"
    ):
        read_record(tmp_path)


def test_the_rehearsals_commands():
    runtime = rehearsal_runtime(("python", "-m", "r"), "file:///tmp/o")
    assert runtime.launch(Path("/a/launch.yaml")) == (
        "python",
        "-m",
        "r",
        "iris",
        "launch",
        "--object-root=file:///tmp/o",
        "--config",
        "/a/launch.yaml",
    )
    model = runtime.import_artifact(_step(MODEL), "Qwen/Q", "abc")
    assert {
        "--kind=hf_model",
        "--relative-path=hf/step-32",
        "--tokenizer-revision=abc",
        "--card=qwen3-0.6b",
    } <= {*model}
    data = runtime.import_artifact(_step(DATA), "Qwen/Q", "abc")
    assert [part for part in data if part.startswith(("--env", "--rel"))] == [
        "--env-class=cat_count",
        "--relative-path=train.parquet",
        "--relative-path=validation.parquet",
    ]
    evaluation = runtime.evaluate(_step(EVALUATION), "s3://b/e")
    assert {"--export=s3://b/e", "--episodes=32", "--seed=5", "--env-class=cat_count"} <= {*evaluation}


def test_an_evaluation_that_lacks_a_number_is_named():
    step = _step(EVALUATION).model_copy(update={"config": json.loads('{"env_class": "gsm8k", "seed": 1}')})
    with pytest.raises(NoMaker, match=f"step {EVALUATION}: its config lacks 'episodes'"):
        rehearsal_runtime(("r",), "file:///o").evaluate(step, "s3://b/e")


def test_the_real_runtime_launches_and_makes_nothing_else():
    runtime = marinskyrl_runtime()
    assert runtime.launch(Path("/a/launch.yaml")) == (
        "marinskyrl",
        "iris",
        "launch",
        "--config",
        "/a/launch.yaml",
    )
    with pytest.raises(
        NoMaker, match=r"the MarinSkyRL launcher makes no hf_model\. Import it first, or adopt"
    ):
        runtime.import_artifact(_step(MODEL), "t", "r")
    with pytest.raises(NoMaker, match="makes no evaluate"):
        runtime.evaluate(_step(EVALUATION), "s3://b/e")


def test_an_output_that_was_begun_is_of_one_fingerprint(tmp_path):
    step = _step(RUN)
    claim_output(tmp_path / "run", step)
    claim_output(tmp_path / "run", step)
    changed = step.model_copy(update={"fingerprint": "ab" * 32})
    with pytest.raises(ArtifactMismatch) as caught:
        claim_output(tmp_path / "run", changed)
    assert str(caught.value) == (
        f"{step.output_path} was begun for another plan of {RUN} (fingerprint {step.fingerprint[:8]}, this plan "
        "has abababab), and its checkpoints are that plan's. Give the changed step a new version, or build "
        "the plan that began it"
    )
    (tmp_path / "run" / ".claim.json").write_bytes(b"")
    with pytest.raises(ArtifactMismatch, match="fingerprint not to be read"):
        claim_output(tmp_path / "run", step)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
