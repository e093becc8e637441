"""`pin`, and what a build says of a version that it pinned: through the programs, on a real experiment."""

import argparse
import fcntl
import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tools.launcher.cli import exit_codes, pin_command
from tools.launcher.cli.preflight_action import OUTPUTS
from tools.launcher.cli.preflight_action import main as preflight
from tools.launcher.graph.ledger import load_ledger

SOURCE = Path("experiments/gsm8k_grpo/experiment.py")
MANIFEST = Path("third_party/marinskyrl/81ae0ef7.yaml")
CLUSTER = Path("third_party/clusters/cw_us_east_02a.yaml")
PREFIX = "s3://marin-us-east-02a/marin"
OLD, NEW = "81ae0ef7033c500207b191a2ae7c3806f6dc78ff", "2b" * 20
LEDGER = "experiments/gsm8k_grpo/versions.lock.yaml"
ADDRESS = "users/lab/tests/qwen06-gsm8k-rl@2026.09.21"


class Workspace:
    """A source tree with one experiment, and the outputs of its last build."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ledger = root / LEDGER

    def build(
        self, *changes: tuple[str, str], runtime: str = OLD, prefix: str = PREFIX, version: str = "2026.09.21"
    ) -> int:
        """Build the experiment with other text at some places; return the exit status of preflight."""
        source = SOURCE.read_text()
        for old, new in changes:
            assert old in source
            source = source.replace(old, new)
        files = {
            "main": (self.root / "experiment.py", source),
            "runtime": (self.root / "runtime.yaml", MANIFEST.read_text().replace(OLD, runtime)),
            "cluster": (self.root / "cluster.yaml", CLUSTER.read_text().replace(PREFIX, prefix)),
        }
        for path, text in files.values():
            path.write_text(text)
        flags = {
            "label": "//experiments/gsm8k_grpo:gsm8k_grpo",
            "version": version,
            "stage": "rl",
            "option": "scale=smoke",
            "model": "third_party/models/qwen3_0_6b.yaml",
            "dataset": "third_party/datasets/gsm8k.yaml",
            **{name: path for name, (path, _) in files.items()},
            **{f"{name}_out": self.root / f"out.{name}" for name in OUTPUTS},
            **({"ledger": self.ledger} if self.ledger.exists() else {}),
        }
        return preflight([f"--{name}={value}" for name, value in flags.items()])

    def pin(self, *extra: str) -> int:
        """Pin the last build."""
        parser = argparse.ArgumentParser()
        pin_command.add_arguments(parser)
        files = [f"--{name}={self.root / f'out.{name}'}" for name in ("launch", "digest", "graph")]
        return pin_command.run(parser.parse_args([*files, f"--ledger={LEDGER}", *extra]))

    def graph(self) -> dict[str, Any]:
        return json.loads((self.root / "out.graph").read_text())

    def vouch(self) -> None:
        self.ledger.write_text(
            self.ledger.read_text()
            + "      checkpoints: compatible\n      because: only the logger changed\n"
        )


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv(pin_command.WORKSPACE, str(tmp_path))
    return Workspace(tmp_path)


@pytest.fixture(scope="module")
def first_pin(tmp_path_factory):
    """The files of the first build, after its pin."""
    workspace = Workspace(tmp_path_factory.mktemp("first"))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(pin_command.WORKSPACE, str(workspace.root))
        assert workspace.build() == 0 and workspace.pin() == 0
    return workspace.root


@pytest.fixture
def pinned(workspace, first_pin):
    shutil.copytree(first_pin, workspace.root, dirs_exist_ok=True)
    return workspace


def test_a_first_pin_writes_the_ledger_and_says_what(workspace, capsys):
    assert workspace.build() == 0
    plan = json.loads((workspace.root / "out.plan").read_text())
    lines = [line["message"] for line in plan["preflight"]["checklist"] if line["id"] == "ART-17"]
    assert lines == [
        (
            f"{ADDRESS} is not pinned yet: run the experiment's :pin, which writes it into versions.lock.yaml, and "
            "commit that"
        )
    ]
    assert workspace.graph()["pinned"] is False
    capsys.readouterr()
    assert workspace.pin("--dry-run") == 0 and not workspace.ledger.exists()
    shown = capsys.readouterr().out
    recipe = workspace.graph()["steps"][-1]["fingerprint"]
    assert shown.startswith(f"{ADDRESS}\n  recipe              new -> {recipe[:12]}\n")
    assert "  runtime             new -> 81ae0ef7033c\n" in shown
    assert shown.endswith(f"dry run: {LEDGER} is not written\n")
    assert workspace.pin() == 0
    assert capsys.readouterr().out.endswith(f"written: {LEDGER}. Review and commit it\n")
    text = workspace.ledger.read_text()
    assert text.startswith("# Written by `tools/bazel run //experiments/gsm8k_grpo:pin`. By hand: only")
    assert load_ledger(text.encode(), source="x").pinned(*ADDRESS.split("@")).recipe == recipe
    assert workspace.pin() == 0
    assert capsys.readouterr().out == f"{ADDRESS} is pinned already: {LEDGER}\n"
    assert workspace.ledger.read_text() == text


def test_what_was_pinned_builds_and_is_pinned(pinned):
    assert pinned.build() == 0
    assert pinned.graph()["pinned"] is True
    assert [step["compatible"] for step in pinned.graph()["steps"]] == [[], [], []]
    plan = json.loads((pinned.root / "out.plan").read_text())["preflight"]
    assert {"ART-06", "ART-17"} <= set(plan["passed"])
    assert [line["id"] for line in plan["checklist"] if line["id"].startswith("ART")] == ["ART-13"]


IDENTITY = {
    "seed": ("seed=17", "seed=18"),
    "recipe": ('"temperature": 1.0', '"temperature": 0.9'),
    "resume mode": ('"resume_mode": "latest"', '"resume_mode": "none"'),
    "steps": ('STEPS = {"smoke": 8', 'STEPS = {"smoke": 10'),
    "context budget": ("request_window_tokens=1536", "request_window_tokens=2048"),
    "tokenizer": ("c1899de289a04d12100db370d81485cdf75e47ca", "d" * 40),
    "model path": ('"hf/step-32"', '"hf/step-64"'),
    "data path": ('"train.parquet"', '"train-2.parquet"'),
    "validation path": ('"validation.parquet"', '"test.parquet"'),
    "role plan": ("policy_mini_batch_size=16", "policy_mini_batch_size=8"),
    "samples": ("n_samples_per_prompt=4", "n_samples_per_prompt=8"),
    "retention": ("resume_checkpoint_count=2", "resume_checkpoint_count=3"),
    "export": ("export_hf=True", "export_hf=False"),
    "environment": ('"expandable_segments:True"', '"expandable_segments:False"'),
}


@pytest.mark.parametrize("change", IDENTITY.values(), ids=IDENTITY)
def test_another_recipe_under_a_pinned_version_is_refused(pinned, capsys, change):
    assert pinned.build(change) == 1
    error = capsys.readouterr().err
    assert f"error: ART-17 at run.id\n    {ADDRESS} is pinned as " in error
    assert (
        "What exists under that version would be taken for this\n"
        f"    repair: give the target another version, such as {ADDRESS.partition('@')[2]}.1, or take the change back"
    ) in error
    assert "ART-06" not in error


def test_the_version_that_is_proposed_is_not_pinned_either(pinned, capsys):
    version = ADDRESS.partition("@")[2]
    assert pinned.build(IDENTITY["seed"], version=f"{version}.1") == 0 and pinned.pin() == 0
    capsys.readouterr()
    assert pinned.build(IDENTITY["samples"]) == 1
    assert f"give the target another version, such as {version}.2, or take" in capsys.readouterr().err


@pytest.mark.parametrize("version", ["2026.09.22", "dev"])
def test_a_new_version_and_a_mutable_one_are_free_to_be_another(pinned, version):
    assert pinned.build(IDENTITY["seed"], version=version) == 0


PLACEMENT = {
    "cpu": ("cpu=48", "cpu=24"),
    "priority": ('priority="batch"', 'priority="interactive"'),
    "retries": ("max_retries=1", "max_retries=3"),
    "deadline": ("coordinator_timeout_hours=24", "coordinator_timeout_hours=12"),
    "entity": ('wandb_entity="marin-community"', 'wandb_entity="lab"'),
    "lifetime": ("temporary_storage_ttl_days=14", "temporary_storage_ttl_days=30"),
    "credentials": ('credentials=("WANDB_API_KEY",)', 'credentials=("WANDB_API_KEY", "HF_TOKEN")'),
}


@pytest.mark.parametrize("change", PLACEMENT.values(), ids=PLACEMENT)
def test_another_placement_keeps_the_version(pinned, capsys, change):
    assert pinned.build(change) == 0
    assert pinned.graph()["pinned"] is True
    before = pinned.ledger.read_text()
    assert pinned.pin() == 0
    shown = capsys.readouterr().out
    assert "pinned already" in shown or "  recipe              3ecd7edb3571  unchanged\n" in shown
    assert sum(a != b for a, b in zip(before.split(), pinned.ledger.read_text().split(), strict=True)) <= 1


def test_another_clusters_storage_keeps_the_version(pinned):
    launch = (pinned.root / "out.digest").read_text()
    assert pinned.build(prefix="s3://marin-us-east-08a/marin") == 0
    assert pinned.graph()["pinned"] is True
    moved = (pinned.root / "out.digest").read_text()
    assert moved != launch and moved.splitlines()[0] == launch.splitlines()[0]


def test_another_runtime_is_refused_until_somebody_says_why_not(pinned, capsys):
    assert pinned.build(runtime=NEW) == 1
    error = capsys.readouterr().err
    assert (
        f"error: ART-06 at runtime.launcher_commit\n    {ADDRESS} has checkpoints from runtime 81ae0ef7; this build "
        "uses 2b2b2b2b\n    repair: set skyrl.trainer.resume_mode=none to start at step 0, or publish a new version"
    ) in error
    assert "ART-17" not in error
    old = pinned.graph()["steps"][-1]["fingerprint"]
    pinned.vouch()
    assert pinned.build(runtime=NEW) == 0
    run = pinned.graph()["steps"][-1]
    assert run["compatible"] == [old] and pinned.graph()["pinned"] is False
    capsys.readouterr()
    assert pinned.pin() == 0
    shown = capsys.readouterr().out
    assert f"  recipe              {old[:12]} -> {run['fingerprint'][:12]}\n" in shown
    assert f"  earlier             + {old[:12]}: only the logger changed\n" in shown
    pin = load_ledger(pinned.ledger.read_bytes(), source="x").pinned(*ADDRESS.split("@"))
    assert (pin.runtime, pin.checkpoints, pin.earlier[0].recipe) == (NEW, None, old)
    assert pinned.build(runtime=NEW) == 0 and pinned.graph()["pinned"] is True
    assert pinned.graph()["steps"][-1]["compatible"] == [old]
    assert pinned.build() == 1  # The leave was for that one repin.


def test_going_back_to_an_earlier_runtime_is_told_as_well(pinned, capsys):
    """Breaker, issue 4: the table left out the entry that moves to `earlier` when another is taken out."""
    old = pinned.graph()["steps"][-1]["fingerprint"]
    pinned.vouch()
    assert pinned.build(runtime=NEW) == 0 and pinned.pin() == 0
    new = pinned.graph()["steps"][-1]["fingerprint"]
    text = pinned.ledger.read_text()
    pinned.ledger.write_text(
        text.replace("      earlier:", "      checkpoints: compatible\n      because: back\n      earlier:")
    )
    assert pinned.build() == 0
    capsys.readouterr()
    assert pinned.pin() == 0
    shown = capsys.readouterr().out
    assert f"  recipe              {new[:12]} -> {old[:12]}\n" in shown
    assert f"  earlier             + {new[:12]}: back\n" in shown


def test_pins_of_one_package_wait_for_each_other(pinned):
    """Breaker, issue 4: of two experiments that were pinned at once, one lost its entry."""
    assert pinned.build(version="2026.09.22") == 0
    folder = os.open(pinned.ledger.parent, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with ThreadPoolExecutor(1) as other:
        done = other.submit(pinned.pin)
        with pytest.raises(TimeoutError):
            done.result(timeout=0.2)
        os.close(folder)
        assert done.result(timeout=30) == 0
    assert "2026.09.22:" in pinned.ledger.read_text()


def test_a_ledger_that_cannot_be_written_is_named(workspace, capsys):
    """Breaker, issue 4: the sentence named a temporary file."""
    assert workspace.build() == 0
    workspace.ledger.mkdir(parents=True)
    assert workspace.pin() == exit_codes.USAGE
    assert f"error: {LEDGER}: Is a directory. Make it a file that you can write" in capsys.readouterr().err


def test_a_run_that_starts_afresh_may_have_another_runtime(pinned):
    fresh = ('"resume_mode": "latest"', '"resume_mode": "none"')
    old = pinned.graph()["steps"][-1]["fingerprint"]
    assert pinned.build(fresh, runtime=NEW) == 0
    assert pinned.graph()["steps"][-1]["compatible"] == [old]
    assert pinned.pin() == 0
    assert pinned.build(fresh, runtime=NEW) == 0 and pinned.graph()["pinned"] is True


def test_another_runtime_does_not_hide_another_recipe(pinned, capsys):
    pinned.vouch()
    assert pinned.build(("seed=17", "seed=18"), runtime=NEW) == 1
    error = capsys.readouterr().err
    assert "error: ART-17" in error and "error: ART-06" not in error


def test_what_a_build_would_refuse_is_not_pinned_either(pinned, capsys):
    text = pinned.ledger.read_text()
    pinned.ledger.unlink()
    assert pinned.build(("seed=17", "seed=18")) == 0
    pinned.ledger.write_text(text)
    assert pinned.pin() == exit_codes.REFUSED
    assert "A fixed version keeps its recipe. Publish a new version, or take" in capsys.readouterr().err
    pinned.ledger.unlink()
    assert pinned.build(runtime=NEW) == 0
    pinned.ledger.write_text(text)
    assert pinned.pin() == exit_codes.REFUSED
    assert (
        f"{ADDRESS} is pinned under runtime 81ae0ef7033c; this build uses 2b2b2b2b2b2b. Publish a new version, or "
        "write `checkpoints: compatible` and `because: …` into its entry"
    ) in capsys.readouterr().err
    assert pinned.ledger.read_text() == text


def test_a_mutable_version_is_never_pinned(workspace, capsys):
    assert workspace.build(version="dev") == 0
    assert workspace.pin() == exit_codes.REFUSED
    assert (
        "qwen06-gsm8k-rl@dev is not a fixed version, and what may change is never pinned"
        in capsys.readouterr().err
    )


def test_the_first_comment_and_other_versions_stay(pinned, capsys):
    text = pinned.ledger.read_text()
    pinned.ledger.write_text("# Ours.\n" + text.replace("    2026", "    # later\n    2026"))
    assert pinned.build(version="2026.09.22") == 0 and pinned.pin() == 0
    assert f"note: comments below the first lines are not kept (1 in {LEDGER})\n" in capsys.readouterr().out
    after = pinned.ledger.read_text()
    assert after.startswith("# Ours.\n# Written by") and "# later" not in after
    assert after.index("2026.09.21:") < after.index("2026.09.22:")


def test_without_bazel_run_there_is_no_source_tree(workspace, capsys, monkeypatch):
    assert workspace.build() == 0
    monkeypatch.delenv(pin_command.WORKSPACE)
    assert workspace.pin() == exit_codes.USAGE
    assert "only `bazel run` knows the source tree, and the ledger is written there. Run it with" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("out.digest", "x", "not a digest file"),
        (
            "out.digest",
            f"recipe sha256:{'a' * 64}\nlaunch sha256:{'a' * 64}\n",
            "are of two builds. Build the experiment again",
        ),
        (
            "out.graph",
            "{}",
            "is not of this launcher's making (KeyError('steps')). Build the experiment again",
        ),
        (LEDGER, "schema: 1\nversions: []\n", "versions: Input should be a valid dictionary"),
    ],
)
def test_files_of_another_making_are_refused(workspace, capsys, file, text, sentence):
    assert workspace.build() == 0
    path = workspace.root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert workspace.pin() == exit_codes.USAGE
    assert sentence in capsys.readouterr().err


def test_a_faulty_ledger_stops_the_build_by_its_line(pinned, capsys):
    pinned.ledger.write_text(pinned.ledger.read_text() + "      by: ann\n")
    assert pinned.build() == 1
    assert (
        f"{pinned.ledger}:12:7: versions.{ADDRESS.replace('@', '.')}.by: Extra inputs"
        in capsys.readouterr().err
    )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
