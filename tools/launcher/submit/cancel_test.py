"""Cancelling: recorded before and after, every job seen ended, and gone on with after anything."""

import sys

import pytest

from tools.launcher.iris.jobs import IrisUnreachable, JobFacts, JobRefused, TaskFacts
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunKey, RunState, append_event, load_record
from tools.launcher.submit.cancel import CancelEnd, cancel_run, cancel_unrecorded, job_words, request_cancel

KEY = RunKey(experiment="cat", launch_digest="a" * 64, ordinal=1)
NAME = "cat-aaaaaaaa-1"
COORDINATOR, CHILD, GRANDCHILD = f"/slipway/{NAME}", f"/slipway/{NAME}/gang", f"/slipway/{NAME}/gang/node"
WHY = "bob: wrong data"


class Iris:
    """A scheduler in memory. A cancelled job ends after `slow` further looks; it takes no child with it."""

    def __init__(self, store, slow=1):
        self.store, self.slow, self.jobs, self.argv = store, slow, {}, ()
        self.asked, self.now, self.refuses, self.reachable, self.on_cancel = [], 0.0, False, True, None

    def run(self, *job_ids, launch=KEY.launch_digest, store=None):
        self.argv = (f"--launch={launch}", f"--store={store or self.store.url}")
        self.jobs |= dict.fromkeys(job_ids, 10**9)

    def job_id_of(self, user, name):
        return f"/{user}/{name}"

    def describe(self, job_id):
        if not self.reachable:
            raise IrisUnreachable("http://127.0.0.1:1", 10.0)
        if job_id not in self.jobs:
            return None
        self.jobs[job_id] -= 1
        state = "killed" if self.jobs[job_id] <= 0 else "running"
        task = TaskFacts(index=0, state=state, exit_code=None, error="", attempts=1)
        return JobFacts(
            job_id=job_id,
            name="x",
            state=state,
            error="",
            pending_reason="",
            argv=self.argv,
            env={},
            tasks=(task,),
        )

    def children(self, job_id):
        below = [one for one in self.jobs if one.rpartition("/")[0] == job_id]
        return tuple(self.describe(one) for one in below)

    def cancel(self, job_id):
        if self.refuses:
            raise JobRefused("you are not the owner")
        self.asked.append(job_id)
        self.jobs[job_id] = self.slow
        if self.on_cancel:
            self.on_cancel(job_id)

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def store(tmp_path):
    store = FileStore(tmp_path)
    append_event(store, KEY, "intent", "ann@desk", {"job_name": NAME, "user": "slipway"})
    return store


def submitted(store):
    append_event(store, KEY, "submitted", "ann@desk", {"job_id": COORDINATOR})


def cancel(store, iris, why=WHY):
    lines = []
    outcome = cancel_run(
        store,
        iris,
        load_record(store, KEY),
        by="bob@lab",
        authorized=why,
        say=lines.append,
        clock=lambda: iris.now,
        sleep=iris.sleep,
    )
    assert outcome.record == load_record(store, KEY)
    return outcome, lines


def kinds(store):
    return [event.kind for event in load_record(store, KEY).events]


def test_coordinator_and_children_are_ended_and_recorded(store):
    submitted(store)
    iris = Iris(store)
    iris.run(COORDINATOR, CHILD, GRANDCHILD)
    outcome, _ = cancel(store, iris)
    assert outcome.end is CancelEnd.CANCELLED and outcome.message == f"{KEY} is cancelled by {WHY}"
    assert [job.job_id for job in outcome.was] == [COORDINATOR, CHILD, GRANDCHILD]
    assert iris.asked == [COORDINATOR, CHILD, GRANDCHILD]
    assert kinds(store) == ["intent", "submitted", "cancel_requested", "cancelled"]
    request, end = outcome.record.events[2:]
    assert request.by == end.by == "bob@lab"
    assert request.facts == {"authorized": WHY, "jobs": [COORDINATOR, CHILD, GRANDCHILD]}
    assert end.facts["authorized"] == WHY and set(end.facts["states"].values()) == {"killed"}
    assert (outcome.record.state, outcome.record.reason) == (RunState.CANCELLED, f"by {WHY}")


def test_a_child_that_appears_while_its_coordinator_ends_is_ended_too(store):
    submitted(store)
    iris = Iris(store, slow=4)
    iris.run(COORDINATOR)
    iris.on_cancel = lambda job_id: job_id == COORDINATOR and iris.run(CHILD)
    outcome, _ = cancel(store, iris)
    assert outcome.end is CancelEnd.CANCELLED and iris.asked == [COORDINATOR, CHILD]
    assert outcome.record.events[-1].facts["jobs"] == [COORDINATOR, CHILD]


def test_a_child_left_by_a_coordinator_that_failed_is_ended(store):
    submitted(store)
    append_event(store, KEY, "child_submitted", "coordinator", {"job_id": CHILD})
    append_event(store, KEY, "failed", "bob@lab", {"reason": "lost", "child_running": CHILD})
    iris = Iris(store)
    iris.run(CHILD)
    outcome, _ = cancel(store, iris)
    assert outcome.end is CancelEnd.CANCELLED and iris.asked == [CHILD]


@pytest.mark.parametrize("end", ["succeeded", "failed", "cancelled"])
def test_a_run_that_is_over_stays_as_it_is(store, end):
    submitted(store)
    append_event(store, KEY, end, "coordinator", {"reason": "out of memory"})
    before = kinds(store)
    outcome, _ = cancel(store, Iris(store))
    assert outcome.end is CancelEnd.OVER and kinds(store) == before
    assert outcome.message.startswith(f"{KEY} is over, nothing to cancel: {end}")


