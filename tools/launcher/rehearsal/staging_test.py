"""Stand-in artifacts and their staging."""

import json
import sys

import numpy as np
import pytest

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.rehearsal.artifact_record import ArtifactMissing, artifact_of
from tools.launcher.rehearsal.document import read_document
from tools.launcher.rehearsal.document_for_test import (
    DATA_FINGERPRINT,
    REVISION,
    document,
    document_bytes,
    import_inputs,
)
from tools.launcher.rehearsal.staging import (
    StagingError,
    load_model,
    load_rows,
    on_node,
    stage_data,
    stage_model,
    weights_of,
)
from tools.launcher.rehearsal.standin import StandInError, import_dataset, import_model, read_rows, split_of
from tools.launcher.store.locations import ObjectRoot

MODEL_FOLDER = "local://marin/lab/qwen/2026.09.01"
DATA_FOLDER = "local://marin/lab/cats/2026.09.01"


@pytest.fixture
def root(tmp_path):
    object_root = ObjectRoot(tmp_path / "objects")
    import_inputs(object_root)
    return object_root


def _inputs(**changes):
    return read_document(document_bytes(**changes), source="launch.yaml").inputs


def test_the_model_is_loaded_through_the_declared_path(root, tmp_path):
    model, node = _inputs().model, tmp_path / "node"
    stage_model(model, node, root)
    weights, loaded = load_model(model, node)
    staged = node / "tmp/marinskyrl/models/qwen"
    assert sorted(path.name for path in staged.iterdir()) == [
        "config.json",
        "model.safetensors",
        "tokenizer_config.json",
    ]
    assert loaded.declared_path == "/tmp/marinskyrl/models/qwen"
    assert loaded.source_uri == f"{MODEL_FOLDER}/hf/step-32"
    assert loaded.identity == "lab/qwen@2026.09.01:1512cff8"
    assert loaded.weights_sha256 == sha256_hex((staged / "model.safetensors").read_bytes())
    assert (loaded.tokenizer_revision, loaded.model_name) == (REVISION, "qwen3-0.6b")
    # What counts is the staged file, not the source.
    (root.path(MODEL_FOLDER) / "hf/step-32/model.safetensors").write_bytes(b"gone")
    assert np.array_equal(load_model(model, node)[0], weights)


def test_the_same_fingerprint_makes_the_same_model(root, tmp_path):
    other = ObjectRoot(tmp_path / "other")
    import_inputs(other)
    for folder in (MODEL_FOLDER, DATA_FOLDER):
        names = sorted(path.relative_to(root.path(folder)) for path in root.path(folder).rglob("*"))
        assert names == sorted(path.relative_to(other.path(folder)) for path in other.path(folder).rglob("*"))
        for name in names:
            if (root.path(folder) / name).is_file():
                assert (root.path(folder) / name).read_bytes() == (other.path(folder) / name).read_bytes()


def test_data_files_are_staged_and_read(root, tmp_path):
    inputs, node = _inputs(), tmp_path / "node"
    stage_data([*inputs.train_data, *inputs.validation_data], node, root)
    assert len(load_rows(inputs.train_data, node, "cat_count")) == 512
    assert len(load_rows(inputs.validation_data, node, "cat_count")) == 64
    header = json.loads((node / "tmp/marinskyrl/data/cats/train.parquet").read_bytes().splitlines()[0])
    assert header["slipway_rehearsal"] is True


def test_a_selection_draws_up_to_its_limit_from_its_seed(root, tmp_path):
    def drawn(limit, seed):
        source = document()["inputs"]["train_data"][0] | {
            "kind": "tasktrove_parquet",
            "verifier_ref": "verify-tool@1.4.0",
            "selection": {"sources": ["swe"], "limit": limit, "seed": seed},
        }
        inputs, node = _inputs(inputs__train_data=[source]), tmp_path / "node"
        stage_data(inputs.train_data, node, root)
        return load_rows(inputs.train_data, node, "cat_count")

    every = drawn(None, 7)
    assert len(every) == 512 and drawn(1000, 7) == every
    some = drawn(100, 7)
    assert len(some) == 100 and some == drawn(100, 7) and some != drawn(100, -8)
    assert [row for row in every if row in some][:3] == list(some[:3])


def test_records_say_rehearsal_and_hold_every_file(root):
    uri, record = artifact_of(f"{MODEL_FOLDER}/hf/step-32", root)
    assert (uri, record.rehearsal, record.kind) == (MODEL_FOLDER, True, "hf_model")
    assert sorted(record.files) == [
        "hf/step-32/config.json",
        "hf/step-32/model.safetensors",
        "hf/step-32/tokenizer_config.json",
    ]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"inputs__model__identity": "lab/qwen@2026.09.01:deadbeef"},
            "holds lab/qwen@2026.09.01:1512cff8, the document declares lab/qwen@2026.09.01:deadbeef",
        ),
        (
            {"inputs__model__identity": "lab/other@2026.09.01:1512cff8"},
            "declares lab/other@2026.09.01:1512cff8",
        ),
        (
            {"inputs__model__uri": "local://marin/nobody/1"},
            "inputs.model: no finished artifact at local://marin/nobody/1 or above it. Run its import step first",
        ),
        (
            {"inputs__model__uri": f"{MODEL_FOLDER}/hf/step-99"},
            "has no file 'hf/step-99'; it has ['hf/step-32/",
        ),
        ({"inputs__model__local_path": "/tmp/../etc"}, "the local path '/tmp/../etc' contains '..'"),
    ],
)
def test_what_is_not_the_declared_model_is_not_staged(root, tmp_path, changes, sentence):
    with pytest.raises(StagingError) as caught:
        stage_model(_inputs(**changes).model, tmp_path / "node", root)
    assert sentence in str(caught.value)


