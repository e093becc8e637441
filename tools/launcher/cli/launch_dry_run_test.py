"""A dry run shows everything and touches nothing: no server, no library of one, no file."""

import json
import os
import subprocess
import sys

import pytest

from tools.launcher.cli.built_experiment_testlib import build, source_of

KEY = "hidden-6f1d0b9e8c"
HEAVY = {"iris", "google", "grpc", "pyarrow", "connectrpc", "rigging", "finelog"}
PROGRAM = """
import json, sys
from tools.launcher.cli.commands import run
status = run(sys.argv[1:])
print("modules " + json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
sys.exit(status)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    files = build(tmp_path_factory.mktemp("built"), source_of())
    return [*(f"--{name}={path}" for name, path in files.items()), "--budget=experiments/budget.yaml"]


def dry_run(home, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments, "--dry-run"],
        env={
            "PATH": os.environ.get("PATH", ""),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "XDG_STATE_HOME": str(home),
            "HOME": str(home),
            "WANDB_API_KEY": KEY,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert KEY not in done.stdout + done.stderr
    text, _, modules = done.stdout.rpartition("modules ")
    assert not HEAVY & set(json.loads(modules))
    assert list(home.iterdir()) == []
    return text, json.loads(text[text.index("\n{\n") :])


def test_a_launch_on_a_cluster_of_others(built, tmp_path):
    text, request = dry_run(tmp_path, "launch", *built, "--store=gs://team/slipway")
    assert request["target_cluster"] == "cw-us-east-02a"
    assert (request["priority"], request["children_survive"]) == ("batch", True)
    assert request["secrets"] == {"WANDB_API_KEY": "**********"}
    assert "--credential=WANDB_API_KEY" in request["argv"] and "--runtime=marinskyrl" in request["argv"]
    assert "uv venv" in request["setup_scripts"][0]
    for line in (
        "  credentials    passed      WANDB_API_KEY: present",
        "  reachable      not asked   dry run: the cluster is not asked",
        "dry run: nothing is asked, written or submitted",
        "store: gs://team/slipway",
        "attempt: 1 (the first attempt; whether there are others is not asked of the store)",
        "request to its Iris at cw-us-east-02a:",
    ):
        assert line in text.splitlines()
    assert "\nthe coordinator then runs: uv run --isolated " in text
    assert " marinskyrl iris launch --config attempt/launch.yaml\n" in text


def test_a_rehearsal(built, tmp_path):
    files = [argument for argument in built if not argument.startswith("--budget")]
    text, request = dry_run(tmp_path, "rehearse", *files)
    assert (request["target_cluster"], request["priority"]) == (None, None)
    assert (request["secrets"], request["setup_scripts"]) == ({}, [])
    assert f"store: file://{tmp_path}/slipway/store\nattempt: 1 (attempts on record: 0)\n" in text
    assert (
        "\nthe coordinator then runs: python -P -m tools.launcher.rehearsal iris launch "
        f"--object-root=file://{tmp_path}/slipway/objects --config attempt/launch.yaml\n"
    ) in text


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
