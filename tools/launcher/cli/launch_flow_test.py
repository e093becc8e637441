"""A mistake on the command line is said before any cluster is started or reached."""

import sys
from pathlib import Path

import pytest

from tools.launcher.cli import exit_codes
from tools.launcher.cli.built_experiment_testlib import build, source_of
from tools.launcher.cli.commands import run
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.iris.local.control import status
from tools.launcher.store.locations import ObjectRoot


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
            "error: --stage=evaluate does not end this graph. Its stages: rl\n",
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
