import json
import sys

import pytest

from tools.launcher.cli.existing_outputs import contradiction, finished_steps
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.objects import FolderObjects

STEP = {
    "address": "team/run@2026.01.15",
    "name": "team/run",
    "version": "2026.01.15",
    "kind": "skyrl",
    "stage": "rl",
    "fingerprint": "a" * 64,
    "identity": "team/run@2026.01.15:aaaaaaaa",
    "adopted": False,
    "output_path": "local://b/team/run/2026.01.15",
    "temporary_root": "local://b/tmp",
    "deps": [],
    "config": {},
}
GRAPH = json.dumps(
    {
        "schema": 1,
        "experiment": "//experiments/x:x",
        "experiment_name": "x",
        "stages": {"rl": STEP["address"]},
        "default_stage": "rl",
        "coordinator_timeout_hours": 1,
        "cluster": "local",
        "steps": [STEP],
    }
).encode()


def finished(root, fingerprint):
    folder = root.path(STEP["output_path"])
    folder.mkdir(parents=True)
    record = {"name": STEP["name"], "version": STEP["version"], "kind": "skyrl", "fingerprint": fingerprint}
    (folder / ".artifact.json").write_text(json.dumps(record | {"rehearsal": True}))


def test_nothing_there_and_the_same_plan_are_no_contradiction(tmp_path):
    root = ObjectRoot(tmp_path)
    assert contradiction(GRAPH, "rl", FolderObjects(root)) is None
    assert finished_steps(GRAPH, "rl", FolderObjects(root)) == frozenset()
    finished(root, "a" * 64)
    assert contradiction(GRAPH, "rl", FolderObjects(root)) is None
    assert finished_steps(GRAPH, "rl", FolderObjects(root)) == {STEP["address"]}


def test_another_plan_under_the_same_version_is_named_with_the_fix(tmp_path):
    root = ObjectRoot(tmp_path)
    finished(root, "b" * 64)
    sentence = contradiction(GRAPH, "rl", FolderObjects(root))
    assert sentence is not None
    assert "holds team/run@2026.01.15 (skyrl, fingerprint bbbbbbbb), the plan wants" in sentence
    assert "Give the changed step a new version" in sentence


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
