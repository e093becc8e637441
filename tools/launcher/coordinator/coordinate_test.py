"""The coordinator from bundle to end, with the rehearsal's gang as real processes."""

import json
import multiprocessing
import os
import signal
import sys
import time

import pytest

from tools.launcher.coordinator.bundle_for_test import (
    DATA,
    EVALUATION,
    EVALUATION_OUTPUT,
    MODEL,
    RUN,
    RUN_OUTPUT,
    graph,
    rehearsal_in_processes,
    scripted,
    submitted,
)
from tools.launcher.coordinator.main import coordinate
from tools.launcher.documents.canonical import canonical_json
from tools.launcher.store.bundles import BUNDLE_PREFIX
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.records import RunState, append_event, load_record

CHILD = "/tester/coordinator/child"


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path / "store")


@pytest.fixture
def root(tmp_path):
    return ObjectRoot(tmp_path / "objects")


def _environ(tmp_path, **more):
    return json.dumps(
        {
            "SLIPWAY_TEST_WORK": str(tmp_path / "work"),
            "SLIPWAY_REHEARSAL_STEP_SECONDS": "0",
            "SLIPWAY_REHEARSAL_LIMIT_SECONDS": "20",
            **more,
        }
    )


def _kinds(record):
    return [(event.kind, event.facts.get("step")) for event in record.events]


def _nobody(_name):
    return None


def test_it_imports_trains_and_evaluates_and_a_relaunch_reuses_all(tmp_path, store, root):
    runtime = rehearsal_in_processes(root.root, _environ(tmp_path))
    assignment = submitted(store, stage="evaluate")
    assert coordinate(assignment, store, root, runtime, _nobody) == 0
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
    result = json.loads((root.path(EVALUATION_OUTPUT) / "result.json").read_bytes())
    assert (result["slipway_rehearsal"], result["episodes"]) == (True, 32)
    assert result["reward_mean"] > 0.7

    # The same launch once more: nothing happens. A new ordinal: everything is reused, no child.
    events = len(record.events)
    assert coordinate(assignment, store, root, runtime, _nobody) == 0
    assert len(load_record(store, assignment.key).events) == events
    again = submitted(store, stage="evaluate", ordinal=2)
    assert coordinate(again, store, root, runtime, _nobody) == 0
    assert [kind for kind, _ in _kinds(load_record(store, again.key))] == [
        "coordinator_started",
        *["step_reused"] * 4,
        "succeeded",
    ]


def _is(event, kind, step):
    return event.kind == kind and event.facts.get("step") == step


def test_the_stage_bounds_the_walk(store, root):
    assignment = submitted(store, stage="import")
    assert coordinate(assignment, store, root, rehearsal_in_processes(root.root), _nobody) == 0
    # The import stage ends at the dataset; the model is not among what it needs.
    assert ("step_finished", DATA) in _kinds(load_record(store, assignment.key))
    assert not root.path(RUN_OUTPUT).exists()


def test_a_failing_gang_fails_the_run_with_task_and_cause(tmp_path, store, root):
    fault = json.dumps({"rank": 1, "kind": "die", "step": 3})
    runtime = rehearsal_in_processes(root.root, _environ(tmp_path, SLIPWAY_REHEARSAL_FAULT=fault))
    assignment = submitted(store)
    assert coordinate(assignment, store, root, runtime, _nobody) == 1
    record = load_record(store, assignment.key)
    assert record.state is RunState.FAILED
    assert "task 1 of 2 ended with exit code 137 (killed)" in record.reason
    failed = record.events[-1]
    assert failed.kind == "failed"
    assert failed.facts["child_job_id"] == record.child_job_ids[0]
    assert "[rehearsal] submitted the child job" in failed.facts["stderr_tail"]
    # The same coordinator again adds nothing.
    assert coordinate(assignment, store, root, runtime, _nobody) == 1
    assert len(load_record(store, assignment.key).events) == len(record.events)


def test_another_artifact_at_an_output_path_stops_the_run(tmp_path, store, root):
    runtime = rehearsal_in_processes(root.root, _environ(tmp_path))
    assert coordinate(submitted(store, stage="import"), store, root, runtime, _nobody) == 0
    changed = graph()
    changed["steps"][1]["fingerprint"] = "d" * 64
    assignment = submitted(store, ordinal=2, graph_data=canonical_json(changed))
    assert coordinate(assignment, store, root, runtime, _nobody) == 1
    reason = load_record(store, assignment.key).reason
    assert "holds lab/cats@2026.09.01 (dataset, fingerprint 425a569b), the plan wants" in reason
    assert "fingerprint dddddddd). Give the changed step a new version" in reason
    assert not root.path(RUN_OUTPUT).exists()


def test_a_damaged_bundle_fails_before_anything_starts(tmp_path, store, root):
    assignment = submitted(store)
    path = tmp_path / "store" / BUNDLE_PREFIX / assignment.bundle
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"seed: 17", b"seed: 18"))
    assert coordinate(assignment, store, root, rehearsal_in_processes(root.root), _nobody) == 1
    record = load_record(store, assignment.key)
    assert "is damaged: its bytes have sha256:" in record.reason
    assert [kind for kind, _ in _kinds(record)] == ["coordinator_started", "failed"]


