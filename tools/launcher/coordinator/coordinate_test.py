"""The coordinator from bundle to end, in this process; its launchers are programs of their own."""

import datetime
import json
import multiprocessing
import os
import shutil
import signal
import sys
import time

import pytest

from tools.launcher.coordinator import children, main
from tools.launcher.coordinator.artifact_record import write_run_record
from tools.launcher.coordinator.bundle_for_test import (
    DATA,
    EVALUATION,
    EVALUATION_OUTPUT,
    MODEL,
    RUN,
    RUN_OUTPUT,
    FakeIris,
    attempt_of,
    finishing,
    graph,
    rehearsal_in_processes,
    run_coordinator,
    scripted,
    submitted,
)
from tools.launcher.coordinator.graph_file import read_graph
from tools.launcher.coordinator.main import FAILED, HELD_UP, INTERRUPTED, SUCCEEDED
from tools.launcher.coordinator.runtime import marinskyrl_runtime
from tools.launcher.documents.canonical import canonical_json
from tools.launcher.iris.jobs import IrisUnreachable
from tools.launcher.rehearsal.document_for_test import import_inputs
from tools.launcher.store.bundles import BUNDLE_PREFIX
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import StoreUnavailable
from tools.launcher.store.objects import FolderObjects
from tools.launcher.store.records import RunState, append_event, load_record

CHILD = "/tester/coordinator/child"
NEVER = scripted("raise SystemExit('a second launcher was started')")


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path / "store")


@pytest.fixture
def empty(tmp_path):
    return ObjectRoot(tmp_path / "objects")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    import_inputs(ObjectRoot(folder))
    return folder


@pytest.fixture
def root(tmp_path, inputs):
    """An object root in which model and data are finished."""
    shutil.copytree(inputs, tmp_path / "objects")
    return ObjectRoot(tmp_path / "objects")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(children, "_POLL_SECONDS", 0.01)


def _kinds(record):
    return [(event.kind, event.facts.get("step")) for event in record.events]


def _is(event, kind, step):
    return event.kind == kind and event.facts.get("step") == step


def test_it_imports_trains_and_evaluates_and_a_relaunch_reuses_all(tmp_path, store, empty):
    environ = json.dumps(
        {
            "SLIPWAY_TEST_WORK": str(tmp_path / "work"),
            "SLIPWAY_REHEARSAL_STEP_SECONDS": "0",
            "SLIPWAY_REHEARSAL_LIMIT_SECONDS": "60",
        }
    )
    runtime = rehearsal_in_processes(empty.root, environ)
    assignment = submitted(store, stage="evaluate")
    assert run_coordinator(assignment, store, empty.root, runtime) == SUCCEEDED
    record = load_record(store, assignment.key)
    assert record.state is RunState.SUCCEEDED
    assert _kinds(record) == [
        ("coordinator_started", None),
        ("step_started", MODEL),
        ("step_finished", MODEL),
        ("step_started", DATA),
        ("step_finished", DATA),
        ("step_started", RUN),
        ("child_submitted", None),
        ("step_finished", RUN),
        ("step_started", EVALUATION),
        ("step_finished", EVALUATION),
        ("succeeded", None),
    ]
    assert record.coordinator_job_id == "/tester/coordinator"
    assert len(record.child_job_ids) == len(record.attempt_ids) == 1
    child = next(event.facts for event in record.events if event.kind == "child_submitted")
    assert child["attempt_digest"] != assignment.key.launch_digest
    trained = next(event.facts for event in record.events if _is(event, "step_finished", RUN))
    assert trained["rehearsal"] is True
    assert trained["global_step"] == 8
    assert trained["reward_first"] < 0.3 < 0.7 < trained["reward_last"]
    result = json.loads((empty.path(EVALUATION_OUTPUT) / "result.json").read_bytes())
    assert (result["slipway_rehearsal"], result["episodes"]) == (True, 32)
    assert result["reward_mean"] > 0.7

    # The same launch once more: nothing happens. A new ordinal: everything is reused, no child.
    events = len(record.events)
    assert run_coordinator(assignment, store, empty.root, runtime) == SUCCEEDED
    assert len(load_record(store, assignment.key).events) == events
    again = submitted(store, stage="evaluate", ordinal=2)
    assert run_coordinator(again, store, empty.root, NEVER) == SUCCEEDED
    assert [kind for kind, _ in _kinds(load_record(store, again.key))] == [
        "coordinator_started",
        *["step_reused"] * 4,
        "succeeded",
    ]