def test_a_changed_file_is_not_staged(root, tmp_path):
    (root.path(MODEL_FOLDER) / "hf/step-32/config.json").write_bytes(b"{}")
    with pytest.raises(StagingError, match=r"its record says [0-9a-f]{12}\. The artifact was changed"):
        stage_model(_inputs().model, tmp_path / "node", root)


def test_a_missing_file_is_named(root, tmp_path):
    (root.path(MODEL_FOLDER) / "hf/step-32/config.json").unlink()
    with pytest.raises(StagingError, match=r"hf/step-32/config\.json: No such file"):
        stage_model(_inputs().model, tmp_path / "node", root)


def test_another_tokenizer_is_refused(root, tmp_path):
    model = _inputs(inputs__model__tokenizer_revision="0" * 40).model
    stage_model(model, tmp_path / "node", root)
    with pytest.raises(
        StagingError, match=f"the staged tokenizer has revision '{REVISION}', inputs.model.token"
    ):
        load_model(model, tmp_path / "node")


def test_a_real_model_is_not_loaded(root, tmp_path):
    model, node = _inputs().model, tmp_path / "node"
    stage_model(model, node, root)
    config = on_node(node, model.local_path) / "config.json"
    config.write_text('{"model_type": "qwen3"}')
    with pytest.raises(StagingError, match=r"is a real one\. A rehearsal loads stand-ins only"):
        load_model(model, node)


def test_a_record_that_is_not_a_stand_ins_is_refused(root):
    record = root.path(MODEL_FOLDER) / ".artifact.json"
    record.write_text(json.dumps({**json.loads(record.read_bytes()), "rehearsal": False}))
    with pytest.raises(ArtifactMissing, match="is not the record of a stand-in artifact: rehearsal"):
        artifact_of(MODEL_FOLDER, root)


def test_two_artifacts_in_one_place_are_refused(root, tmp_path):
    inputs = _inputs()
    other = inputs.train_data[0].model_copy(update={"identity": "team/cats@2026.09.01:00000000"})
    with pytest.raises(StagingError, match=r"are both staged at /tmp/marinskyrl/data/cats\. Rename one"):
        stage_data([*inputs.train_data, other], tmp_path / "node", root)


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd"])
def test_a_relative_path_stays_inside(root, tmp_path, path):
    source = _inputs().train_data[0].model_copy(update={"relative_path": path})
    with pytest.raises(StagingError, match="leaves the artifact"):
        stage_data([source], tmp_path / "node", root)
    with pytest.raises(StandInError, match="leaves the artifact"):
        import_dataset(
            tmp_path / "d",
            name="n",
            version="v",
            fingerprint="0" * 8,
            relative_paths=[path],
            env_class="gsm8k",
        )


def test_data_of_another_environment_is_refused(root, tmp_path):
    inputs, node = _inputs(), tmp_path / "node"
    stage_data(inputs.train_data, node, root)
    with pytest.raises(StagingError, match="was made for env_class 'cat_count', the document says 'gsm8k'"):
        load_rows(inputs.train_data, node, "gsm8k")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"PAR1\x00\x01", "x is not a stand-in data file"),
        (b"", "x is not a stand-in data file"),
        (b'{"rows": 1}\n', "its first line lacks the mark"),
        (
            b'{"slipway_rehearsal": true, "env_class": "gsm8k", "rows": 2}\n{"prompt": "p", "answer": 1}\n',
            "x has 1 rows, its header says 2. Import it again",
        ),
    ],
)
def test_what_is_no_stand_in_data_is_refused(tmp_path, data, sentence):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(StandInError) as caught:
        read_rows(tmp_path / "x", "gsm8k")
    assert sentence in str(caught.value)


def test_weights_that_are_none_are_refused():
    with pytest.raises(StagingError, match="m holds no rehearsal policy"):
        weights_of(b"\x00" * 16, "m")


def test_a_dataset_without_files_is_refused(tmp_path):
    with pytest.raises(StandInError, match=r"dataset n@v declares no file\. Give at least one relative path"):
        import_dataset(
            tmp_path, name="n", version="v", fingerprint="0" * 8, relative_paths=[], env_class="gsm8k"
        )


def test_the_record_comes_last(tmp_path, monkeypatch):
    written = []
    real = import_model.__globals__["write_model"]
    monkeypatch.setitem(
        import_model.__globals__,
        "write_model",
        lambda *a, **k: (real(*a, **k), written.append(_has_record(tmp_path))),
    )
    import_model(
        tmp_path,
        name="n",
        version="v",
        fingerprint=DATA_FINGERPRINT,
        relative_path="",
        model_name="m",
        tokenizer_uri="t",
        tokenizer_revision="r",
    )
    assert written == [False]
    assert _has_record(tmp_path)


def _has_record(folder):
    return (folder / ".artifact.json").exists()


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train.parquet", "train"),
        ("a/validation.parquet", "validation"),
        ("test.jsonl", "validation"),
        ("x", "train"),
    ],
)
def test_a_files_name_says_its_split(name, split):
    assert split_of(name) == split


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
