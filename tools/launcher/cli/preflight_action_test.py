"""The preflight binary on a real experiment: its outputs, and every way to be refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.launcher.cli.preflight_action import OUTPUTS, main
from tools.launcher.cli.preflight_request import expanded
from tools.launcher.documents.canonical import digest_of
from tools.launcher.documents.strict_yaml import load_yaml_mapping

EXPERIMENT = Path("experiments/gsm8k_grpo/experiment.py")


def arguments(tmp_path: Path, source: str | None = None, **replaced: str) -> list[str]:
    """The action's arguments for gsm8k_grpo, with its source or single flags replaced."""
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
    return [f"--{name}={value}" for name, value in flags.items()]


def preflight(tmp_path: Path, *extra: str, source: str | None = None, **replaced: str) -> int:
    return main([*arguments(tmp_path, source, **replaced), *extra])


def changed(*replacements: tuple[str, str]) -> str:
    source = EXPERIMENT.read_text()
    for old, new in replacements:
        assert old in source
        source = source.replace(old, new)
    return source


def outputs(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in tmp_path.glob("out.*"))


def test_a_good_experiment_writes_its_four_outputs(tmp_path, capsys):
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
    assert (
        lines[2] == "warning: EXE-17 at artifacts.checkpoint_root"
    )  # the cluster's bucket is in another region
    assert len(lines) == 5


def test_the_plan_names_the_smoke(tmp_path):
    assert preflight(tmp_path, smoke="//experiments/cat_count:cat_count") == 0
    assert json.loads((tmp_path / "out.plan").read_text())["smoke"] == "//experiments/cat_count:cat_count"


def test_the_plan_has_the_memory_estimate(tmp_path):
    assert preflight(tmp_path) == 0
    memory = json.loads((tmp_path / "out.plan").read_text())["memory"]
    assert memory["training, per GPU"] == "1.19 GB"  # 596049920 parameters * 16 bytes / 8 GPUs
    assert memory["of a GPU"] == "80 GB" and "estimate" in memory["how sure"]


def test_warnings_are_printed_and_let_the_plan_pass(tmp_path, capsys):
    source = changed(('"epochs": 1, "max_steps": steps', '"epochs": 1, "max_steps": 100000'))
    assert preflight(tmp_path, source=source) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "warning: BAT-17 at skyrl.trainer.max_steps"
    assert lines[4].startswith("    repair: ")
    assert len(outputs(tmp_path)) == len(OUTPUTS)


def test_a_fix_that_an_experiment_relies_on_is_in_the_runtime_and_no_identity(tmp_path, capsys):
    relying = changed(
        ("        seed=17,\n", '        seed=17,\n        required_fixes=("moe-sync-order",),\n')
    )
    assert preflight(tmp_path, source=relying) == 1
    error = capsys.readouterr().err
    assert (
        "BKD-30" in error and "required fix 'moe-sync-order' is not among those of runtime 81ae0ef7" in error
    )

    runtime = tmp_path / "runtime.yaml"
    fix = "fixes:\n  - {id: moe-sync-order, commit: 0a1b2c3d, what: weights of experts arrive in order}\n"
    pinned = Path("third_party/marinskyrl/81ae0ef7.yaml").read_text()
    runtime.write_text(pinned.replace("fixes: []\n", fix))
    assert preflight(tmp_path, source=relying, runtime=str(runtime)) == 0
    digest, document = ((tmp_path / f"out.{name}").read_bytes() for name in ("digest", "launch"))
    assert preflight(tmp_path) == 0
    assert digest == (tmp_path / "out.digest").read_bytes()
    assert document == (tmp_path / "out.launch").read_bytes()


