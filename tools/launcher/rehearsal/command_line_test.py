"""The command line as a user or a job sees it: streams, exit codes, sentences."""

import json
import os
import subprocess
import sys

import pytest

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.rehearsal.document_for_test import (
    DATA_FINGERPRINT,
    MODEL_FINGERPRINT,
    document_bytes,
)
from tools.launcher.rehearsal.policy import initial_weights
from tools.launcher.rehearsal.standin import write_model
from tools.launcher.store.locations import ObjectRoot


def _run(*arguments, module="tools.launcher.rehearsal", **environ):
    return subprocess.run(
        [sys.executable, "-P", "-m", module, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            **environ,
        },
    )


@pytest.fixture
def objects(tmp_path):
    return tmp_path / "objects"


def test_import_makes_both_kinds_and_says_so_on_stderr(objects):
    root = f"--object-root=file://{objects}"
    model = _run(
        "import",
        root,
        "--kind=hf_model",
        "--name=lab/qwen",
        "--version=2026.09.01",
        f"--fingerprint={MODEL_FINGERPRINT}",
        "--output=s3://bucket/lab/qwen/2026.09.01",
        "--card=qwen3-0.6b",
        "--relative-path=hf/step-32",
        "--tokenizer-uri=Qwen/Qwen3-0.6B",
        "--tokenizer-revision=abc",
    )
    assert (model.returncode, model.stdout) == (0, "")
    assert model.stderr == (
        "[rehearsal] stand-in lab/qwen@2026.09.01:1512cff8 at s3://bucket/lab/qwen/2026.09.01\n"
    )
    folder = objects / "s3/bucket/lab/qwen/2026.09.01"
    config = json.loads((folder / "hf/step-32/config.json").read_bytes())
    assert (config["slipway_rehearsal"], config["_name_or_path"]) == (True, "qwen3-0.6b")
    assert json.loads((folder / "hf/step-32/tokenizer_config.json").read_bytes())["revision"] == "abc"
    record = json.loads((folder / ".artifact.json").read_bytes())
    assert (record["schema"], record["rehearsal"], record["fingerprint"]) == (1, True, MODEL_FINGERPRINT)

    data = _run(
        "import",
        root,
        "--kind=dataset",
        "--name=lab/cats",
        "--version=2026.09.01",
        f"--fingerprint={DATA_FINGERPRINT}",
        "--output=s3://bucket/lab/cats/2026.09.01",
        "--env-class=cat_count",
        "--relative-path=train.parquet",
        "--relative-path=validation.parquet",
    )
    assert data.returncode == 0, data.stderr
    assert (objects / "s3/bucket/lab/cats/2026.09.01/validation.parquet").is_file()


