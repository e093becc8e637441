import sys

import pytest

from tools.launcher.iris.jobs import JobFacts, TaskFacts
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunKey, RunState, append_event, load_record
from tools.launcher.submit.settle import settle

KEY = RunKey(experiment="cat", launch_digest="a" * 64, ordinal=1)
JOB_ID = "/slipway/cat-aaaaaaaa-1"


def job(state, error="", exit_code=None):
    task = TaskFacts(index=0, state=state, exit_code=exit_code, error="", attempts=1)
    return JobFacts(
        job_id=JOB_ID,
        name="cat-aaaaaaaa-1",
        state=state,
        error=error,
        pending_reason="",
        argv=(),
        env={},
        tasks=(task,),
    )


class Iris:
    def __init__(self, found, before_answer=lambda: None):
        self.found, self.before_answer, self.asked = found, before_answer, 0

    def describe(self, job_id):
        assert job_id == JOB_ID
        self.asked += 1
        self.before_answer()
        return self.found


@pytest.fixture
def store(tmp_path):
    store = FileStore(tmp_path)
    append_event(store, KEY, "intent", "ann", {})
    append_event(store, KEY, "submitted", "ann", {"job_id": JOB_ID})
    return store


@pytest.mark.parametrize("state", ["pending", "building", "running"])
def test_a_live_run_is_left_alone(store, state):
    record = load_record(store, KEY)
    assert settle(store, Iris(job(state)), record, "ann") == record == load_record(store, KEY)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (job("killed"), f"the coordinator {JOB_ID} ended as 'killed' without recording a result"),
        (
            job("failed", "Traceback\nMemoryError\n", 137),
            (
                f"the coordinator {JOB_ID} ended as 'failed' without recording a result "
                "(task 0 exit code 137 (killed); Traceback MemoryError)"
            ),
        ),
        (
            job(
                "failed",
                "Cumulative failed task attempts exceeded max_task_failures: failures=1, limit=0; "
                "Exit code: -9. stderr: [rehearsal] child job is running",
                -9,
            ),
            (
                f"the coordinator {JOB_ID} ended as 'failed' without recording a result "
                "(task 0 exit code -9 (killed); it said last: [rehearsal] child job is running)"
            ),
        ),
        (
            job("failed", "Exit code: 1", 1),
            (f"the coordinator {JOB_ID} ended as 'failed' without recording a result (task 0 exit code 1)"),
        ),
        (
            job("succeeded", exit_code=0),
            f"the coordinator {JOB_ID} ended as 'succeeded' without recording a result (task 0 exit code 0)",
        ),
        (None, f"Iris no longer knows the coordinator {JOB_ID}; it was lost with the cluster's state"),
    ],
)
def test_a_dead_coordinator_closes_the_record(store, found, reason):
    settled = settle(store, Iris(found), load_record(store, KEY), "ann@desk")
    assert settled.state is RunState.FAILED
    assert settled.reason == reason
    assert settled.events[-1].by == "ann@desk"
    assert settle(store, Iris(found), settled, "ann@desk") == settled


def test_an_end_recorded_between_the_questions_counts(store):
    record = load_record(store, KEY)
    iris = Iris(
        job("succeeded", exit_code=0), lambda: append_event(store, KEY, "succeeded", "coordinator", {})
    )
    settled = settle(store, iris, record, "ann")
    assert settled.state is RunState.SUCCEEDED
    assert [event.kind for event in settled.events] == ["intent", "submitted", "succeeded"]


def test_a_run_that_is_over_or_not_submitted_asks_nobody(store):
    iris = Iris(None)
    append_event(store, KEY, "succeeded", "coordinator", {})
    record = load_record(store, KEY)
    assert settle(store, iris, record, "ann") == record
    other = RunKey(experiment="dog", launch_digest="a" * 64, ordinal=1)
    append_event(store, other, "intent", "ann", {})
    record = load_record(store, other)
    assert settle(store, iris, record, "ann") == record
    assert iris.asked == 0


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