def test_the_stage_bounds_the_walk(store, root):
    assignment = submitted(store, stage="import")
    assert run_coordinator(assignment, store, root.root, NEVER) == SUCCEEDED
    assert _kinds(load_record(store, assignment.key))[1:-1] == [("step_reused", MODEL), ("step_reused", DATA)]
    assert not root.path(RUN_OUTPUT).exists()


def test_a_failing_run_ends_with_task_and_cause(store, root):
    attempt = attempt_of(submitted(store))
    answer = {
        "run_id": attempt.run_id,
        "attempt_id": attempt.attempt_id,
        "state": "failed",
        "iris_job_id": CHILD,
        "iris_job_state": "failed",
        "launcher_commit": attempt.launcher_commit,
        "runtime_profile": attempt.runtime_profile,
        "model": None,
        "failure": "task 1 of 2 ended with exit code 137 (killed)",
    }
    script = (
        f"import sys\nprint('the last words', file=sys.stderr)\nprint({json.dumps(answer)!r})\nsys.exit(1)"
    )
    assignment = submitted(store)
    assert run_coordinator(assignment, store, root.root, scripted(script)) == FAILED
    record = load_record(store, assignment.key)
    assert record.state is RunState.FAILED
    assert record.reason == f"step {RUN}: task 1 of 2 ended with exit code 137 (killed)"
    failed = record.events[-1]
    assert failed.kind == "failed"
    assert failed.facts["child_job_id"] == record.child_job_ids[0] == CHILD
    assert (failed.facts["exit_code"], failed.facts["stderr_tail"]) == (1, "the last words")
    # A coordinator that is started again all the same adds nothing.
    assert run_coordinator(assignment, store, root.root, NEVER) == FAILED
    assert len(load_record(store, assignment.key).events) == len(record.events)


def test_where_nobody_imports_the_first_import_that_is_not_there_is_named(store, empty):
    assignment = submitted(store, stage="import")
    assert run_coordinator(assignment, store, empty.root, marinskyrl_runtime("a" * 40)) == FAILED
    assert load_record(store, assignment.key).reason == (
        f"step {MODEL} has no finished artifact at local://marin/lab/qwen/2026.09.01 and the MarinSkyRL launcher makes "
        "no hf_model. Import it first, or adopt an existing artifact"
    )


def test_a_maker_that_fails_is_quoted(store, empty):
    assignment = submitted(store, stage="import")
    assert run_coordinator(assignment, store, empty.root, NEVER) == FAILED
    failed = load_record(store, assignment.key).events[-1]
    assert failed.facts["reason"] == f"step {MODEL}: made by nobody (exit code 1)"
    assert failed.facts["stderr_tail"] == "made by nobody"


@pytest.mark.parametrize("address", [MODEL, DATA, RUN, EVALUATION])
def test_another_artifact_at_an_output_path_stops_the_run_and_the_same_one_is_reused(store, empty, address):
    objects = FolderObjects(empty)
    steps = {step.address: step for step in read_graph(canonical_json(graph())).steps}
    for step in steps.values():
        write_run_record(objects, step, rehearsal=True, export="local://b/e", attempt_id="0" * 12)
    assignment = submitted(store, stage="evaluate")
    assert run_coordinator(assignment, store, objects, NEVER) == SUCCEEDED

    changed = graph()
    next(step for step in changed["steps"] if step["address"] == address)["fingerprint"] = "d" * 64
    again = submitted(store, stage="evaluate", ordinal=2, graph_data=canonical_json(changed))
    assert run_coordinator(again, store, objects, NEVER) == FAILED
    reason = load_record(store, again.key).reason
    step = steps[address]
    assert f"holds {address} ({step.kind}, fingerprint {step.fingerprint[:8]}), the plan wants" in reason
    assert "fingerprint dddddddd). Give the changed step a new version" in reason


