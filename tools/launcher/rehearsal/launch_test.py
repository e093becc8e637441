"""The launcher's rules, with a scheduler that says what the test wants."""

import json
import sys

import pytest

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.iris.delivered_secrets import DIRECTORY_VARIABLE
from tools.launcher.iris.jobs import (
    IrisUnreachable,
    JobFacts,
    JobNameTaken,
    JobRefused,
    ReplyLost,
    TaskFacts,
)
from tools.launcher.iris.task_bootstrap import CODE_ARCHIVE
from tools.launcher.rehearsal import launch as launch_module
from tools.launcher.rehearsal.document import DocumentProblem, read_document
from tools.launcher.rehearsal.document_for_test import document_bytes
from tools.launcher.rehearsal.launch import child_request, failure_reason, launch
from tools.launcher.rehearsal.outcome import PEER_FAILED, Outcome
from tools.launcher.store.locations import ObjectRoot

CHILD = "/tester/coordinator/lab-cat-count-2026.11.30-0123456789ab"
OUTPUT = "local://marin/lab/cat-count/2026.11.30"
ATTEMPTS = "local://scratch/tmp/ttl=14d/skyrl/marin/lab/cat-count/2026.11.30/attempts"


def _task(index, state="failed", code=1, error="", attempts=1):
    return TaskFacts(index=index, state=state, exit_code=code, error=error, attempts=attempts)


def _argv(data):
    return child_request(read_document(data, source="d"), data, "file:///tmp/objects", b"zip", {}, {}).argv


def _facts(state, tasks=(), error="", pending_reason="", data=None):
    return JobFacts(
        job_id=CHILD,
        name="child",
        state=state,
        error=error,
        pending_reason=pending_reason,
        argv=("/usr/bin/python3", *_argv(data or document_bytes())[1:]),
        env={},
        tasks=tuple(tasks),
    )


class FakeIris:
    def __init__(self, answers, submit_error=None):
        self.answers, self.submit_error = list(answers), submit_error
        self.requests, self.cancelled = [], []

    def job_id_of(self, user, name):
        return CHILD

    def submit(self, request):
        if self.submit_error is not None:
            raise self.submit_error
        self.requests.append(request)
        return CHILD

    def describe(self, job_id):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    def cancel(self, job_id):
        self.cancelled.append(job_id)


@pytest.fixture
def root(tmp_path):
    return ObjectRoot(tmp_path / "objects")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(launch_module, "_POLL_SECONDS", 0.01)


def _launch(root, iris, data=None, environ=None):
    said = []
    answer = launch(
        data or document_bytes(),
        source="launch.yaml",
        object_root_url="file:///tmp/objects",
        object_root=root,
        code_archive=b"zip",
        gateway=lambda: iris,
        environ=environ or {},
        say=said.append,
    )
    return answer, said


def _finish(root, **changes):
    """Leave what a gang leaves that ended well."""

    def leave():
        values = {
            "rehearsal": True,
            "global_step": 8,
            "resumed_from_step": 0,
            "checkpoint": f"{OUTPUT}/ckpt/global_step_8",
            "export": f"{OUTPUT}/exports/global_step_8",
            "task_count": 2,
            "reward_first": 0.1,
            "reward_last": 0.9,
            "validation_reward": 1.0,
            "stand_in": "cats",
            "notices": [],
            **changes,
        }
        attempt = root.path(f"{ATTEMPTS}/0123456789ab")
        attempt.mkdir(parents=True, exist_ok=True)
        (attempt / "outcome.json").write_text(Outcome(**values).model_dump_json())
        for uri in (values["checkpoint"], values["export"]):
            if uri is not None:
                root.path(uri).mkdir(parents=True, exist_ok=True)
        resolved = root.path(f"{OUTPUT}/resolved-launch.yaml")
        resolved.parent.mkdir(parents=True, exist_ok=True)
        resolved.write_bytes(document_bytes())
        return _facts("succeeded")

    return leave


def _record(root):
    return json.loads(root.path(f"{ATTEMPTS}/0123456789ab.json").read_bytes())


