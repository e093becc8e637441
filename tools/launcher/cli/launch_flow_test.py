"""A mistake on the command line is said before any cluster is started or reached."""

import argparse
import json
import sys
from pathlib import Path

import pytest

from tools.launcher.cli import exit_codes
from tools.launcher.cli.built_experiment_testlib import build, source_of
from tools.launcher.cli.commands import run
from tools.launcher.cli.experiment_files import read_experiment_files
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.iris.local.control import status
from tools.launcher.store.bundles import BUNDLE_PREFIX, pack
from tools.launcher.store.content import put_content
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.records import RunKey, append_event, load_record


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    files = build(tmp_path_factory.mktemp("built"), source_of())
    return [f"--{name}={path}" for name, path in files.items()]


@pytest.mark.parametrize(
    ("verb", "flags", "code", "sentence"),
    [
        (
            "launch",
            ["--store=gs://team/x", "--override=credentials=ann: trust me"],
            exit_codes.USAGE,
            "error: --override credentials: nobody's word makes it true. Gates that can be answered for: ",
        ),
        (
            "launch",
            ["--store=gs://team/x", "--relaunch"],
            exit_codes.USAGE,
            "error: this needs someone who answers for it: say who and why, for example --authorize=",
        ),
        (
            "launch",
            ["--store=gs://team/x", "--authorize=ann: hurry"],
            exit_codes.USAGE,
            "error: --authorize answers for a relaunch, and this is none: ",
        ),
        (
            "launch",
            ["--store=gs://team/x", "--override=clean-tree=ann: 0123456789abcdef"],
            exit_codes.USAGE,
            "error: --override holds the value of WANDB_API_KEY, and what it says is recorded. Revoke that value, ",
        ),
        ("launch", ["--store=s3://team/x"], exit_codes.USAGE, "error: store 's3://team/x': "),
        ("launch", [], exit_codes.REFUSED, "refused: the cluster cw-us-east-02a has no store: "),
        (
            "rehearse",
            ["--stage=evaluate"],
            exit_codes.USAGE,
            "error: --stage=evaluate does not end this graph. Its stages: import, rl\n",
        ),
    ],
)
def test_nothing_is_started_or_written(built, tmp_path, monkeypatch, capsys, verb, flags, code, sentence):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("SLIPWAY_STORE", raising=False)
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    assert run([verb, *built, *flags]) == code
    said = capsys.readouterr()
    assert said.err.startswith(sentence)
    assert "0123456789abcdef" not in said.out + said.err
    assert not status(tmp_path / "slipway").running
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ["--authorize=ann: 0123456789abcdef"],
            "error: --authorize holds the value of WANDB_API_KEY, and what it says is recorded. Revoke that value, ",
        ),
        (
            ["--authorize=ann: hurry", "--override=clean-tree=ann: 0123456789abcdef"],
            "error: --override holds the value of WANDB_API_KEY, and what it says is recorded. Revoke that value, ",
        ),
        (
            ["--authorize=ann: hurry", "--override=credentials=ann: trust me"],
            "error: --override credentials: nobody's word makes it true. ",
        ),
    ],
)
def test_a_relaunch_looks_at_its_reasons_as_a_launch_does(
    built, tmp_path, monkeypatch, capsys, flags, sentence
):
    """A rehearsal hands no credential on, so no gate looks for one: relaunching it recorded the value."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("SLIPWAY_STORE", raising=False)
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    files = read_experiment_files(
        argparse.Namespace(**dict(file.removeprefix("--").split("=", 1) for file in built))
    )
    store = FileStore(tmp_path / "slipway/store")
    opening = {
        "bundle": put_content(store, BUNDLE_PREFIX, pack(files.bundle)),
        "runtime": "rehearsal",
        "credentials": [],
    }
    key = RunKey(experiment="gsm8k_grpo", launch_digest=files.digests.launch, ordinal=1)
    for kind, facts in (("intent", opening), ("failed", {"reason": "x"})):
        append_event(store, key, kind, "ann@desk", facts)
    assert run(["relaunch", "gsm8k_grpo", *flags]) == exit_codes.USAGE
    said = capsys.readouterr()
    assert said.err.startswith(sentence)
    assert "0123456789abcdef" not in said.out + said.err
    assert not status(tmp_path / "slipway").running
    assert load_record(store, key.model_copy(update={"ordinal": 2})) is None


@pytest.mark.parametrize("flags", [[], ["--relaunch"]])
def test_a_dry_run_says_what_would_be_resumed_from(built, tmp_path, monkeypatch, capsys, flags):
    """Another document of the version, such as that of the runtime before, may have left it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    launch = next(file for file in built if file.startswith("--launch=")).removeprefix("--launch=")
    root = load_yaml_mapping(Path(launch).read_bytes(), source=launch)["artifacts"]["checkpoint_root"]
    step = f"{root}/global_step_4"
    folder = ObjectRoot(tmp_path / "slipway/objects").path(step)
    folder.mkdir(parents=True)
    for name in ("policy.safetensors", "optimizer.safetensors", "trainer_state.json"):
        (folder / name).write_bytes(b"x")
    assert run(["rehearse", *built, *flags, "--dry-run"]) == exit_codes.OK
    said = capsys.readouterr().out
    assert "\nresume: from step 4, the newest whole checkpoint" in said
    assert f"\n  checkpoint: {step}\n" in said


def test_a_dry_run_says_that_another_plans_artifact_is_in_the_way(built, tmp_path, monkeypatch, capsys):
    """It was a traceback."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    graph = next(file for file in built if file.startswith("--graph=")).removeprefix("--graph=")
    step = json.loads(Path(graph).read_bytes())["steps"][-1]
    folder = ObjectRoot(tmp_path / "slipway/objects").path(step["output_path"])
    folder.mkdir(parents=True)
    facts = {name: step[name] for name in ("name", "version", "kind")}
    (folder / ".artifact.json").write_text(json.dumps(facts | {"fingerprint": "b" * 64, "rehearsal": True}))
    assert run(["rehearse", *built, "--dry-run"]) == exit_codes.OK
    said = capsys.readouterr().out
    assert f"\na launch would be refused: {step['output_path']}" in said
    assert "fingerprint bbbbbbbb), the plan wants" in said and "\nresume: " not in said


def test_a_graph_that_a_coordinator_could_not_read_is_wrong_usage(built, tmp_path, monkeypatch, capsys):
    """It was a traceback."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    place = next(file for file in built if file.startswith("--graph=")).removeprefix("--graph=")
    graph = json.loads(Path(place).read_bytes())
    graph["steps"][0]["identity"] = 5
    (tmp_path / "graph").write_text(json.dumps(graph))
    files = [file for file in built if not file.startswith("--graph=")]
    assert run(["rehearse", *files, f"--graph={tmp_path / 'graph'}", "--dry-run"]) == exit_codes.USAGE
    assert capsys.readouterr().err == (
        "error: graph.json: steps.0.identity: Input should be a valid string. Build the experiment again\n"
    )


def test_a_dry_run_without_a_store_shows_everything_and_says_what_a_launch_lacks(
    built, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("SLIPWAY_STORE", raising=False)
    assert run(["launch", *built, "--dry-run"]) == exit_codes.OK
    said = capsys.readouterr().out
    assert "store: none given, shown as gs://store-not-given; a launch would be refused: the cluster" in said
    assert '"--store=gs://store-not-given"' in said
    assert "  credentials    missing" in said
    assert list(tmp_path.iterdir()) == []


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
