"""Whole gangs as real processes: success, faults, kill, resume."""

import json
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tools.launcher.iris.delivered_secrets import DIRECTORY_VARIABLE
from tools.launcher.rehearsal.document_for_test import document_bytes, import_inputs
from tools.launcher.rehearsal.faults import FAULT_VARIABLE
from tools.launcher.rehearsal.launch import launch
from tools.launcher.rehearsal.limits import LIMIT_VARIABLE, STEP_VARIABLE
from tools.launcher.rehearsal.process_gateway_for_test import ProcessGateway, code_archive
from tools.launcher.store.locations import ObjectRoot

ATTEMPT = "local://scratch/tmp/ttl=14d/skyrl/marin/lab/cat-count/2026.11.30/attempts/0123456789ab"
CHECKPOINTS = "local://scratch/tmp/ttl=14d/skyrl/marin/lab/cat-count/2026.11.30/checkpoints"
OUTPUT = "local://marin/lab/cat-count/2026.11.30"


@pytest.fixture
def root(tmp_path):
    object_root = ObjectRoot(tmp_path / "objects")
    import_inputs(object_root)
    return object_root


def _launch(root, gateway, data=None, environ=None, credentials=()):
    said = []
    answer = launch(
        data or document_bytes(),
        source="launch.yaml",
        object_root_url=f"file://{root.root}",
        object_root=root,
        code_archive=code_archive(),
        gateway=lambda: gateway,
        environ={STEP_VARIABLE: "0", LIMIT_VARIABLE: "20", **(environ or {})},
        say=said.append,
        credentials=credentials,
    )
    return answer, said


def _read(root, uri):
    return json.loads(root.path(uri).read_bytes())


def _metrics(root):
    return [json.loads(line) for line in (root.path(ATTEMPT) / "metrics.jsonl").read_bytes().splitlines()]


def test_every_task_has_the_credentials_and_writes_their_names_only(root, tmp_path):
    (tmp_path / "HF_TOKEN").write_text("value-one")
    (tmp_path / "WANDB_API_KEY").write_text("value-two")
    with ProcessGateway() as gateway:
        answer, said = _launch(
            root,
            gateway,
            environ={DIRECTORY_VARIABLE: str(tmp_path)},
            credentials=("WANDB_API_KEY", "HF_TOKEN"),
        )
        assert answer.state == "succeeded", (answer.failure, said)
        (request,) = gateway.requests
        log = gateway.logs(answer.iris_job_id)
    assert request.secrets["HF_TOKEN"].get_secret_value() == "value-one"
    assert request.argv[-2:] == ("--credential=HF_TOKEN", "--credential=WANDB_API_KEY")
    for rank in (0, 1):
        joined = root.path(f"{ATTEMPT}/joined/{rank}.json").read_text()
        assert json.loads(joined)["credentials"] == ["HF_TOKEN", "WANDB_API_KEY"]
    for text in (joined, log, repr(request), repr(request.model_dump()), *said):
        assert "value-one" not in text and "value-two" not in text


def test_a_task_without_its_credential_says_so(root, tmp_path):
    (tmp_path / "HF_TOKEN").write_text("value-one")
    with ProcessGateway({DIRECTORY_VARIABLE: str(tmp_path)}) as gateway:
        forgetful = gateway.submit

        def submit(request):
            return forgetful(request.model_copy(update={"secrets": {}}))

        gateway.submit = submit
        answer, _ = _launch(
            root, gateway, environ={DIRECTORY_VARIABLE: str(tmp_path)}, credentials=("HF_TOKEN",)
        )
    assert answer.state == "failed"
    assert "ended with exit code 3: HF_TOKEN: declared as credential of this run, and not" in answer.failure


def _fault(rank, kind, step=1):
    return {FAULT_VARIABLE: json.dumps({"rank": rank, "kind": kind, "step": step})}


def test_two_tasks_train_and_leave_everything(root):
    with ProcessGateway() as gateway:
        answer, said = _launch(root, gateway)
        assert answer.state == "succeeded", (answer.failure, said)
        request = gateway.requests[0]
        log = gateway.logs(answer.iris_job_id)
    assert (request.replicas, request.gpus_per_task, request.gpu_variant, request.coscheduled) == (
        2,
        8,
        "H100",
        True,
    )
    assert not any(argument.startswith("/") for argument in request.argv)

    for rank in (0, 1):
        joined = _read(root, f"{ATTEMPT}/joined/{rank}.json")
        assert (joined["rank"], joined["world_size"], joined["at_step"]) == (rank, 2, 0)
        loaded = _read(root, f"{ATTEMPT}/model_load/{rank}.json")
        assert loaded["declared_path"] == "/tmp/marinskyrl/models/qwen"
        assert loaded["identity"] == "lab/qwen@2026.09.01:1512cff8"
        assert (root.path(ATTEMPT) / f"nodes/{rank}/tmp/marinskyrl/models/qwen/model.safetensors").is_file()
    metrics = _metrics(root)
    assert [line["step"] for line in metrics] == list(range(1, 9))
    rewards = [line["reward_mean"] for line in metrics]
    assert rewards[0] < 0.3 < 0.7 < rewards[-1]
    assert metrics[-1]["optimizer_updates"] == 16  # T/M = 2 updates in each of 8 steps

    # An interval of 3, the last step, and the newest two kept.
    assert sorted(path.name for path in root.path(CHECKPOINTS).glob("global_step_*")) == [
        "global_step_6",
        "global_step_8",
    ]
    assert (root.path(CHECKPOINTS) / "latest_ckpt_global_step.txt").read_text() == "8\n"
    export = root.path(f"{OUTPUT}/exports/global_step_8")
    assert sorted(path.name for path in export.iterdir()) == [
        "config.json",
        "model.safetensors",
        "tokenizer_config.json",
    ]
    assert json.loads((export / "config.json").read_bytes())["slipway_rehearsal"] is True
    manifest = _read(root, f"{OUTPUT}/terminal.json")
    assert manifest["rehearsal"] is True
    assert (manifest["run_id"], manifest["attempt_id"]) == ("lab/cat-count-2026.11.30", "0123456789ab")
    assert (manifest["global_step"], manifest["task_count"]) == (8, 2)
    assert (manifest["reward_first"], manifest["reward_last"]) == (rewards[0], rewards[-1])
    assert _read(root, f"{ATTEMPT}.json")["state"] == "succeeded"
    assert root.path(f"{OUTPUT}/resolved-launch.yaml").read_bytes() == document_bytes()
    assert "this is a rehearsal" in log

    with ProcessGateway() as gateway:
        again, _ = _launch(root, gateway)
        assert not gateway.requests
    assert again.state == "failed"
    assert "terminal.json exists: this version has already finished" in again.failure
    assert _read(root, f"{ATTEMPT}.json")["state"] == "succeeded"