def test_a_bundle_of_another_document_is_refused(store, root):
    other = submitted(store, run__seed=99)
    assignment = submitted(store).model_copy(update={"bundle": other.bundle})
    assert coordinate(assignment, store, root, rehearsal_in_processes(root.root), _nobody) == 1
    assert "this job was sent for sha256:" in load_record(store, assignment.key).reason


def test_an_unknown_stage_names_the_stages(store, root):
    assignment = submitted(store, stage="export")
    assert coordinate(assignment, store, root, rehearsal_in_processes(root.root), _nobody) == 1
    reason = load_record(store, assignment.key).reason
    assert reason == "the graph has no stage 'export'. Its stages: evaluate, import, rl"


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
def test_a_launcher_that_answers_badly_fails_the_step(store, root, script, sentence):
    assignment = submitted(store)
    assert coordinate(assignment, store, root, scripted(script, root.root), _nobody) == 1
    record = load_record(store, assignment.key)
    assert f"step {RUN}: " in record.reason
    assert sentence in record.reason
    if "broke" in script:
        assert record.events[-1].facts["stderr_tail"] == "why it broke"


def test_anything_unexpected_is_recorded_as_a_failure(store, root):
    def explode(_name):
        raise RuntimeError("boom")

    assignment = submitted(store)
    runtime = scripted("import time; time.sleep(30)", root.root)
    started = time.monotonic()
    assert coordinate(assignment, store, root, runtime, explode) == 1
    assert time.monotonic() - started < 20
    assert load_record(store, assignment.key).reason == "the coordinator met an unexpected RuntimeError: boom"


def _coordinate(assignment, store_root, objects, environ):
    root = ObjectRoot(objects)
    runtime = rehearsal_in_processes(objects, environ)
    sys.exit(coordinate(assignment, FileStore(store_root), root, runtime, _nobody))


def _started(tmp_path, store, root, assignment, environ):
    process = multiprocessing.get_context("spawn").Process(
        target=_coordinate, args=(assignment, tmp_path / "store", root.root, environ)
    )
    process.start()
    attempts = root.path("local://scratch/tmp/ttl=14d/skyrl/marin/lab/cat-count/2026.11.30/attempts")
    deadline = time.monotonic() + 60
    while not list(attempts.glob("*/metrics.jsonl")):
        assert time.monotonic() < deadline, _kinds(load_record(store, assignment.key))
        assert process.is_alive()
        time.sleep(0.05)
    return process


def test_sigterm_ends_in_a_failed_event_and_a_restart_goes_on(tmp_path, store, root):
    assignment = submitted(store, iris__max_retries=0)
    slow = _environ(tmp_path, SLIPWAY_REHEARSAL_STEP_SECONDS="1")
    process = _started(tmp_path, store, root, assignment, slow)
    os.kill(process.pid, signal.SIGTERM)
    process.join(20)
    assert process.exitcode == 1
    record = load_record(store, assignment.key)
    assert record.state is RunState.FAILED
    assert record.reason == "the coordinator was ended by SIGTERM"
    assert sum(event.kind == "failed" for event in record.events) == 1

    quick = rehearsal_in_processes(root.root, _environ(tmp_path))
    assert coordinate(assignment, store, root, quick, _nobody) == 0
    after = load_record(store, assignment.key)
    assert after.state is RunState.SUCCEEDED
    assert ("step_reused", MODEL) in _kinds(after)
    restart = [event.facts for event in after.events if event.kind == "coordinator_started"][1]
    assert restart["restarted"] is True


def test_a_coordinator_killed_after_the_manifest_only_writes_what_is_missing(tmp_path, store, root):
    assignment = submitted(store)
    runtime = rehearsal_in_processes(root.root, _environ(tmp_path))
    assert coordinate(assignment, store, root, runtime, _nobody) == 0
    # As if killed right after the launcher wrote the manifest: no step record, no end in the record.
    (root.path(RUN_OUTPUT) / ".artifact.json").unlink()
    unfinished = FileStore(tmp_path / "unfinished")
    again = submitted(unfinished)
    assert again == assignment
    append_event(
        unfinished, again.key, "coordinator_started", "coordinator", {"job_id": "/tester/coordinator"}
    )
    append_event(
        unfinished, again.key, "child_submitted", "coordinator", {"job_id": CHILD, "attempt_id": "x" * 12}
    )
    never = scripted("raise SystemExit('a second launcher was started')", root.root)
    assert coordinate(again, unfinished, root, never, _nobody) == 0
    record = load_record(unfinished, again.key)
    assert record.child_job_ids == (CHILD,)
    assert record.state is RunState.SUCCEEDED


def test_a_relaunch_of_a_run_that_finished_unrecorded_reuses_it(tmp_path, store, root):
    runtime = rehearsal_in_processes(root.root, _environ(tmp_path))
    assert coordinate(submitted(store), store, root, runtime, _nobody) == 0
    (root.path(RUN_OUTPUT) / ".artifact.json").unlink()
    never = scripted("raise SystemExit('a second launcher was started')", root.root)
    again = submitted(store, ordinal=2)
    assert coordinate(again, store, root, never, _nobody) == 0
    assert ("step_reused", RUN) in _kinds(load_record(store, again.key))

    # A manifest of another document proves nothing: the runtime is asked, and it refuses.
    (root.path(RUN_OUTPUT) / ".artifact.json").unlink()
    other = submitted(store, run__seed=99)
    assert coordinate(other, store, root, runtime, _nobody) == 1
    assert "this version has already finished. Give it a new version" in load_record(store, other.key).reason


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