def test_a_damaged_bundle_fails_before_anything_starts(tmp_path, store, root):
    assignment = submitted(store)
    path = tmp_path / "store" / BUNDLE_PREFIX / assignment.bundle
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"seed: 17", b"seed: 18"))
    assert run_coordinator(assignment, store, root.root, NEVER) == FAILED
    record = load_record(store, assignment.key)
    assert "is damaged: its bytes have sha256:" in record.reason
    assert [kind for kind, _ in _kinds(record)] == ["coordinator_started", "failed"]


def test_a_bundle_of_another_document_is_refused(store, root):
    other = submitted(store, run__seed=99)
    assignment = submitted(store).model_copy(update={"bundle": other.bundle})
    assert run_coordinator(assignment, store, root.root, NEVER) == FAILED
    assert "this job was sent for sha256:" in load_record(store, assignment.key).reason


def test_an_unknown_stage_names_the_stages(store, root):
    assignment = submitted(store, stage="export")
    assert run_coordinator(assignment, store, root.root, NEVER) == FAILED
    reason = load_record(store, assignment.key).reason
    assert reason == (
        "the graph has no stage 'export'. Its stages: import, rl, evaluate. The export belongs to rl: the launcher "
        "that trains exports as its last act (export_hf=True), and refuses to start again once its terminal "
        "manifest is written"
    )


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (
            "import sys; sys.exit(7)",
            "the runtime launcher: the launcher ended with exit code 7 and no answer",
        ),
        ("print('hello')", "the launcher's output is not one JSON object (exit code 0): Expecting value"),
        ("import sys; print('why it broke', file=sys.stderr); print('{}')", "the answer lacks 'run_id'"),
    ],
)
def test_a_launcher_that_answers_badly_fails_the_step_and_its_child_is_ended(store, root, script, sentence):
    assignment = submitted(store)
    iris = FakeIris("running")
    assert run_coordinator(assignment, store, root.root, scripted(script), iris) == FAILED
    record = load_record(store, assignment.key)
    assert f"step {RUN}: " in record.reason
    assert sentence in record.reason
    facts = record.events[-1].facts
    assert facts["stderr_tail"] == ("why it broke" if "broke" in script else "")
    # Iris leaves the children of a failed job running: nobody would hold the GPUs to account.
    assert iris.cancelled == [facts["child_ended"]] == list(record.child_job_ids)


def test_a_failed_run_says_which_child_may_still_run(store, root):
    class Mute(FakeIris):
        def cancel(self, job_id):
            raise IrisUnreachable("http://iris", 5)

    assignment = submitted(store)
    assert (
        run_coordinator(assignment, store, root.root, scripted("print('hello')"), Mute("running")) == FAILED
    )
    assert (
        "may still run: Iris at http://iris did not answer"
        in load_record(store, assignment.key).events[-1].facts["child_running"]
    )


def test_anything_unexpected_is_recorded_as_a_failure(store, root):
    def explode():
        raise RuntimeError("boom")

    assignment = submitted(store)
    started = time.monotonic()
    slow = scripted("import time; time.sleep(30)")
    assert run_coordinator(assignment, store, root.root, slow, explode) == FAILED
    assert time.monotonic() - started < 20
    failed = load_record(store, assignment.key).events[-1].facts
    assert failed == {
        "reason": "the coordinator met an unexpected RuntimeError: boom",
        "child_running": "unexpected RuntimeError while ending it: boom",
    }


class Killed(BaseException):
    """Stands for SIGKILL: nothing handles it."""


class Mortal:
    """Store and objects in one that die before or after the n-th write, once."""

    def __init__(self, store, root, fatal, when):
        self.store, self.objects = store, FolderObjects(root)
        self.fatal, self.when, self.count = fatal, when, 0
        self.url, self.get, self.list = store.url, store.get, store.list
        self.read = self.objects.read

    def _write(self, write, *arguments):
        self.count += 1
        if self.count == self.fatal and self.when == "before":
            raise Killed
        result = write(*arguments)
        if self.count == self.fatal:
            raise Killed
        return result

    def put_if_absent(self, key, data):
        return self._write(self.store.put_if_absent, key, data)

    def write(self, uri, data):
        self._write(self.objects.write, uri, data)

    def write_once(self, uri, data):
        return self._write(self.objects.write_once, uri, data)


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_any_write_it_goes_on_and_launches_no_second_child(tmp_path, when, inputs):
    for fatal in range(1, 30):
        folder = tmp_path / str(fatal)
        shutil.copytree(inputs, folder / "objects")
        store, root = FileStore(folder / "store"), ObjectRoot(folder / "objects")
        assignment = submitted(store)
        runtime = scripted(finishing(attempt_of(assignment), root.root))
        mortal = Mortal(store, root, fatal, when)
        try:
            code = run_coordinator(assignment, mortal, mortal, runtime, FakeIris("succeeded"))
        except Killed:
            assert run_coordinator(assignment, store, root.root, runtime, FakeIris("succeeded")) == SUCCEEDED
        else:
            # It outlived every write there is.
            assert (code, mortal.count) == (SUCCEEDED, fatal - 1)
            assert fatal > 9
            break
        record = load_record(store, assignment.key)
        assert record.state is RunState.SUCCEEDED
        assert len(record.child_job_ids) == len(record.attempt_ids) == 1
        assert (root.root / "launcher-calls").read_text() == "x"
    else:
        raise AssertionError("there is no end of writes")


