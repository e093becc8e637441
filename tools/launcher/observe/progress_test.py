import sys

import pytest

from tools.launcher.observe.progress import FollowEnd, NoSuchRun, follow
from tools.launcher.observe.run_testlib import CHILD_ID, COORDINATOR_ID, FakeIris, Run, finished_run
from tools.launcher.store.object_store import StoreUnavailable


class Clock:
    """Time that passes only by sleeping; `at` runs things at a given second."""

    def __init__(self, **at):
        self.now, self.at = 0.0, {int(name[1:]): action for name, action in at.items()}

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        assert self.now < 1000, "following does not end"
        for second in [second for second in self.at if second <= self.now]:
            self.at.pop(second)()


def looks(run, iris, clock=None, **options):
    clock = clock or Clock()
    found = follow(
        run.store, run.key, run.root, iris, poll_seconds=1.0, clock=clock, sleep=clock.sleep, **options
    )
    return list(found)


@pytest.fixture
def running(tmp_path):
    run, iris = Run(tmp_path), FakeIris()
    run.submit()
    iris.put(COORDINATOR_ID, "running")
    iris.put(CHILD_ID, "running", tasks=2)
    return run, iris


def test_a_finished_run_is_one_look_and_asks_nobody(tmp_path):
    run, iris = finished_run(tmp_path), FakeIris()
    iris.reachable = False
    (look,) = looks(run, iris)
    assert (look.end, look.message) == (FollowEnd.FINISHED, f"succeeded: {run.key}")


def test_every_change_is_shown_once(running):
    run, iris = running
    clock = Clock(s3=run.train, s6=run.finish)
    found = looks(run, iris, clock)
    assert [look.status.step for look in found] == [0, 3, 3]
    assert [look.end for look in found] == [None, None, FollowEnd.FINISHED]
    assert clock.now == 6


def test_a_recorded_failure_ends_it(running):
    run, iris = running
    found = looks(run, iris, Clock(s2=lambda: run.event("failed", reason="rank 1 was killed")))
    assert (found[-1].end, found[-1].message) == (FollowEnd.FINISHED, "failed: rank 1 was killed")


def test_a_cancellation_ends_it(running):
    run, iris = running
    found = looks(run, iris, Clock(s2=lambda: run.event("cancelled", reason="by ann: wrong data")))
    assert (found[-1].end, found[-1].message) == (FollowEnd.FINISHED, "cancelled by ann: wrong data")


def test_an_interruption_is_no_end_while_iris_starts_the_coordinator_again(running):
    run, iris = running

    def interrupted():
        run.event("failed", reason="ended by SIGTERM", interrupted=True)
        iris.put(COORDINATOR_ID, "pending")

    clock = Clock(
        s2=interrupted, s5=lambda: run.event("coordinator_started", job_id=COORDINATOR_ID), s8=run.finish
    )
    found = looks(run, iris, clock)
    assert (found[-1].end, found[-1].message) == (FollowEnd.FINISHED, f"succeeded: {run.key}")


def test_an_interruption_is_the_end_once_the_job_has_ended(running):
    run, iris = running

    def interrupted():
        run.event("failed", reason="ended by SIGTERM", interrupted=True)
        iris.put(COORDINATOR_ID, "killed")

    found = looks(run, iris, Clock(s2=interrupted))
    assert found[-1].end is FollowEnd.COORDINATOR_GONE and found[-1].status.reason == "ended by SIGTERM"


def test_a_killed_coordinator_ends_it_at_once(running):
    run, iris = running
    clock = Clock(s2=lambda: iris.put(COORDINATOR_ID, "killed", error="Terminated\n by  operator"))
    found = looks(run, iris, clock)
    assert found[-1].end is FollowEnd.COORDINATOR_GONE
    assert found[-1].message == (
        f"the coordinator {COORDINATOR_ID} ended as 'killed' without recording a result: "
        "Terminated by operator"
    )
    assert clock.now == 2


def test_a_lost_coordinator_ends_it(running):
    run, iris = running
    found = looks(run, iris, Clock(s2=iris.jobs.clear))
    assert found[-1].end is FollowEnd.COORDINATOR_GONE
    assert (
        found[-1].message
        == f"Iris no longer knows the coordinator {COORDINATOR_ID}; its end was not recorded"
    )


def test_an_end_written_while_we_looked_is_believed(running):
    run, iris = running
    describe = iris.describe

    def late(job_id):
        iris.put(COORDINATOR_ID, "succeeded")
        if run.record().state.is_live:
            run.finish()
        return describe(job_id)

    iris.describe = late
    found = looks(run, iris)
    assert (found[-1].end, found[-1].message) == (FollowEnd.FINISHED, f"succeeded: {run.key}")


