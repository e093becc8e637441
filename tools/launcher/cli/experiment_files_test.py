"""Files of an experiment that are missing, damaged, or another's: a sentence each, and nothing is done."""

import argparse
import json
import sys
from pathlib import Path

import pytest

from tools.launcher.cli.experiment_files import read_experiment_files
from tools.launcher.cli.preflight_action import main
from tools.launcher.cli.runfiles_paths import WrongFile
from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.store.bundles import BundleError

CLUSTER = "third_party/clusters/local.yaml"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The files of experiments/cat_count, by flag."""
    folder = tmp_path_factory.mktemp("built")
    files = {name: folder / name for name in ("launch", "digest", "graph", "plan")}
    status = main(
        [
            "--label=//experiments/cat_count:cat_count",
            "--main=experiments/cat_count/experiment.py",
            "--version=2026.11.30",
            "--stage=rl",
            "--option=scale=smoke",
            "--runtime=third_party/marinskyrl/81ae0ef7.yaml",
            f"--cluster={CLUSTER}",
            "--model=third_party/models/qwen3_0_6b.yaml",
            "--dataset=third_party/datasets/cat_count.yaml",
            *(f"--{name}_out={path}" for name, path in files.items()),
        ]
    )
    assert status == 0
    return {**{name: str(path) for name, path in files.items()}, "cluster": CLUSTER}


def read(built, **replaced):
    return read_experiment_files(argparse.Namespace(**{**built, **replaced}))


def test_what_a_build_made_is_read(built):
    files = read(built)
    assert files.graph["experiment_name"] == "cat_count"
    assert files.plan.experiment == "//experiments/cat_count:cat_count"
    assert files.cluster.scheduler == "embedded"


@pytest.mark.parametrize(
    ("flag", "content", "sentence"),
    [
        (
            "graph",
            b"",
            " is not of this launcher's making: Expecting value: line 1 column 1 (char 0). Build the",
        ),
        ("graph", b"[]", " is not of this launcher's making: it is a JSON list, not an object. Build the"),
        (
            "graph",
            b"{}",
            " is not of this launcher's making: experiment_name is None. Build the experiment again",
        ),
        ("graph", b"\xff", " is not of this launcher's making: 'utf-8' codec can't decode"),
        (
            "plan",
            b"[]",
            " is not of this launcher's making: Input should be an object. Build the experiment again",
        ),
        ("plan", b"{}", ": Field required. Build the experiment again"),
    ],
)
def test_a_file_of_another_making(built, tmp_path, flag, content, sentence):
    wrong = tmp_path / "wrong"
    wrong.write_bytes(content)
    with pytest.raises(WrongFile) as caught:
        read(built, **{flag: str(wrong)})
    assert str(caught.value).startswith(f"{wrong} is not of") and sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_graph_that_lacks_its_default_stage(built, tmp_path):
    graph = json.loads(Path(built["graph"]).read_bytes())
    del graph["default_stage"]
    wrong = tmp_path / "graph.json"
    wrong.write_text(json.dumps(graph))
    with pytest.raises(WrongFile, match="default_stage is None"):
        read(built, graph=str(wrong))


@pytest.mark.parametrize("flag", ["launch", "digest", "graph", "plan", "cluster"])
def test_a_file_that_is_not_there_or_is_a_folder(built, tmp_path, flag):
    with pytest.raises(
        WrongFile, match="there is no such file, and none in the runfiles. Build the experiment"
    ):
        read(built, **{flag: "nowhere/at/all"})
    with pytest.raises(WrongFile) as caught:
        read(built, **{flag: str(tmp_path)})
    assert str(caught.value) == f"{tmp_path}: Is a directory. Name a file that the experiment's build made"


def test_an_error_of_the_card_names_the_card(built, tmp_path):
    card = tmp_path / "card.yaml"
    card.write_bytes(b"")
    with pytest.raises(DocumentError) as caught:
        read(built, cluster=str(card))
    assert str(caught.value).startswith(f"{card}: the document is empty")


def test_another_document_than_the_digest_says(built, tmp_path):
    other = tmp_path / "launch.yaml"
    other.write_text(Path(built["launch"]).read_text().replace("seed: 17", "seed: 18"))
    with pytest.raises(BundleError, match="The reviewed and the submitted bytes differ"):
        read(built, launch=str(other))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