@pytest.mark.parametrize("states", [("running", "running", "succeeded"), ("succeeded",)])
def test_a_child_the_launcher_cannot_adopt_is_followed_and_then_the_way_on_is_said(store, root, states):
    assignment, iris = submitted(store), FakeIris(*states)
    runtime = NEVER.model_copy(update={"adopts": False})
    assert run_coordinator(assignment, store, root.root, runtime, iris) == FAILED
    record = load_record(store, assignment.key)
    (child,) = record.child_job_ids
    assert record.reason == (
        f"step {RUN}: child job {child} has succeeded, but the coordinator was started again while it ran, and "
        f"the export and {attempt_of(assignment).terminal_manifest_uri} are made by the launcher that submitted "
        "it. Relaunch: the new attempt resumes from the last checkpoint and finishes"
    )
    assert iris.cancelled == []


def test_a_child_the_launcher_cannot_adopt_is_judged_by_its_end(store, root):
    runtime = NEVER.model_copy(update={"adopts": False})
    assignment = submitted(store)
    iris = FakeIris("running", "failed", error="task 0: out of\nmemory, token hush-hush")
    code = run_coordinator(assignment, store, root.root, runtime, iris, {"HF_TOKEN": "hush-hush"})
    assert code == FAILED
    record = load_record(store, assignment.key)
    assert record.reason == (
        f"step {RUN}: child job {record.child_job_ids[0]} is failed: task 0: out of memory, token [credential]"
    )
    # A manifest of this attempt says more than how the job ended.
    other = submitted(store, ordinal=2)
    attempt = attempt_of(other)
    objects = FolderObjects(root)

    class Late(FakeIris):
        def describe(self, job_id):
            facts = super().describe(job_id)
            if facts.state == "failed":
                # As MarinSkyRL writes it.
                result = {"attempt_id": attempt.attempt_id, "model": {"policy_export_uri": "s3://b/e"}}
                objects.write(attempt.terminal_manifest_uri, json.dumps({"result": result}).encode())
            return facts

    assert run_coordinator(other, store, objects, runtime, Late("running", "failed")) == SUCCEEDED
    recorded = json.loads(objects.read(f"{RUN_OUTPUT}/.artifact.json"))
    assert (recorded["export"], recorded["rehearsal"]) == ("s3://b/e", False)


def test_without_a_child_the_launcher_that_adopts_none_is_started(store, root):
    assignment = submitted(store)
    runtime = scripted(finishing(attempt_of(assignment), root.root), adopts=False)
    assert run_coordinator(assignment, store, root.root, runtime) == SUCCEEDED


def test_a_child_that_iris_forgets_fails_the_step(store, root):
    class Forgetful(FakeIris):
        def describe(self, job_id):
            found, self.states = super().describe(job_id), []
            return found

    assignment = submitted(store)
    runtime = NEVER.model_copy(update={"adopts": False})
    assert run_coordinator(assignment, store, root.root, runtime, Forgetful("running")) == FAILED
    assert (
        "Iris no longer knows the child job /tester/coordinator/lab"
        in load_record(store, assignment.key).reason
    )


