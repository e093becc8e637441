import sys
from pathlib import Path

import pytest

from tools.launcher.iris.jobs import JobFacts, TaskFacts
from tools.launcher.iris.route import EMBEDDED, Route
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RecordError, RunKey, RunState, append_event, load_record
from tools.launcher.submit.settle import is_own_machine, route_of, settle, settled_record_of

KEY = RunKey(experiment="cat", launch_digest="a" * 64, ordinal=1)
JOB_ID = "/slipway/cat-aaaaaaaa-1"
ELSEWHERE = Route(scheduler="iris", config="lib/iris/config/marin.yaml")


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

    def children(self, job_id):
        return ()


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


CHILD = f"{JOB_ID}/gang"


class IrisOfMany:
    """A scheduler that knows these jobs."""

    def __init__(self, **states):
        self.states = {JOB_ID: states.get("coordinator"), CHILD: states.get("child")}

    def describe(self, job_id):
        state = self.states[job_id]
        return None if state is None else job(state).model_copy(update={"job_id": job_id})

    def children(self, job_id):
        found = self.describe(CHILD) if job_id == JOB_ID else None
        return () if found is None else (found,)


def test_a_child_that_its_coordinator_left_behind_keeps_the_run_from_being_over(store):
    append_event(store, KEY, "child_submitted", "coordinator", {"job_id": CHILD})
    iris = IrisOfMany(coordinator="failed", child="running")
    settled = settle(store, iris, load_record(store, KEY), "ann")
    assert settled.state is RunState.FAILED and settled.leaves_jobs
    assert settled.events[-1].facts["child_running"] == CHILD
    assert settle(store, iris, settled, "ann") == settled
    over = settle(store, IrisOfMany(coordinator="failed", child="failed"), settled, "ann")
    assert over.state is RunState.FAILED and not over.leaves_jobs and over.reason == settled.reason


def test_a_child_that_was_never_recorded_counts(store):
    settled = settle(store, IrisOfMany(coordinator="killed", child="running"), load_record(store, KEY), "ann")
    assert settled.leaves_jobs and settled.events[-1].facts["child_running"] == CHILD


def test_a_cancellation_that_nobody_saw_done_is_recorded_by_whoever_sees_it(store):
    append_event(store, KEY, "child_submitted", "coordinator", {"job_id": CHILD})
    append_event(store, KEY, "cancel_requested", "ann@desk", {"authorized": "ann: wrong data", "jobs": []})
    running = settle(store, IrisOfMany(coordinator="killed", child="running"), load_record(store, KEY), "bob")
    assert running.state is RunState.FAILED and running.leaves_jobs
    done = settle(store, IrisOfMany(coordinator="killed", child="killed"), running, "bob")
    assert (done.state, done.reason) == (RunState.CANCELLED, "by ann: wrong data")
    assert done.events[-1].by == "bob" and done.events[-1].facts["jobs"] == [JOB_ID, CHILD]
    assert settle(store, IrisOfMany(), done, "bob") == done


def test_an_interrupted_run_is_over_once_its_jobs_are_seen_ended(store):
    append_event(store, KEY, "failed", "coordinator", {"reason": "ended by SIGTERM", "interrupted": True})
    record = load_record(store, KEY)
    assert record.leaves_jobs
    # Iris starts the coordinator again, for example.
    assert settle(store, IrisOfMany(coordinator="pending"), record, "ann") == record
    over = settle(store, IrisOfMany(coordinator="killed"), record, "ann")
    assert (over.state, over.reason, over.leaves_jobs) == (RunState.FAILED, "ended by SIGTERM", False)
    append_event(store, KEY, "coordinator_started", "coordinator", {"job_id": JOB_ID})
    assert not load_record(store, KEY).leaves_jobs


@pytest.mark.parametrize(
    ("route", "by", "settles"),
    [(EMBEDDED, "ann@desk", True), (EMBEDDED, "bob@lab", True), (ELSEWHERE, "ann@desk", False)],
)
def test_a_reader_settles_what_its_scheduler_can_know(store, route, by, settles):
    read = settled_record_of(store, Iris(None), route, by)
    assert (read(KEY).state is RunState.FAILED) is settles
    assert read(KEY.model_copy(update={"ordinal": 2})) is None


def test_the_local_iris_of_somebody_else_is_not_asked(store):
    class Shared(FileStore):
        url = "gs://lab/slipway"

    record = load_record(store, KEY)
    shared = Shared(Path(store.url.removeprefix("file://")))
    assert is_own_machine(shared, record, "ann") and not is_own_machine(shared, record, "bob@lab")
    assert settled_record_of(shared, Iris(None), EMBEDDED, "bob@lab")(KEY) == record
    assert settled_record_of(shared, Iris(None), EMBEDDED, "ann")(KEY).state is RunState.FAILED


def test_a_route_that_cannot_be_read_is_named(tmp_path):
    store = FileStore(tmp_path)
    append_event(store, KEY, "intent", "ann", {"route": {"scheduler": "iris", "config": None}})
    with pytest.raises(RecordError, match="its record names no usable route to a cluster"):
        route_of(load_record(store, KEY))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