def test_a_task_that_is_killed_fails_the_attempt_and_is_named(root):
    with ProcessGateway() as gateway:
        killed = []

        def kill():
            job_id = f"{gateway.job_id_of('', 'lab-cat-count-2026.11.30-0123456789ab')}"
            path = root.path(ATTEMPT) / "metrics.jsonl"
            while not path.is_file() or len(path.read_bytes().splitlines()) < 2:
                time.sleep(0.02)
            killed.append(gateway.pids(job_id)[1])
            os.kill(killed[0], signal.SIGKILL)

        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        started = time.monotonic()
        answer, _ = _launch(root, gateway, environ={STEP_VARIABLE: "0.5"})
        assert killed
        assert time.monotonic() - started < 20
    assert answer.state == "failed"
    assert "task 1 of 2 ended with exit code 137 (killed)" in answer.failure
    record = _read(root, f"{ATTEMPT}.json")
    assert (record["state"], record["failure"]) == ("failed", answer.failure)
    assert not root.path(f"{OUTPUT}/terminal.json").exists()


def test_a_fault_with_a_retry_resumes_from_the_checkpoint(root):
    with ProcessGateway() as gateway:
        answer, _ = _launch(root, gateway, document_bytes(iris__max_retries=1), _fault(1, "die", 5))
        log = gateway.logs(answer.iris_job_id)
    assert answer.state == "succeeded", answer.failure
    assert "fault: this task dies before step 5" in log
    assert "resumes from the checkpoint of step 3" in log
    assert [line["step"] for line in _metrics(root)] == list(range(1, 9))
    interrupted = [line["reward_mean"] for line in _metrics(root)]

    other = ObjectRoot(root.root.parent / "unbroken")
    import_inputs(other)
    with ProcessGateway() as gateway:
        assert _launch(other, gateway)[0].state == "succeeded"
    assert interrupted == [line["reward_mean"] for line in _metrics(other)]
    weights = "exports/global_step_8/model.safetensors"
    assert root.path(f"{OUTPUT}/{weights}").read_bytes() == other.path(f"{OUTPUT}/{weights}").read_bytes()


def test_a_torn_checkpoint_is_refused_and_the_one_before_it_used(root):
    with ProcessGateway() as gateway:
        answer, _ = _launch(
            root, gateway, document_bytes(iris__max_retries=1), _fault(0, "torn_checkpoint", 4)
        )
        log = gateway.logs(answer.iris_job_id)
    assert answer.state == "succeeded", answer.failure
    assert "checkpoint global_step_6 is torn" in log
    assert "resumes from the checkpoint of step 3" in log


SILENT = {
    "1 of 2 tasks joined within 20 s; missing ranks: [1]": _fault(1, "never_join"),
    "ranks [1] did not reach 'gradients' within 20 s": _fault(1, "stall", 2),
    "rank 0 did not answer within 20 s": _fault(0, "stall", 2),
}


@pytest.fixture(scope="module")
def answers_of_silent_gangs(tmp_path_factory):
    """All at once: each waits out its limit and costs next to nothing meanwhile."""

    def answer(fault):
        object_root = ObjectRoot(tmp_path_factory.mktemp("silent") / "objects")
        import_inputs(object_root)
        with ProcessGateway() as gateway:
            started = time.monotonic()
            found, _ = _launch(object_root, gateway, environ={LIMIT_VARIABLE: "20", **fault})
            return found, time.monotonic() - started

    with ThreadPoolExecutor() as pool:
        return dict(zip(SILENT, pool.map(answer, SILENT.values()), strict=True))


@pytest.mark.parametrize("sentence", SILENT)
def test_a_task_that_does_not_come_is_named_and_nothing_hangs(answers_of_silent_gangs, sentence):
    answer, seconds = answers_of_silent_gangs[sentence]
    assert answer.state == "failed"
    assert sentence in answer.failure
    assert seconds < 100


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