def test_the_answer_has_exactly_the_contracts_fields(root):
    answer, said = _launch(root, FakeIris([_facts("pending"), _facts("running"), _finish(root)]))
    assert answer.model_dump() == {
        "run_id": "lab/cat-count-2026.11.30",
        "attempt_id": "0123456789ab",
        "state": "succeeded",
        "iris_job_id": CHILD,
        "iris_job_state": "succeeded",
        "launcher_commit": "81ae0ef7033c500207b191a2ae7c3806f6dc78ff",
        "runtime_profile": "fsdp",
        "model": "lab/qwen@2026.09.01:1512cff8",
        "failure": None,
    }
    assert said == [
        f"submitted the child job {CHILD}: 2 x 8 H100",
        "child job is pending",
        "child job is running",
    ]
    assert _record(root)["state"] == "succeeded"
    assert json.loads(root.path(f"{OUTPUT}/terminal.json").read_bytes())["global_step"] == 8


def test_the_request_is_the_documents_topology_and_the_stand_ins_needs():
    data = document_bytes(iris__max_retries=2)
    environ = {"SLIPWAY_REHEARSAL_FAULT": "{}", "HF_TOKEN": "secret", "PATH": "/bin"}
    request = child_request(read_document(data, source="d"), data, "file:///tmp/objects", b"zip", environ, {})
    assert request.name == "lab-cat-count-2026.11.30-0123456789ab"
    assert (request.replicas, request.gpus_per_task, request.gpu_variant) == (2, 8, "H100")
    assert (request.cpu, request.memory, request.coscheduled) == (0.5, "512MB", True)
    assert (request.max_task_retries, request.timeout_seconds) == (2, 6 * 3600)
    assert request.files == {CODE_ARCHIVE: b"zip", "launch.yaml": data}
    assert request.argv[-4:] == (
        "tools.launcher.rehearsal",
        "task",
        "--object-root=file:///tmp/objects",
        f"--document={sha256_hex(data)}",
    )
    assert request.env == {"SLIPWAY_REHEARSAL_FAULT": "{}"}


def test_prepare_submits_nothing_and_detach_does_not_wait(root):
    iris = FakeIris([_facts("running")])
    assert _launch(root, iris, document_bytes(run__submission="prepare"))[0].state == "prepared"
    assert not iris.requests
    answer, _ = _launch(root, iris, document_bytes(run__submission="detach"))
    assert (answer.state, answer.iris_job_id, len(iris.requests)) == ("submitted", CHILD, 1)


def test_a_finished_version_is_refused_before_anything_is_submitted(root):
    manifest = root.path(f"{OUTPUT}/terminal.json")
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{}")
    iris = FakeIris([_facts("running")])
    answer, _ = _launch(root, iris)
    assert answer.state == "failed"
    assert answer.failure == (
        f"the terminal manifest {OUTPUT}/terminal.json exists: this version has already finished. "
        "Give it a new version"
    )
    assert not iris.requests
    assert manifest.read_text() == "{}"


def test_without_a_declared_credential_nothing_is_submitted(root):
    iris = FakeIris([])
    answer = launch(
        document_bytes(),
        source="launch.yaml",
        object_root_url="file:///tmp/objects",
        object_root=root,
        code_archive=b"zip",
        gateway=lambda: iris,
        environ={"HF_TOKEN": "in the environment"},
        say=lambda _: None,
        credentials=("HF_TOKEN",),
    )
    assert answer.state == "failed"
    assert answer.failure.startswith("HF_TOKEN: declared as credential of this run, and not among what Iris")
    assert "in the environment" not in answer.failure
    assert _record(root)["failure"] == answer.failure
    assert not iris.requests


def test_a_child_that_exists_is_adopted(root):
    iris = FakeIris([_facts("running"), _facts("running"), _finish(root)], JobNameTaken(CHILD))
    answer, said = _launch(root, iris)
    assert answer.state == "succeeded"
    assert said[0] == f"adopts the child job {CHILD}"


@pytest.mark.parametrize("error", [JobNameTaken(CHILD), ReplyLost("child")])
def test_a_job_of_another_document_is_not_followed(root, error):
    other = _facts("running", data=document_bytes(run__seed=3))
    iris = FakeIris([other], error)
    answer, _ = _launch(root, iris)
    assert answer.state == "failed"
    assert f"the job {CHILD} was submitted for another document or object root: its command" in answer.failure
    assert answer.failure.endswith("It is left alone; launch as a new ordinal")
    assert not iris.cancelled


