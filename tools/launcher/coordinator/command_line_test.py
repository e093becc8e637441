"""The coordinator's command line, as its job calls it."""

import os
import subprocess
import sys

import pytest

from tools.launcher.coordinator.bundle_for_test import submitted
from tools.launcher.coordinator.main import FAILED, main
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunState, load_record


def _arguments(assignment, tmp_path, **changes):
    arguments = {
        "store": f"file://{tmp_path}/store",
        "object_root": f"file://{tmp_path}/objects",
        "bundle": assignment.bundle,
        "launch": assignment.key.launch_digest,
        "experiment": assignment.key.experiment,
        "ordinal": "1",
        "stage": "import",
        **changes,
    }
    return [f"--{name.replace('_', '-')}={value}" for name, value in arguments.items() if value is not None]


def test_it_runs_to_the_stage_and_says_so(tmp_path):
    store = FileStore(tmp_path / "store")
    assignment = submitted(store)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tools.launcher.coordinator.main", *_arguments(assignment, tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            "IRIS_TASK_ID": "/slipway/cat_count-12345678-1/0:0",
        },
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    record = load_record(store, assignment.key)
    assert record.state is RunState.SUCCEEDED
    assert record.coordinator_job_id == "/slipway/cat_count-12345678-1"
    for name in ("qwen", "cats"):
        assert f"[coordinator] step_finished lab/{name}@2026.09.01" in done.stderr
    assert "[coordinator] succeeded" in done.stderr


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"store": "/tmp/store"}, "cannot start: store '/tmp/store': the address must start with file:///"),
        (
            {"object_root": "s3://b"},
            "cannot start: object root 's3://b': the address must start with file:///",
        ),
        ({"launch": "12"}, "launch digest '12' is not 64 lower-case hex digits"),
        (
            {"object_root": None},
            "cannot start: the rehearsal needs --object-root: it writes no real bucket. Add it, or use marinskyrl",
        ),
    ],
)
def test_what_keeps_it_from_starting_is_a_sentence(tmp_path, capsys, change, sentence):
    assignment = submitted(FileStore(tmp_path / "store"))
    assert main(_arguments(assignment, tmp_path, **change)) == FAILED
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"bundle": "0" * 64}, "object bundles/sha256/0000"),
        ({"runtime": "marinskyrl"}, "the MarinSkyRL launcher makes no hf_model"),
        ({"runtime": "marinskyrl", "object_root": None}, "no bucket of a cluster. Use s3:// or gs://"),
        ({"credential": "HF_TOKEN"}, "HF_TOKEN: declared as credential of this run, and not among what Iris"),
    ],
)
def test_what_fails_the_run_is_recorded(tmp_path, capsys, change, sentence):
    store = FileStore(tmp_path / "store")
    assignment = submitted(store)
    assert main(_arguments(assignment, tmp_path, **change)) == FAILED
    assert sentence in load_record(store, assignment.key).reason
    # Outside Iris there is nobody to tell that this is for good.
    assert "Iris may start this coordinator again: " in capsys.readouterr().err


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