def test_the_outputs_are_the_same_every_time(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir(), second.mkdir()
    assert preflight(first) == preflight(second) == 0
    for name in OUTPUTS:
        assert (first / f"out.{name}").read_bytes() == (second / f"out.{name}").read_bytes()
        assert str(tmp_path) not in (first / f"out.{name}").read_text()


@pytest.mark.parametrize("seed", ["0", "1", "12345"])
def test_no_output_depends_on_the_hash_seed_or_the_machine(tmp_path, seed):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    assert preflight(here) == 0
    code = "import sys; from tools.launcher.cli.preflight_action import main; sys.exit(main(sys.argv[1:]))"
    subprocess.run(
        [sys.executable, "-c", code, *arguments(there)],
        env={
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONHASHSEED": seed,
            "TZ": "Pacific/Auckland",
            "LC_ALL": "C",
            "HOME": "/nonexistent",
        },
        check=True,
        capture_output=True,
    )
    for name in OUTPUTS:
        assert (here / f"out.{name}").read_bytes() == (there / f"out.{name}").read_bytes()


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
        (("seed=17,", "seed=17, sead=18,"), "SkyRLSpec.sead: there is no such field (did you mean seed?)"),
        (('inputs.dataset("gsm8k")', 'inputs.dataset("gsm9k")'), "no card named 'gsm9k' is declared"),
        (('relative_path="hf/step-32"', "relative_path=str(1 // 0)"), "ZeroDivisionError"),
        (("seed=17,", "seed=[10**5000],"), "SkyRLSpec.seed: Input should be a valid integer, got a list"),
        (
            ('gpu_variant="H100"', "gpu_variant=10**5000"),
            "Input should be a valid string, got an integer of 16610",
        ),
        (
            ("seed=17,", "seed=10**5000,"),
            "a value cannot be pinned: run.seed is an integer of 16610 bits. Use at most 64",
        ),
        (
            ("cpu=48,", "cpu=float('nan'),"),
            "IrisSkyRLExecution.cpu.float: Input should be a finite number, got nan",
        ),
        (
            ('wandb_entity="marin-community"', 'wandb_entity="\\ud800"'),
            "a value cannot be pinned: iris.wandb_entity holds a lone surrogate. Use valid Unicode",
        ),
        (
            ('"strategy": "fsdp2"', '"strategy": "fsdp2", "hf_save_interval": [4]'),
            "preflight cannot judge these values. Write what is needed:\n    needed: skyrl.trainer.hf_save_interval as int",
        ),
        (
            ("return skyrl_step(", "raise SystemExit(0)\n    return skyrl_step("),
            "the experiment ends the process with SystemExit(0)",
        ),
        (
            ("STEPS = {", "import sys; sys.exit()\nSTEPS = {"),
            "the experiment ends the process with SystemExit(None)",
        ),
        (
            ("return skyrl_step(", "main.build(inputs, {'scale': 'smoke'})\n    return skyrl_step("),
            "RecursionError: maximum",
        ),
        (
            ("return skyrl_step(", "raise AssertionError\n    return skyrl_step("),
            "experiment.py:117: AssertionError\n",
        ),
        (
            ("STEPS = {", "import helper\nSTEPS = {"),
            "No module named 'helper'. List the file in srcs and import it by its path",
        ),
        (
            ("recipe=SkyRLRecipe.combine(", "recipe=dict("),
            "SkyRLSpec.recipe: Input should be an instance of SkyRLRecipe, got a mapping",
        ),
        (
            ("objective=OBJECTIVE,", "objective=None,"),
            "TypeError: recipe part 'objective' is a NoneType. Give a mapping",
        ),
        (
            ("step=hf_model(qwen, qwen.export)", "step=data"),
            "ArtifactHfModel.step: tests/gsm8k@2026.09.01 is of the kind dataset, needed is hf_model or skyrl\n",
        ),
        (
            ("hf_model(qwen, qwen.export)", "hf_model(qwen, None)"),
            "experiment.py:71: the model card 'qwen3-0.6b' names no artifact",
        ),
        (
            ("version=inputs.version", 'version="2026.01.01"'),
            "the target has the version 2026.09.21, main() returns users/lab/tests/qwen06-gsm8k-rl@2026.01.01. Write version=inputs.version",
        ),
        (
            ("return skyrl_step(spec, execution, export_hf=True)", "return data"),
            "an experiment has exactly one skyrl_step, this graph has 0 (none)",
        ),
        (
            ("cluster=inputs.cluster.name,", 'cluster="cw-rno2a",'),
            "IrisSkyRLExecution.cluster is 'cw-rno2a', and `cluster` of the target is the card of 'cw-us-east-02a', by which",
        ),
        (
            (
                "return skyrl_step(spec, execution, export_hf=True)",
                (
                    "step = skyrl_step(spec, execution, export_hf=True)\n"
                    "    object.__setattr__(step, 'deps', (step,))\n"
                    "    return step"
                ),
            ),
            "a step is made of itself, by way of its deps, or by far too many of them in a row. Make each step of steps",
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
        ({"stage": "evaluate"}, "stage 'evaluate' does not end this graph. Its stages: import, rl"),
        ({"cluster": "third_party/models/qwen3_0_6b.yaml"}, "kind is 'model', expected 'cluster'"),
        (
            {"runtime": "nowhere.yaml"},
            "nowhere.yaml cannot be read: No such file or directory. Correct the label",
        ),
        ({"main": "nowhere.py"}, "nowhere.py does not exist. Set main to the experiment's .py file"),
        ({"option": "scale"}, "option 'scale' has no value. Write scale=VALUE"),
        ({"version": "٢٠٢٦.٠٩.٢١"}, "is neither YYYY.MM.DD, YYYY.MM.DD.N, dev nor <label>-dev"),
    ],
)
def test_a_wrong_declaration_ends_in_a_sentence(tmp_path, capsys, replaced, sentence):
    assert preflight(tmp_path, **replaced) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        ("--option=scale=full", "option 'scale' is given twice. Keep one of the values"),
        ("--model=third_party/models/qwen3_0_6b.yaml", "two model cards are named 'qwen3-0.6b'. Keep one"),
    ],
)
def test_what_is_declared_twice_is_refused(tmp_path, capsys, extra, sentence):
    assert preflight(tmp_path, extra) == 1
    assert sentence in capsys.readouterr().err
    assert outputs(tmp_path) == []