def test_a_job_of_another_document_is_told_from_this_one_whatever_credentials_both_have(root, tmp_path):
    names = ("HF_TOKEN", "WANDB_API_KEY")
    for name in names:
        (tmp_path / name).write_text("value")
    theirs = document_bytes(run__seed=3)
    flags = tuple(f"--credential={name}" for name in names)
    other = _facts("running", data=theirs)
    iris = FakeIris([other.model_copy(update={"argv": (*other.argv, *flags)})], JobNameTaken(CHILD))
    answer = launch(
        document_bytes(),
        source="launch.yaml",
        object_root_url="file:///tmp/objects",
        object_root=root,
        code_archive=b"zip",
        gateway=lambda: iris,
        environ={DIRECTORY_VARIABLE: str(tmp_path)},
        say=lambda _: None,
        credentials=names,
    )
    assert sha256_hex(theirs) in answer.failure and sha256_hex(document_bytes()) in answer.failure


def test_a_child_that_has_ended_is_judged_and_not_made_again(root):
    failed = _facts("failed", [_task(0, code=7)])
    iris = FakeIris([failed], JobNameTaken(CHILD))
    answer, _ = _launch(root, iris)
    assert (answer.state, answer.iris_job_id) == ("failed", CHILD)
    assert "task 0 of 1 ended with exit code 7" in answer.failure
    assert not iris.requests


def test_a_lost_reply_is_looked_up(root):
    found = [_facts("running"), _facts("running"), _finish(root)]
    answer, said = _launch(root, FakeIris(found, ReplyLost("child")))
    assert answer.state == "succeeded"
    assert said[0] == f"the answer to the submission was lost; Iris has the child job {CHILD}"
    answer, _ = _launch(ObjectRoot(root.root / "other"), FakeIris([None], ReplyLost("child")))
    assert answer.state == "failed"
    assert "was not answered and Iris has no such job. Launch again" in answer.failure


def test_a_refusal_is_passed_on(root):
    answer, _ = _launch(root, FakeIris([None], JobRefused("no group has 9 GPUs")))
    assert answer.failure == (
        "Iris refused the child job lab-cat-count-2026.11.30-0123456789ab: no group has 9 GPUs"
    )
    assert _record(root) == {
        "run_id": "lab/cat-count-2026.11.30",
        "attempt_id": "0123456789ab",
        "state": "failed",
        "failure": answer.failure,
        "iris_job_id": None,
        "rehearsal": True,
    }


def test_an_iris_that_is_away_for_a_moment_is_waited_for(root):
    away = IrisUnreachable("http://x", 1.0)
    assert _launch(root, FakeIris([_facts("running"), away, away, _finish(root)]))[0].state == "succeeded"


def test_an_iris_that_stays_away_ends_the_wait(root):
    iris = FakeIris([_facts("running"), IrisUnreachable("http://x", 1.0)])
    answer, _ = _launch(root, iris, environ={"SLIPWAY_REHEARSAL_LIMIT_SECONDS": "0.2"})
    assert answer.state == "failed"
    assert f"the child job {CHILD} may still run" in answer.failure


def test_a_child_that_is_never_placed_is_cancelled(root):
    iris = FakeIris([_facts("pending", pending_reason="no room")])
    answer, _ = _launch(root, iris, environ={"SLIPWAY_REHEARSAL_LIMIT_SECONDS": "0.1"})
    assert answer.failure == f"child job {CHILD} stayed pending for 0.5 s and was cancelled: no room"
    assert iris.cancelled == [CHILD]


def test_a_child_without_progress_is_cancelled(root):
    iris = FakeIris([_facts("running")])
    environ = {"SLIPWAY_REHEARSAL_LIMIT_SECONDS": "0.1", "SLIPWAY_REHEARSAL_STEP_SECONDS": "0"}
    answer, _ = _launch(root, iris, environ=environ)
    assert answer.failure == (
        f"child job {CHILD} stayed running for 0.2 s and was cancelled: no task made progress"
    )