def test_evaluate_writes_a_result_and_a_record(objects):
    export = ObjectRoot(objects).path("s3://b/run/exports/global_step_8")
    write_model(
        export, model_name="m", tokenizer_uri="t", tokenizer_revision="r", weights=10 * _identity_weights()
    )
    arguments = [
        "evaluate",
        f"--object-root=file://{objects}",
        "--name=lab/eval",
        "--version=1",
        f"--fingerprint={'e' * 64}",
        "--output=s3://b/eval",
        "--export=s3://b/run/exports/global_step_8",
        "--env-class=gsm8k",
        "--episodes=50",
        "--seed=4",
    ]
    done = _run(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "[rehearsal] 50 episodes, mean reward 1.000\n"
    result = json.loads((objects / "s3/b/eval/result.json").read_bytes())
    assert (result["slipway_rehearsal"], result["episodes"], result["reward_mean"]) == (True, 50, 1.0)
    assert json.loads((objects / "s3/b/eval/.artifact.json").read_bytes())["kind"] == "evaluate"

    missing = _run(*(argument.replace("global_step_8", "global_step_9") for argument in arguments))
    assert missing.returncode == 1
    assert (
        "rehearsal: the export s3://b/run/exports/global_step_9 cannot be read: No such file"
        in missing.stderr
    )
    assert "Traceback" not in missing.stderr


def _identity_weights():
    weights = initial_weights(1)
    for answer in range(10):
        weights[answer, answer] += 1.0
    return weights


def test_launch_answers_one_line_of_json_and_exit_code_one_if_it_failed(objects, tmp_path):
    (tmp_path / "launch.yaml").write_bytes(document_bytes(run__submission="prepare"))
    (tmp_path / "slipway.zip").write_bytes(b"")
    arguments = [
        "iris",
        "launch",
        "--config",
        str(tmp_path / "launch.yaml"),
        f"--object-root=file://{objects}",
    ]
    done = _run(*arguments, IRIS_WORKDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "prepared"
    assert done.stdout.count("\n") == 1

    manifest = objects / "local/marin/lab/cat-count/2026.11.30/terminal.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{}")
    failed = _run(*arguments, IRIS_WORKDIR=str(tmp_path))
    assert failed.returncode == 1
    assert "this version has already finished" in json.loads(failed.stdout)["failure"]
    assert "Traceback" not in failed.stderr


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{", "rehearsal: launch.yaml"),
        (b"run: {}\n", "rehearsal: launch.yaml: schema_version is missing. Add it"),
    ],
)
def test_a_document_that_cannot_be_read_is_a_sentence(objects, tmp_path, content, sentence):
    (tmp_path / "launch.yaml").write_bytes(content)
    (tmp_path / "slipway.zip").write_bytes(b"")
    config = str(tmp_path / "launch.yaml")
    done = _run(
        "iris", "launch", "--config", config, f"--object-root=file://{objects}", IRIS_WORKDIR=str(tmp_path)
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(sentence)
    assert "Traceback" not in done.stderr


def test_outside_a_job_it_says_so(objects, tmp_path):
    launched = _run("iris", "launch", "--config", str(tmp_path / "x"), f"--object-root=file://{objects}")
    assert launched.returncode == 1
    assert (
        "there is no slipway.zip in IRIS_WORKDIR. This command runs inside the coordinator's"
        in launched.stderr
    )
    task = _run("task", f"--object-root=file://{objects}", "--document=" + "0" * 64)
    assert task.returncode == 3
    assert "This command only runs as a task of Iris" in task.stderr


def test_a_task_runs_only_the_document_its_job_was_submitted_for(objects, tmp_path):
    (tmp_path / "launch.yaml").write_bytes(document_bytes(run__seed=3))
    task = _run(
        "task",
        f"--object-root=file://{objects}",
        f"--document={sha256_hex(document_bytes())}",
        IRIS_WORKDIR=str(tmp_path),
        IRIS_TASK_ID="/s/c/child/0:0",
        IRIS_NUM_TASKS="1",
    )
    assert task.returncode == 3
    assert f"launch.yaml has sha256:{sha256_hex(document_bytes(run__seed=3))}, the job was submitted for" in (
        task.stderr
    )


def test_an_object_root_that_is_none_is_a_sentence():
    done = _run("task", "--object-root=/tmp/x", "--document=" + "0" * 64)
    assert done.returncode == 1
    assert "rehearsal: object root '/tmp/x': the address must start with file:///" in done.stderr


def test_a_launch_imports_no_numbers_and_no_scheduler(objects, tmp_path):
    (tmp_path / "launch.yaml").write_bytes(document_bytes(run__submission="prepare"))
    (tmp_path / "slipway.zip").write_bytes(b"")
    code = (
        "import sys\n"
        "from tools.launcher.rehearsal.__main__ import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "heavy = {'numpy', 'safetensors', 'iris', 'grpc', 'google', 'pyarrow'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    config = str(tmp_path / "launch.yaml")
    done = subprocess.run(
        [sys.executable, "-c", code, "iris", "launch", "--config", config, f"--object-root=file://{objects}"],
        capture_output=True,
        text=True,
        timeout=60,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            "IRIS_WORKDIR": str(tmp_path),
        },
    )
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
