"""The coordinator's command line, as its job calls it."""

import os
import subprocess
import sys

import pytest

from tools.launcher.coordinator.bundle_for_test import submitted
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunState, load_record


def _run(assignment, tmp_path, *changes):
    arguments = {
        "store": f"file://{tmp_path}/store",
        "object-root": f"file://{tmp_path}/objects",
        "bundle": assignment.bundle,
        "launch": assignment.key.launch_digest,
        "experiment": assignment.key.experiment,
        "ordinal": "1",
        "stage": "import",
    }
    arguments.update(changes)
    return subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "tools.launcher.coordinator.main",
            *(f"--{name}={value}" for name, value in arguments.items()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            "IRIS_TASK_ID": "/slipway/cat_count-12345678-1/0:0",
        },
    )


def test_it_runs_to_the_stage_and_says_so(tmp_path):
    store = FileStore(tmp_path / "store")
    assignment = submitted(store)
    done = _run(assignment, tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    record = load_record(store, assignment.key)
    assert record.state is RunState.SUCCEEDED
    assert record.coordinator_job_id == "/slipway/cat_count-12345678-1"
    assert "[coordinator] step_finished lab/cats@2026.09.01" in done.stderr
    assert "[coordinator] succeeded" in done.stderr


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("store", "/tmp/store"), "cannot start: store '/tmp/store': the address must start with file:///"),
        (
            ("object-root", "s3://b"),
            "cannot start: object root 's3://b': the address must start with file:///",
        ),
        (("launch", "12"), "launch digest '12' is not 64 lower-case hex digits"),
        (("bundle", "0" * 64), "failed: object bundles/sha256/0000"),
    ],
)
def test_what_keeps_it_from_starting_is_a_sentence(tmp_path, change, sentence):
    done = _run(submitted(FileStore(tmp_path / "store")), tmp_path, change)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_the_marinskyrl_runtime_is_chosen_by_name(tmp_path):
    store = FileStore(tmp_path / "store")
    assignment = submitted(store)
    done = _run(assignment, tmp_path, ("runtime", "marinskyrl"))
    assert done.returncode == 1
    assert "the MarinSkyRL launcher makes no dataset" in load_record(store, assignment.key).reason


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