def test_a_child_that_vanishes_is_a_failure(root):
    answer, _ = _launch(root, FakeIris([_facts("running"), None]))
    assert (answer.failure, answer.iris_job_state) == (
        f"Iris no longer knows the child job {CHILD}",
        "missing",
    )


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (
            lambda root: root.path(f"{OUTPUT}/resolved-launch.yaml").unlink(),
            "resolved-launch.yaml was not stored",
        ),
        (
            lambda root: root.path(f"{OUTPUT}/resolved-launch.yaml").write_bytes(document_bytes(run__seed=1)),
            "resolved-launch.yaml is not the document of this attempt",
        ),
        (
            lambda root: root.path(f"{ATTEMPTS}/0123456789ab/outcome.json").unlink(),
            "rank 0 left no outcome",
        ),
        (
            lambda root: root.path(f"{OUTPUT}/exports/global_step_8").rmdir(),
            f"its export {OUTPUT}/exports/global_step_8 is missing",
        ),
        (
            lambda root: root.path(f"{OUTPUT}/ckpt/global_step_8").rmdir(),
            f"its checkpoint {OUTPUT}/ckpt/global_step_8 is missing",
        ),
    ],
)
def test_success_needs_its_evidence(root, prepare, sentence):
    def end():
        facts = _finish(root)()
        prepare(root)
        return facts

    answer, _ = _launch(root, FakeIris([end]))
    assert answer.state == "failed"
    assert sentence in answer.failure
    assert not root.path(f"{OUTPUT}/terminal.json").exists()


def test_the_manifest_is_written_once(root):
    def another_writer_was_faster():
        facts = _finish(root)()
        root.path(f"{OUTPUT}/terminal.json").write_text("first")
        return facts

    assert _launch(root, FakeIris([another_writer_was_faster]))[0].state == "succeeded"
    assert root.path(f"{OUTPUT}/terminal.json").read_text() == "first"


def test_a_document_that_cannot_be_read_gives_no_answer(root):
    with pytest.raises(DocumentProblem):
        _launch(root, FakeIris([None]), b"{}")


def test_a_bad_limit_is_a_failure_with_its_sentence(root):
    answer, _ = _launch(root, FakeIris([None]), environ={"SLIPWAY_REHEARSAL_LIMIT_SECONDS": "soon"})
    assert (
        answer.failure == "SLIPWAY_REHEARSAL_LIMIT_SECONDS is 'soon'. Give a number of seconds, at least 0.1"
    )


def _leave_failure(folder, rank, reason, start=0):
    (folder / "failures").mkdir(parents=True, exist_ok=True)
    (folder / "failures" / f"{rank}.json").write_text(json.dumps({"reason": reason, "start": start}))


def test_the_cause_is_the_task_that_blames_nobody(tmp_path):
    _leave_failure(tmp_path, 0, "lost rank 1")
    facts = _facts("failed", [_task(0, code=PEER_FAILED), _task(1, code=137, error="Exit code: 137")])
    assert failure_reason(facts, tmp_path) == (
        f"child job {CHILD} is failed: task 1 of 2 ended with exit code 137 (killed)"
    )


def test_the_exit_code_is_said_once(tmp_path):
    said = "Exit code: 3. stderr: [rehearsal] this task failed: no rows"
    assert failure_reason(_facts("failed", [_task(0, code=3, error=said)]), tmp_path) == (
        f"child job {CHILD} is failed: task 0 of 1 ended with exit code 3: "
        "[rehearsal] this task failed: no rows"
    )


def test_a_task_is_quoted_from_what_it_left(tmp_path):
    _leave_failure(tmp_path, 0, "the staged tokenizer has another revision")
    facts = _facts("failed", [_task(0, code=3, error="tail"), _task(1, "cosched_failed", None)])
    assert failure_reason(facts, tmp_path).endswith(
        "task 0 of 2 ended with exit code 3: the staged tokenizer has another revision"
    )


def test_what_an_earlier_start_left_is_not_quoted(tmp_path):
    _leave_failure(tmp_path, 1, "old news", start=0)
    facts = _facts("failed", [_task(0, "killed", None), _task(1, code=137, error="new", attempts=2)])
    assert failure_reason(facts, tmp_path).endswith("exit code 137 (killed): new")


def test_if_all_blame_another_the_first_is_quoted(tmp_path):
    facts = _facts(
        "failed", [_task(0, code=PEER_FAILED, error="lost rank 1"), _task(1, "worker_failed", None)]
    )
    assert "task 0 of 2 ended with exit code 4: lost rank 1" in failure_reason(facts, tmp_path)


def test_a_job_without_a_failed_task_gives_its_own_reason(tmp_path):
    assert failure_reason(_facts("killed", error="Terminated  by\nuser"), tmp_path) == (
        f"child job {CHILD} is killed: Terminated by user"
    )
    assert failure_reason(_facts("killed"), tmp_path).endswith("no task says why")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