def test_an_interrupted_run_without_jobs_is_closed_as_failed(store):
    submitted(store)
    append_event(store, KEY, "failed", "coordinator", {"reason": "ended by SIGTERM", "interrupted": True})
    outcome, _ = cancel(store, Iris(store))
    assert outcome.end is CancelEnd.OVER and not outcome.record.leaves_jobs
    assert (outcome.record.state, outcome.record.reason) == (RunState.FAILED, "ended by SIGTERM")


@pytest.mark.parametrize("kind", [None, "refused", "conflict"])
def test_a_run_without_a_job_is_closed(store, kind):
    if kind:
        append_event(store, KEY, kind, "ann@desk", {"reason": "no nodes"})
    outcome, _ = cancel(store, Iris(store))
    assert outcome.end is CancelEnd.CANCELLED and outcome.was == ()
    assert kinds(store)[-2:] == ["cancel_requested", "cancelled"]


def test_the_job_of_an_intent_is_found_by_its_name(store):
    iris = Iris(store)
    iris.run(COORDINATOR)
    outcome, _ = cancel(store, iris)
    assert outcome.end is CancelEnd.CANCELLED and iris.asked == [COORDINATOR]


@pytest.mark.parametrize("other", [{"launch": "b" * 64}, {"store": "file:///elsewhere"}])
def test_a_job_of_the_name_that_is_not_of_the_run_is_left_alone(store, other):
    iris = Iris(store)
    iris.run(COORDINATOR, CHILD, **other)
    outcome, _ = cancel(store, iris)
    assert outcome.end is CancelEnd.CANCELLED and iris.asked == [] and outcome.was == ()


def test_a_success_on_the_way_stays_a_success(store):
    submitted(store)
    iris = Iris(store)
    iris.run(COORDINATOR)
    iris.on_cancel = lambda _: append_event(store, KEY, "succeeded", "coordinator", {})
    outcome, _ = cancel(store, iris)
    assert outcome.end is CancelEnd.SUCCEEDED and kinds(store)[-1] == "succeeded"
    assert outcome.message == f"{KEY} succeeded before the cancellation reached it, and stays a success"


def test_without_an_answer_the_request_stays_on_record_and_the_next_call_goes_on(store):
    submitted(store)
    iris = Iris(store)
    iris.run(COORDINATOR)
    iris.reachable = False
    outcome, _ = cancel(store, iris)
    assert outcome.end is CancelEnd.UNREACHABLE
    assert outcome.message.startswith("Iris at http://127.0.0.1:1 did not answer within 10 s")
    assert outcome.message.endswith("The request to cancel is on record: call this again, which goes on")
    assert outcome.record.events[-1].facts == {"authorized": WHY, "jobs": [COORDINATOR]}
    request_cancel(store, load_record(store, KEY), by="bob@lab", authorized=WHY)
    iris.reachable = True
    outcome, _ = cancel(store, iris)
    assert outcome.end is CancelEnd.CANCELLED
    assert kinds(store) == ["intent", "submitted", "cancel_requested", "cancelled"]


def test_a_job_that_does_not_end_is_named_after_a_while(store):
    submitted(store)
    iris = Iris(store)
    iris.run(COORDINATOR)
    iris.refuses = True
    outcome, lines = cancel(store, iris)
    assert outcome.end is CancelEnd.STILL_WORKS and 60 <= iris.now < 62
    assert outcome.message == (
        f"not ended after 60 s: {COORDINATOR} (running, 1 of 1 tasks running) (Iris refused the request: you are "
        "not the owner). The request to cancel is on record: call this again, which goes on"
    )
    assert kinds(store)[-1] == "cancel_requested"
    assert lines[0] == f"ending (2 s): {COORDINATOR} (running, 1 of 1 tasks running)" and len(lines) == 29


def test_a_run_of_which_only_the_turn_is_known_never_begins(store):
    other = KEY.model_copy(update={"ordinal": 2})
    outcome = cancel_unrecorded(store, other, by="bob@lab", authorized=WHY)
    assert (
        outcome.end is CancelEnd.CANCELLED
        and outcome.message == f"{other} is cancelled by {WHY}; it had no job"
    )
    assert load_record(store, other).state is RunState.CANCELLED
    assert cancel_unrecorded(store, KEY, by="bob@lab", authorized=WHY) is None
    assert kinds(store) == ["intent"]


def test_a_record_of_the_version_before_is_cancelled(tmp_path):
    old = FileStore(tmp_path / "old")
    facts = {"job_name": NAME, "user": "slipway", "stage": "rl", "cluster": "local", "bundle": "c" * 64}
    append_event(old, KEY, "intent", "ann@desk", facts)
    append_event(old, KEY, "submitted", "ann@desk", {"job_id": COORDINATOR})
    iris = Iris(old)
    iris.run(COORDINATOR, CHILD)
    outcome = cancel_run(
        old,
        iris,
        load_record(old, KEY),
        by="bob@lab",
        authorized=WHY,
        say=print,
        clock=lambda: iris.now,
        sleep=iris.sleep,
    )
    assert outcome.end is CancelEnd.CANCELLED and iris.asked == [COORDINATOR, CHILD]


def test_a_job_that_waits_has_no_tasks_to_count():
    waiting = JobFacts(
        job_id="/a/b", name="b", state="pending", error="", pending_reason="", argv=(), env={}, tasks=()
    )
    assert job_words(waiting) == "/a/b (pending)"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
