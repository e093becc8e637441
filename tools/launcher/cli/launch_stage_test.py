"""A stage whose last step nobody makes at the place is refused before anything is asked, written or submitted."""

import argparse
import json
import re
import sys

import pytest

from tools.launcher.cli import exit_codes, preflight_action
from tools.launcher.cli.built_experiment_testlib import build, build_arguments, source_of
from tools.launcher.cli.commands import run
from tools.launcher.cli.experiment_files import read_experiment_files
from tools.launcher.cli.launch_flow import prepared
from tools.launcher.cli.launch_place import launch_place
from tools.launcher.render.plan import LaunchPlan, plan_text
from tools.launcher.store.bundles import BUNDLE_PREFIX, pack
from tools.launcher.store.content import put_content
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunKey, append_event
from tools.launcher.store.testing.fake_gcs_for_test import FakeGcs

TRAINED = "return skyrl_step(spec, execution, export_hf=True)"
SCORED = (
    "run = skyrl_step(spec, execution, export_hf=True)\n"
    "    from tools.launcher.rl import evaluate\n"
    '    return evaluate(run, name="users/lab/tests/score", version=inputs.version, env_class="gsm8k", episodes=8, '
    "seed=1)"
)
REFUSED = (
    "refused: //experiments/gsm8k_grpo:gsm8k_grpo: stage evaluate on the cluster cw-us-east-02a needs "
    "users/lab/tests/score@2026.09.21, of the kind evaluate, and the MarinSkyRL launcher, which works there, makes "
    "skyrl only. Nothing was submitted. Launch up to the training: tools/bazel run "
    "//experiments/gsm8k_grpo:launch -- --stage=rl; a stand-in of all of it: tools/bazel run "
    "//experiments/gsm8k_grpo:rehearse -- --stage=evaluate\n"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A plan for a real cluster with an evaluation behind the training; a launch ends at `rl` by itself."""
    files = build(tmp_path_factory.mktemp("built"), source_of(edits={TRAINED: SCORED}))
    return [f"--{name}={path}" for name, path in files.items()]


def files_of(built):
    flags = dict(file.removeprefix("--").split("=", 1) for file in built)
    return read_experiment_files(argparse.Namespace(**flags))


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    """No test may see or touch the user's own runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("SLIPWAY_STORE", "SLIPWAY_CONTROLLER"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("flags", [["--yes"], ["--dry-run"], ["--relaunch", "--authorize=ann: again"]])
def test_an_evaluation_on_a_real_cluster_is_refused_before_anybody_is_asked(
    built, tmp_path, monkeypatch, capsys, flags
):
    """The coordinator refused it, hours later: after the training."""
    with FakeGcs() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        place = [f"--store={server.store_url('team')}", "--controller=http://127.0.0.1:1"]
        assert run(["launch", *built, *place, "--stage=evaluate", *flags]) == exit_codes.REFUSED
        assert server.log == ()
    assert capsys.readouterr() == ("", REFUSED)
    assert not (tmp_path / "state").exists()


def test_a_relaunch_of_an_old_record_is_refused_likewise(built, tmp_path, capsys):
    files = files_of(built)
    store = FileStore(tmp_path / "store")
    opening = {
        "bundle": put_content(store, BUNDLE_PREFIX, pack(files.bundle)),
        "runtime": "marinskyrl",
        "route": {"scheduler": "iris", "controller": "http://127.0.0.1:1"},
        "cluster": "cw-us-east-02a",
        "stage": "evaluate",
        "credentials": [],
    }
    key = RunKey(experiment="gsm8k_grpo.evaluate", launch_digest=files.digests.launch, ordinal=1)
    for kind, facts in (("intent", opening), ("failed", {"reason": "x"})):
        append_event(store, key, kind, "ann@desk", facts)
    before = list(store.list(""))
    arguments = ["gsm8k_grpo.evaluate", f"--store={store.url}", "--authorize=ann: again"]
    for flags in ([], ["--dry-run"]):
        assert run(["relaunch", *arguments, *flags]) == exit_codes.REFUSED
        assert capsys.readouterr() == ("", REFUSED)
    assert list(store.list("")) == before


def test_the_same_stage_is_rehearsed(built, capsys):
    assert run(["rehearse", *built, "--stage=evaluate", "--dry-run"]) == exit_codes.OK
    assert "dry run: nothing is asked, written or submitted" in capsys.readouterr().out


def test_imports_on_a_real_cluster_are_looked_for(built, capsys):
    assert run(["launch", *built, "--store=gs://team/x", "--stage=import", "--dry-run"]) == exit_codes.OK
    said = capsys.readouterr().out
    assert (
        "\nstage import on cw-us-east-02a: nothing is imported there. The coordinator looks whether "
        "tests/qwen06-sft@2026.09.01, tests/gsm8k@2026.09.01 exist and are the plan's, and fails at the first that is "
        "not\n"
    ) in said
    assert "\nthe coordinator then runs: no launcher, stage import trains nothing\n" in said
    request = json.loads(said[said.index("\n{\n") :])
    assert "--stage=import" in request["argv"] and request["name"].endswith("-1-import")


def test_the_local_iris_imports(built, capsys):
    assert run(["rehearse", *built, "--stage=import", "--dry-run"]) == exit_codes.OK
    assert "nothing is imported there" not in capsys.readouterr().out


def test_gpus_are_agreed_to_for_a_training_and_not_for_an_import(built):
    files = files_of(built)
    flags = argparse.Namespace(
        stage=None,
        relaunch=False,
        dry_run=True,
        authorize=None,
        override=[],
        store="gs://team/x",
        controller=None,
    )
    place = launch_place(files.cluster, files.launch["iris"], flags, {})
    training = prepared(files, place, flags, credentials=()).stakes().words()
    assert "  nodes      1 x 8 H100\n  GPU hours  at most 96 (deadline 12 h)\n" in training
    timed = files.model_copy(
        update={
            "launch": {**files.launch, "iris": {**files.launch["iris"], "timeout": 1800, "max_retries": 1}}
        }
    )
    words = prepared(timed, place, flags, credentials=()).stakes().words()
    assert "  GPU hours  at most 16 (4 attempts of 0.5 h)\n" in words
    flags.stage = "import"
    words = prepared(timed, place, flags, credentials=()).stakes().words()
    assert "  nodes      none with a GPU\n  GPU hours  at most 0 (deadline 12 h)\n" in words


def test_a_target_whose_own_launch_would_be_refused_does_not_build(tmp_path, capsys):
    arguments = build_arguments(tmp_path, source_of(edits={TRAINED: SCORED}))
    arguments[arguments.index("--stage=rl")] = "--stage=evaluate"
    assert preflight_action.main(arguments) == 1
    assert (
        "error: EXE-40 at users/lab/tests/score@2026.09.21\n"
        "    stage 'evaluate' on cw-us-east-02a: MarinSkyRL, which works there, evaluates nothing\n"
        '    repair: write stage = "rl" at the target; `:rehearse -- --stage=evaluate` makes a stand-in of the rest\n'
    ) in capsys.readouterr().err


def test_a_target_may_end_at_its_imports(tmp_path):
    arguments = build_arguments(tmp_path, source_of())
    arguments[arguments.index("--stage=rl")] = "--stage=import"
    assert preflight_action.main(arguments) == 0
    text = plan_text(LaunchPlan.model_validate_json((tmp_path / "plan").read_bytes()))
    assert re.search(
        r"terminal stage +import \(tests/qwen06-sft@2026\.09\.01:\w{8}, tests/gsm8k@2026\.09\.01:\w{8}\)\n",
        text,
    )
    graph = json.loads((tmp_path / "graph").read_bytes())
    assert graph["default_stage"] == "import"
    assert graph["stages"] == {"rl": "users/lab/tests/qwen06-gsm8k-rl@2026.09.21"}


@pytest.mark.parametrize(
    ("stage", "sentence"),
    [
        ("sft", "Its stages: import, rl, evaluate\n"),
        (
            "export",
            (
                "Its stages: import, rl, evaluate. The export belongs to rl: the launcher that trains exports as its "
                "last act (export_hf=True), and refuses to start again once its terminal manifest is written\n"
            ),
        ),
    ],
)
def test_a_stage_that_there_is_not_is_wrong_usage(built, tmp_path, capsys, stage, sentence):
    assert run(["rehearse", *built, f"--stage={stage}"]) == exit_codes.USAGE
    assert capsys.readouterr() == ("", f"error: --stage={stage} does not end this graph. {sentence}")
    assert not (tmp_path / "state").exists()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