def test_a_child_is_followed_only_as_long_as_iris_answers_now_and_then(store, root, monkeypatch):
    class Away(FakeIris):
        def describe(self, job_id):
            if len(self.states) == 1:
                raise IrisUnreachable("http://iris", 5)
            return super().describe(job_id)

    monkeypatch.setattr(children, "PATIENCE_SECONDS", 0.1)
    assignment = submitted(store)
    runtime = NEVER.model_copy(update={"adopts": False})
    assert run_coordinator(assignment, store, root.root, runtime, Away("running", "running")) == FAILED
    record = load_record(store, assignment.key)
    assert record.leaves_jobs
    assert record.reason == (
        f"step {RUN}: Iris at http://iris has not answered for 0.1 s; the child job {record.child_job_ids[0]} may "
        "still run. Cancel this run when Iris answers, then relaunch"
    )


@pytest.mark.parametrize("adopts", [True, False])
def test_at_its_deadline_the_run_fails_and_its_child_is_ended(store, root, adopts):
    assignment = submitted(store).model_copy(update={"deadline_seconds": 0})
    iris = FakeIris("running")
    runtime = scripted("import time; time.sleep(60)", adopts=adopts)
    started = time.monotonic()
    assert run_coordinator(assignment, store, root.root, runtime, iris) == FAILED
    assert time.monotonic() - started < 30
    record = load_record(store, assignment.key)
    assert record.reason == (
        f"step {RUN}: the coordinator's deadline has come and the child was still at work. Raise the execution's "
        "coordinator_timeout_hours, build again, and relaunch"
    )
    assert iris.cancelled == [record.events[-1].facts["child_ended"]] == list(record.child_job_ids)


def test_the_deadline_counts_from_the_first_start(store, root, monkeypatch):
    assignment = submitted(store).model_copy(update={"deadline_seconds": 3600})
    started = {"job_id": assignment.job_id, "bundle": assignment.bundle}
    append_event(store, assignment.key, "coordinator_started", "coordinator", started)
    now, monotonic = time.time, time.monotonic()
    iris = FakeIris("running")
    runtime = scripted("import time; time.sleep(60)", adopts=True)
    with monkeypatch.context() as later:
        later.setattr(main.time, "time", lambda: now() + 3601)
        assert run_coordinator(assignment, store, root.root, runtime, iris) == FAILED
    assert time.monotonic() - monotonic < 30
    assert "the coordinator's deadline has come" in load_record(store, assignment.key).reason


@pytest.mark.parametrize("seconds", [0, 59, 3600])
def test_what_a_run_has_spent(store, seconds):
    assignment = submitted(store)
    assert main._spent_seconds(load_record(store, assignment.key), time.time() + 3600) == 0
    append_event(store, assignment.key, "coordinator_started", "coordinator", {"job_id": "a", "bundle": "b"})
    append_event(store, assignment.key, "coordinator_started", "coordinator", {"job_id": "a", "bundle": "b"})
    record = load_record(store, assignment.key)
    first = datetime.datetime.fromisoformat(record.events[-2].at).timestamp()
    assert main._spent_seconds(record, first + seconds) == pytest.approx(seconds)
    assert main._spent_seconds(record, first - 60) == 0
    assert main._spent_seconds(None, first) == 0


@pytest.mark.parametrize("away", ["store", "objects", "iris"])
def test_what_is_away_for_a_moment_fails_no_run(tmp_path, store, root, away):
    class Away(FileStore):
        def put_if_absent(self, key, data):
            raise StoreUnavailable(self.url, f"write {key}", "no route to host")

    class NoObjects(FolderObjects):
        def read(self, uri):
            raise StoreUnavailable("s3://b", f"read {uri}", "no route to host")

    def unreachable():
        raise IrisUnreachable("http://iris", 5)

    assignment = submitted(store)
    runtime = scripted(finishing(attempt_of(assignment), root.root), adopts=False)
    code = run_coordinator(
        assignment,
        Away(tmp_path / "store") if away == "store" else store,
        NoObjects(root) if away == "objects" else FolderObjects(root),
        runtime,
        unreachable if away == "iris" else None,
    )
    assert code == HELD_UP
    record = load_record(store, assignment.key)
    assert record is None or record.state is RunState.RUNNING
    assert run_coordinator(assignment, store, root.root, runtime) == SUCCEEDED


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("cancelled", "is over already, it is cancelled: wrong data. Relaunch it as a new ordinal\n"),
        ("cancel_requested", "is being cancelled\n"),
    ],
)
def test_a_cancelled_run_is_not_taken_up_and_its_child_is_ended(store, root, capsys, kind, said):
    assignment = submitted(store)
    append_event(
        store, assignment.key, "coordinator_started", "coordinator", {"job_id": "/tester/coordinator"}
    )
    append_event(store, assignment.key, "child_submitted", "coordinator", {"job_id": CHILD})
    append_event(
        store, assignment.key, kind, "ann", {"authorized": "ann: wrong data", "reason": "wrong data"}
    )
    iris = FakeIris("running")
    assert run_coordinator(assignment, store, root.root, NEVER, iris) == FAILED
    assert iris.cancelled == [CHILD]
    assert said in capsys.readouterr().err
    assert len(load_record(store, assignment.key).events) == 3


