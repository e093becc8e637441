import sys

import pytest

from tools.launcher.observe.render_text import progress_line, status_text
from tools.launcher.observe.run_testlib import (
    CHILD_ID,
    COORDINATOR_ID,
    TMP,
    FakeIris,
    Run,
    finished_run,
)
from tools.launcher.observe.status import read_status
from tools.launcher.store.records import RunState, append_event, load_record


def status_of(run, iris=None):
    return read_status(run.record(), run.store, run.root, iris)


def test_before_submission(tmp_path):
    status = status_of(Run(tmp_path), FakeIris())
    assert (status.state, status.coordinator, status.child) == (RunState.INTENT, None, None)
    assert (status.tasks_joined, status.tasks_expected, status.step, status.steps_expected) == (0, 2, 0, 3)
    assert (status.verified, status.reward_last, status.note) == (None, None, "")


def test_waiting_in_the_queue(tmp_path):
    run, iris = Run(tmp_path), FakeIris()
    run.event("submitted", job_id=COORDINATOR_ID)
    iris.put(COORDINATOR_ID, "pending", pending_reason="no capacity for 4 CPU")
    assert status_of(run, iris).pending_reason == "no capacity for 4 CPU"


def test_in_the_middle(tmp_path):
    run, iris = Run(tmp_path), FakeIris()
    run.submit()
    run.train()
    iris.put(COORDINATOR_ID, "running")
    iris.put(CHILD_ID, "running", tasks=2)
    path = run.path(f"{run.attempt_uri}/metrics.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1] + lines[2][:9])
    run.path(f"{run.attempt_uri}/joined/1.json").unlink()
    status = status_of(run, iris)
    assert (status.tasks_joined, status.tasks_expected) == (1, 2)
    assert (status.step, status.steps_expected) == (2, 3)
    assert (status.reward_first, status.reward_last) == (0.25, 0.5)
    assert (status.child.job_id, status.child.running_tasks, status.child.tasks) == (CHILD_ID, 2, 2)
    assert (status.last_event.kind, status.last_event.step) == ("child_submitted", "cats@1")
    assert not status.coordinator_is_gone


@pytest.mark.parametrize("state", ["failed", "killed", "worker_failed", "succeeded", None])
def test_a_coordinator_that_is_gone(tmp_path, state):
    run, iris = Run(tmp_path), FakeIris()
    run.submit()
    if state is not None:
        iris.put(COORDINATOR_ID, state)
    status = status_of(run, iris)
    assert status.coordinator_is_gone
    assert status.coordinator.state == (state or "missing")
    run.event("failed", reason="x")
    assert not status_of(run, iris).coordinator_is_gone


def test_a_cancellation_that_is_asked_for_is_shown_until_it_is_done(tmp_path):
    run, iris = Run(tmp_path), FakeIris()
    run.submit()
    assert status_of(run, iris).asked_to_cancel == ""
    run.event("cancel_requested", authorized="ann: wrong data")
    status = status_of(run, iris)
    assert status.asked_to_cancel == "ann: wrong data" and not status.is_over
    assert "cancellation: asked for by ann: wrong data; not yet seen to be done\n" in status_text(status)
    run.event("cancelled", reason="by ann: wrong data")
    status = status_of(run, iris)
    assert status.asked_to_cancel == "" and status.is_over
    assert "state: cancelled: by ann: wrong data\n" in status_text(status)


def test_a_failure_that_leaves_jobs_is_not_the_end(tmp_path):
    run, iris = Run(tmp_path), FakeIris()
    run.submit()
    run.event("failed", reason="lost", child_running=CHILD_ID)
    status = status_of(run, iris)
    assert status.leaves_jobs and not status.is_over and status.coordinator_is_gone
    assert "attention: it may have left jobs that work; `launcher cancel` ends them" in status_text(status)
    run.event("failed", reason="lost")
    assert status_of(run, iris).is_over


def test_files_that_are_elsewhere_are_a_note(tmp_path):
    run = finished_run(tmp_path)
    status = read_status(run.record(), run.store, None, None)
    assert status.state is RunState.SUCCEEDED and (status.step, status.tasks_joined) == (0, 0)
    assert status.note == f"its files are at {TMP}/attempts, which is not read from here: no tasks and steps"


def test_an_unreachable_scheduler_is_a_note(tmp_path):
    run, iris = Run(tmp_path), FakeIris()
    run.submit()
    iris.reachable = False
    status = status_of(run, iris)
    assert status.coordinator.state == "unknown"
    assert not status.coordinator_is_gone
    assert status.note.startswith("Iris at http://127.0.0.1:1 did not answer within 10 s")
    assert status.note.count("did not answer") == 1
    assert iris.asked == [COORDINATOR_ID]


def test_after_the_end(tmp_path):
    run = finished_run(tmp_path)
    status = status_of(run)
    assert (status.state, status.step, status.tasks_joined) == (RunState.SUCCEEDED, 3, 2)
    assert status.verified is None
    run.event("verify_failed")
    assert status_of(run).verified is False
    run.event("verified")
    assert status_of(run).verified is True


def test_a_reused_step_shows_the_attempt_that_made_it(tmp_path):
    run = finished_run(tmp_path)
    again = run.key.model_copy(update={"ordinal": 2})
    opening = run.record().events[0].facts
    append_event(run.store, again, "intent", "ann", opening)
    append_event(run.store, again, "step_reused", "coordinator", {"step": "cats@1"})
    append_event(run.store, again, "succeeded", "coordinator", {})
    status = read_status(load_record(run.store, again), run.store, run.root, None)
    assert (status.tasks_joined, status.step) == (2, 3)


def test_a_missing_bundle_is_a_note(tmp_path):
    run = finished_run(tmp_path)
    (tmp_path / "store" / "bundles" / "sha256" / run.record().bundle_digest).unlink()
    status = status_of(run)
    assert status.tasks_expected == 0
    assert "is not in the store" in status.note


def test_until_it_has_a_child_nothing_was_trained_by_a_run(tmp_path):
    """A launch at another stage, which reuses the training, said `submitted  reward 0.750`."""
    run = Run(tmp_path)
    run.train()
    run.event("submitted", job_id=COORDINATOR_ID)
    iris = FakeIris()
    iris.put(COORDINATOR_ID, "running")
    status = status_of(run, iris)
    assert (status.tasks_joined, status.step, status.reward_last) == (0, 0, None)
    assert progress_line(status) == "submitted"
    run.event("coordinator_started", job_id=COORDINATOR_ID)
    run.event("step_reused", step="cats@1")
    run.event("succeeded")
    status = status_of(run)
    assert (status.tasks_joined, status.step, status.reward_last) == (2, 3, 0.75)
    assert progress_line(status) == "succeeded"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