def test_a_failed_child_and_a_silent_coordinator_end_it(running):
    run, iris = running
    clock = Clock(s5=lambda: iris.put(CHILD_ID, "failed", tasks=2))
    found = looks(run, iris, clock, silence_seconds=30)
    assert found[-1].end is FollowEnd.COORDINATOR_SILENT
    assert found[-1].message == (
        f"the child {CHILD_ID} ended as 'failed' and the coordinator has recorded nothing for 30 s. "
        "Read the coordinator's logs, then cancel it"
    )
    assert clock.now == 35


def test_a_failed_child_that_the_coordinator_reports_is_a_failure(running):
    run, iris = running
    clock = Clock(
        s5=lambda: iris.put(CHILD_ID, "failed", tasks=2),
        s9=lambda: run.event("failed", reason="child failed"),
    )
    assert looks(run, iris, clock, silence_seconds=30)[-1].message == "failed: child failed"


def test_a_succeeded_child_may_be_followed_by_other_steps(running):
    run, iris = running
    clock = Clock(s5=lambda: iris.put(CHILD_ID, "succeeded", tasks=2), s300=run.finish)
    assert looks(run, iris, clock)[-1].end is FollowEnd.FINISHED


def test_a_scheduler_that_stays_away_ends_it(running):
    run, iris = running
    clock = Clock(s10=lambda: setattr(iris, "reachable", False))
    found = looks(run, iris, clock, unreachable_seconds=20)
    assert found[-1].end is FollowEnd.UNREACHABLE
    assert found[-1].message.startswith(
        "Iris has not answered for 20 s; the run may go on. Ask again later: Iris at"
    )
    assert clock.now == 30


def test_a_scheduler_that_comes_back_does_not(running):
    run, iris = running
    clock = Clock(
        s10=lambda: setattr(iris, "reachable", False),
        s25=lambda: setattr(iris, "reachable", True),
        s60=run.finish,
    )
    assert looks(run, iris, clock, unreachable_seconds=20)[-1].end is FollowEnd.FINISHED


class Failing:
    """A store that fails while `away` is set."""

    def __init__(self, store):
        self.store, self.url, self.away = store, store.url, False

    def list(self, prefix):
        return self._answering().list(prefix)

    def get(self, name):
        return self._answering().get(name)

    def _answering(self):
        if self.away:
            raise StoreUnavailable(self.url, "list runs/", "it does not serve now")
        return self.store


def test_a_store_that_comes_back_ends_no_watching(running):
    run, iris = running
    run.store, events = Failing(run.store), run.store
    clock = Clock(
        s10=lambda: setattr(run.store, "away", True),
        s25=lambda: setattr(run.store, "away", False),
        s40=lambda: setattr(run, "store", events) or run.finish(),
    )
    assert looks(run, iris, clock, unreachable_seconds=20)[-1].end is FollowEnd.FINISHED


@pytest.mark.parametrize(("away_at", "ends_at"), [(10, 30), (0, 0)])
def test_a_store_that_stays_away_or_never_answered_ends_it(running, away_at, ends_at):
    run, iris = running
    run.store = Failing(run.store)
    run.store.away = away_at == 0
    clock = Clock(s10=lambda: setattr(run.store, "away", True))
    with pytest.raises(StoreUnavailable):
        looks(run, iris, clock, unreachable_seconds=20)
    assert clock.now == ends_at


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ([], "nothing to follow, the run is in state intent. Launch it again"),
        (["refused"], "nothing to follow, the run is in state refused: no room. Launch it again"),
        (["conflict"], "nothing to follow, the run is in state conflict: no room. Launch it again"),
    ],
)
def test_a_run_without_a_job_is_not_waited_for(tmp_path, kinds, message):
    run = Run(tmp_path)
    for kind in kinds:
        run.event(kind, reason="no room")
    (look,) = looks(run, FakeIris())
    assert (look.end, look.message) == (FollowEnd.NOT_SUBMITTED, message)


def test_no_record_is_a_sentence(tmp_path):
    run = Run(tmp_path)
    key = run.key.model_copy(update={"ordinal": 2})
    with pytest.raises(NoSuchRun) as raised:
        next(follow(run.store, key, run.root, FakeIris()))
    assert str(raised.value) == (
        f"{key}: there is no record in the store {run.store.url}. Launch the experiment first"
    )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