def test_the_line_is_named_when_main_is_given_by_a_relative_path(tmp_path, capsys, monkeypatch):
    # As in a build action; Python itself makes the file names of modules absolute.
    monkeypatch.setattr("sys.path", list(sys.path))
    (tmp_path / "experiments" / "x").mkdir(parents=True)
    files = {
        "runtime": "third_party/marinskyrl/81ae0ef7.yaml",
        "cluster": "third_party/clusters/cw_us_east_02a.yaml",
        "model": "third_party/models/qwen3_0_6b.yaml",
        "dataset": "third_party/datasets/gsm8k.yaml",
    }
    absolute = {name: str(Path(file).absolute()) for name, file in files.items()}
    (tmp_path / "experiments/x/experiment.py").write_text(
        changed(("return skyrl_step(", "return 1 // 0  # "))
    )
    monkeypatch.chdir(tmp_path)
    assert preflight(tmp_path, main="experiments/x/experiment.py", **absolute) == 1
    assert ": experiments/x/experiment.py:117: ZeroDivisionError" in capsys.readouterr().err


def test_an_experiment_that_changes_the_working_directory_writes_where_it_was_told(tmp_path, monkeypatch):
    monkeypatch.chdir(Path.cwd())  # the experiment's change is undone after the test
    place = Path(os.path.relpath(tmp_path))
    source = changed(("return skyrl_step(", "import os; os.chdir('/')\n    return skyrl_step("))
    assert (
        preflight(tmp_path, source=source, **{f"{name}_out": str(place / f"out.{name}") for name in OUTPUTS})
        == 0
    )
    assert len(outputs(tmp_path)) == len(OUTPUTS)


def test_a_refusal_by_sentence_has_a_json_form(tmp_path, capsys):
    assert preflight(tmp_path, "--format=json", stage="evaluate") == 1
    assert json.loads(capsys.readouterr().err) == {
        "experiment": "//experiments/gsm8k_grpo:gsm8k_grpo",
        "verdict": "reject",
        "violations": [],
        "error": "stage 'evaluate' does not end this graph. Its stages: import, rl",
    }


def test_terminal_codes_of_an_experiment_do_not_reach_the_terminal(tmp_path, capsys):
    source = changed(
        ("return skyrl_step(", 'raise ValueError("\\x1b[31mred\\nline")\n    return skyrl_step(')
    )
    assert preflight(tmp_path, source=source) == 1
    text = capsys.readouterr().err
    assert "ValueError:  [31mred\nline" in text and "\x1b" not in text


def test_only_a_newline_ends_an_argument_of_a_file(tmp_path, capsys):
    # One argument a line, as the build action writes them.
    source = changed(
        ('scale: Literal["smoke", "full"]', "scale: str"), ("STEPS[scale]", '{"a\\u2028--b": 8}[scale]')
    )
    arguments = tmp_path / "arguments"
    (tmp_path / "experiment.py").write_text(source)
    assert preflight(tmp_path, source=source, option="scale=a\u2028--b") == 0
    lines = ["--option=scale=a\u2028--b", f"--main={tmp_path / 'experiment.py'}"]
    arguments.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert expanded([f"@{arguments}", "--x"]) == [*lines, "--x"]


def test_a_value_in_a_recipe_section_of_another_kind_is_no_traceback(tmp_path, capsys):
    source = changed(('"environment": {"env_class": "gsm8k"}', '"environment": "gsm8k"'))
    assert preflight(tmp_path, source=source) == 1
    assert (
        "recipe part 'objective' sets environment='gsm8k', which must be a mapping" in capsys.readouterr().err
    )


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