def test_credentials_reach_the_launcher_and_nothing_else(tmp_path, store, root, capfd):
    value = "tok-9f27-secret"
    script = (
        "import os, sys\n"
        "print('got', os.environ['HF_TOKEN'], file=sys.stderr)\n"
        "print('{\"token\": \"' + os.environ['HF_TOKEN'] + '\"}')\n"
        "sys.exit(3)\n"
    )
    assignment = submitted(store)
    code = run_coordinator(assignment, store, root.root, scripted(script), None, {"HF_TOKEN": value})
    assert code == FAILED
    failed = load_record(store, assignment.key).events[-1]
    assert failed.facts["stderr_tail"] == "got [credential]"
    assert "got [credential]" in capfd.readouterr().err
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or value.encode() not in path.read_bytes(), path


def _coordinate(assignment, store_root, objects, script):
    sys.exit(
        run_coordinator(assignment, FileStore(store_root), objects, scripted(script), FakeIris("running"))
    )


def test_interrupted_it_records_no_end_leaves_the_child_and_goes_on_later(tmp_path, store, root):
    assignment = submitted(store)
    marks = tmp_path / "marks"
    slow = (
        "import signal, sys, time\n"
        f"def end(*_):\n    open({str(marks)!r}, 'a').write('ended'); sys.exit(0)\n"
        f"signal.signal(signal.SIGTERM, end)\nopen({str(marks)!r}, 'w').write('started ')\ntime.sleep(60)\n"
    )
    process = multiprocessing.get_context("spawn").Process(
        target=_coordinate, args=(assignment, tmp_path / "store", root.root, slow)
    )
    process.start()
    deadline = time.monotonic() + 60
    while not marks.exists() or load_record(store, assignment.key).child_job_ids == ():
        assert process.is_alive()
        assert time.monotonic() < deadline, _kinds(load_record(store, assignment.key))
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    process.join(20)
    assert process.exitcode == INTERRUPTED
    assert marks.read_text() == "started ended"
    record = load_record(store, assignment.key)
    assert record.state is RunState.RUNNING
    assert _kinds(record)[-1] == ("child_submitted", None)

    quick = scripted(finishing(attempt_of(assignment), root.root))
    assert run_coordinator(assignment, store, root.root, quick, FakeIris("running")) == SUCCEEDED
    after = load_record(store, assignment.key)
    assert after.state is RunState.SUCCEEDED
    assert ("step_reused", MODEL) in _kinds(after)
    restart = [event.facts for event in after.events if event.kind == "coordinator_started"][1]
    assert restart["restarted"] is True


def test_a_relaunch_of_a_run_that_finished_unrecorded_reuses_it(store, root):
    first = submitted(store)
    objects = FolderObjects(root)
    runtime = scripted(finishing(attempt_of(first), root.root))
    assert run_coordinator(first, store, objects, runtime) == SUCCEEDED
    mark = root.path(RUN_OUTPUT) / ".artifact.json"
    mark.unlink()
    again = submitted(store, ordinal=2)
    assert run_coordinator(again, store, objects, NEVER) == SUCCEEDED
    assert ("step_reused", RUN) in _kinds(load_record(store, again.key))

    # A manifest of another document proves nothing: the runtime is asked (and refuses: its own tests).
    mark.unlink()
    other = submitted(store, run__seed=99)
    assert run_coordinator(other, store, objects, NEVER) == FAILED
    assert "ended with exit code 1 and no answer" in load_record(store, other.key).reason
    assert "a second launcher" in load_record(store, other.key).events[-1].facts["stderr_tail"]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
