"""The preflight binary on a real experiment: its outputs, and every way to be refused."""

import json
import sys
from pathlib import Path

import pytest

from tools.launcher.cli.preflight_main import OUTPUTS, main
from tools.launcher.documents.canonical import digest_of
from tools.launcher.documents.strict_yaml import load_yaml_mapping

EXPERIMENT = Path("experiments/gsm8k_grpo/experiment.py")


def preflight(tmp_path: Path, *extra: str, source: str | None = None, **replaced: str) -> int:
    main_file = EXPERIMENT
    if source is not None:
        main_file = tmp_path / "experiment.py"
        main_file.write_text(source)
    flags = {
        "label": "//experiments/gsm8k_grpo:gsm8k_grpo",
        "main": str(main_file),
        "version": "2026.09.21",
        "stage": "rl",
        "option": "scale=smoke",
        "runtime": "third_party/marinskyrl/81ae0ef7.yaml",
        "cluster": "third_party/clusters/cw_us_east_02a.yaml",
        "model": "third_party/models/qwen3_0_6b.yaml",
        "dataset": "third_party/datasets/gsm8k.yaml",
        **{f"{name}_out": str(tmp_path / f"out.{name}") for name in OUTPUTS},
        **replaced,
    }
    return main([*(f"--{name}={value}" for name, value in flags.items()), *extra])


def changed(*replacements: tuple[str, str]) -> str:
    source = EXPERIMENT.read_text()
    for old, new in replacements:
        assert old in source
        source = source.replace(old, new)
    return source


def outputs(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in tmp_path.glob("out.*"))


def test_a_good_experiment_writes_its_five_outputs(tmp_path, capsys):
    assert preflight(tmp_path) == 0
    assert outputs(tmp_path) == sorted(f"out.{name}" for name in OUTPUTS)
    document = load_yaml_mapping((tmp_path / "out.launch").read_bytes(), source="launch")
    _, launch_line = (tmp_path / "out.digest").read_text().splitlines()
    assert launch_line == f"launch sha256:{digest_of(document)}"
    plan = json.loads((tmp_path / "out.plan").read_text())
    assert plan["preflight"]["verdict"] == "accept" and "GEO-08" in plan["preflight"]["passed"]
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[0]
        == "//experiments/gsm8k_grpo:gsm8k_grpo 2026.09.21: 1 node x 8 H100 on cw-us-east-02a, stage rl"
    )
    assert len(lines) == 2


def test_the_outputs_are_the_same_every_time(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir(), second.mkdir()
    assert preflight(first) == preflight(second) == 0
    for name in OUTPUTS:
        assert (first / f"out.{name}").read_bytes() == (second / f"out.{name}").read_bytes()
        assert str(tmp_path) not in (first / f"out.{name}").read_text()


def test_one_broken_number_is_refused_with_id_place_numbers_and_repair(tmp_path, capsys):
    source = changed(("num_inference_engines=8", "num_inference_engines=7"))
    assert preflight(tmp_path, source=source) == 1
    text = capsys.readouterr().err
    assert "error: GEO-08 at skyrl.generator.num_inference_engines" in text
    assert "repair: " in text and "8" in text and "7" in text
    assert outputs(tmp_path) == []


def test_three_broken_numbers_are_three_violations_of_one_run(tmp_path, capsys):
    source = changed(
        ("num_inference_engines=8", "num_inference_engines=7"),
        ("policy_mini_batch_size=16", "policy_mini_batch_size=12"),
        ("version=inputs.version", 'version="2026.13.01"'),
    )
    assert preflight(tmp_path, "--format=json", source=source) == 1
    report = json.loads(capsys.readouterr().err)
    assert report["verdict"] == "reject"
    ids = {item["id"] for item in report["violations"] if item["severity"] == "error"}
    assert {"GEO-08", "BAT-01", "ART-02"} <= ids
    assert outputs(tmp_path) == []


@pytest.mark.parametrize(
    ("replacement", "sentence"),
    [
        (("import Literal", "import Litral"), "experiment.py:3: ImportError: cannot import name 'Litral'"),
        (("def main(", "def main(("), "experiment.py:"),
        (("@rl_build_options\n", ""), "has no main() decorated with @rl_build_options. Add the decorator"),
        (
            ("num_nodes=1,\n            gpus", "num_nodes=True,\n            gpus"),
            "SkyRLTopology.num_nodes: Input should be a valid integer, got True",
        ),
        (("seed=17,", "seed=17, sead=18,"), "SkyRLSpec.sead: Extra inputs are not permitted, got 18"),
        (('inputs.dataset("gsm8k")', 'inputs.dataset("gsm9k")'), "no card named 'gsm9k' is declared"),
        (('relative_path="hf/step-32"', "relative_path=str(1 // 0)"), "ZeroDivisionError"),
        (
            ("return skyrl_step(spec, execution, export_hf=True)", "return data"),
            "an experiment has exactly one skyrl_step, this graph has 0 (none)",
        ),
    ],
)
def test_a_wrong_experiment_ends_in_a_sentence_that_names_the_place(tmp_path, capsys, replacement, sentence):
    source = changed(replacement)
    stage = {"stage": "import"} if "return data" in replacement[1] else {}
    assert preflight(tmp_path, source=source, **stage) == 1
    text = capsys.readouterr().err
    assert text.startswith("error: //experiments/gsm8k_grpo:gsm8k_grpo: ") and sentence in text
    assert "Traceback" not in text
    assert outputs(tmp_path) == []


@pytest.mark.parametrize(
    ("replaced", "sentence"),
    [
        ({"option": "scale=huge"}, "option scale='huge' is not one of smoke, full"),
        ({"stage": "evaluate"}, "stage 'evaluate' does not end this graph. Its stages: rl"),
        ({"cluster": "third_party/models/qwen3_0_6b.yaml"}, "kind is 'model', expected 'cluster'"),
    ],
)
def test_a_wrong_declaration_ends_in_a_sentence(tmp_path, capsys, replaced, sentence):
    assert preflight(tmp_path, **replaced) == 1
    assert sentence in capsys.readouterr().err


def test_a_cluster_without_storage_is_refused(tmp_path, capsys):
    card = tmp_path / "cluster.yaml"
    card.write_text("kind: cluster\nname: bare\n")
    assert preflight(tmp_path, cluster=str(card)) == 1
    assert "cluster card 'bare' has no marin_prefix or no temp_bucket" in capsys.readouterr().err


def test_experiments_leave_nothing_behind_in_the_process(tmp_path):
    modules, path = set(sys.modules), list(sys.path)
    assert preflight(tmp_path) == 0
    assert not [name for name in set(sys.modules) - modules if "experiment" in name]
    assert set(sys.path) - set(path) <= {"."}


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
