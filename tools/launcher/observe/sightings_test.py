"""What somebody who watches a run is shown, and the newest checkpoint."""

import sys

import pytest

from tools.launcher.observe.newest_checkpoint import (
    AFTER_FAILURE_SECONDS,
    BETWEEN_SECONDS,
    Checkpoint,
    PatientCheckpoints,
)
from tools.launcher.observe.progress import FollowEnd, Progress, follow
from tools.launcher.observe.run_files import run_files
from tools.launcher.observe.run_testlib import CHILD_ID, COORDINATOR_ID, TMP, FakeIris, Run
from tools.launcher.observe.sightings import NOT_KNOWN_YET, sighting_line, sightings, watch_rows
from tools.launcher.observe.status import read_status
from tools.launcher.store.object_store import StoreUnavailable
from tools.launcher.store.objects import FolderObjects

MARK = f"{TMP}/checkpoints/latest_ckpt_global_step.txt"


@pytest.fixture
def running(tmp_path):
    run, iris = Run(tmp_path), FakeIris()
    run.submit()
    iris.put(COORDINATOR_ID, "running")
    iris.put(CHILD_ID, "running", tasks=2)
    return run, iris


def seen(run, iris, ends):
    """Sightings of a run whose steps end at these seconds; step 0 is seen first."""
    clock = [0.0, *ends]

    def looks():
        for step, _ in enumerate(clock):
            lines = b"".join(b'{"step": %d, "reward_mean": 0.5}\n' % n for n in range(1, step + 1))
            run.write(f"{run.attempt_uri}/metrics.jsonl", lines)
            status = read_status(run.record(), run.store, run.root, iris)
            yield Progress(status=status, end=None, message="")

    times = iter(clock)
    return list(sightings(looks(), clock=lambda: next(times)))


def test_the_time_left_is_known_from_the_second_step_on(running):
    found = seen(*running, [40.0, 100.0])
    rows = [dict(watch_rows(sighting, 100.0, "2100-01-01T00:00:00Z")) for sighting in found]
    assert [row["ETA"] for row in rows] == [
        NOT_KNOWN_YET,
        NOT_KNOWN_YET,
        "about 1 min for 1 more step (1 min a step)",
    ]
    assert rows[2]["steps"] == "2/3" and rows[2]["reward"] == "0.500 first, 0.500 latest, 0.500 mean"
    assert " d " in rows[2]["elapsed"] and list(rows[2])[3:5] == ["launched", "elapsed"]
    assert sighting_line(found[1], 40.0).endswith("step 1/3  reward 0.500")
    assert sighting_line(found[2], 130.0).endswith("step 2/3  reward 0.500  about 30 s left")
    # The step under way takes longer than those before: nothing is left of it.
    assert sighting_line(found[2], 500.0).endswith("step 2/3  reward 0.500")


def test_a_step_that_does_not_end_is_said_to_take_long(running):
    """It said `about 0 s` for as long as the run hung."""
    *_, last = seen(*running, [40.0, 41.0])
    eta = {now: dict(watch_rows(last, now, "2100-01-01T00:00:00Z"))["ETA"] for now in (41.5, 60.0, 131.0)}
    assert eta == {
        41.5: "about 0 s for 1 more step (1 s a step)",
        60.0: "about 0 s for 1 more step (1 s a step)",
        131.0: "not known: no step ended for 1 min 30 s (it was 1 s a step)",
    }


def test_a_run_that_is_over_has_no_time_left(running):
    run, iris = running
    run.train()
    run.finish()
    status = read_status(run.record(), run.store, run.root, iris)
    (sighting,) = sightings([Progress(status=status, end=None, message="")])
    rows = dict(watch_rows(sighting, 5.0, "2100-01-01T00:00:00Z"))
    assert "ETA" not in rows and rows["elapsed"].endswith(" s") and rows["checkpoint"] == "step 3"


def test_the_last_look_leaves_the_answer_to_the_verification_below_it(running):
    """It said `verified: not asked yet` directly above `verified: yes`."""
    run, iris = running
    run.train()
    run.finish()
    looks = list(follow(run.store, run.key, run.root, iris))
    (sighting,) = sightings(looks)
    assert sighting.progress.end is FollowEnd.FINISHED
    assert "verified" not in dict(watch_rows(sighting, 5.0, "2100-01-01T00:00:00Z"))
    (once,) = sightings([sighting.progress.model_copy(update={"end": None})])
    assert dict(watch_rows(once, 5.0, "2100-01-01T00:00:00Z"))["verified"] == "not asked yet"
    run.event("verified")
    (sighting,) = sightings(follow(run.store, run.key, run.root, iris))
    assert dict(watch_rows(sighting, 5.0, "2100-01-01T00:00:00Z"))["verified"] == "yes"


def test_the_schedulers_reason_is_shown_word_for_word(running):
    run, iris = running
    reason = "Scheduler: No workers match constraints Autoscaler: (scaling up) Waiting"
    iris.put(CHILD_ID, "pending", tasks=2, pending_reason=reason)
    (sighting, *_) = seen(run, iris, [])
    assert dict(watch_rows(sighting, 0.0, "2100-01-01T00:00:00Z"))["waits"] == reason


def test_where_no_steps_are_told_those_of_the_newest_checkpoint_count(tmp_path):
    run = Run(tmp_path, runtime="marinskyrl")
    run.submit()
    iris = FakeIris()
    status = read_status(
        run.record(), run.store, None, iris, checkpoints=lambda files: Checkpoint(step=2, unknown="")
    )
    assert (status.step, status.steps_known, status.checkpoint) == (None, 2, Checkpoint(step=2))
    assert read_status(run.record(), run.store, None, iris).steps_known is None


def test_a_checkpoint_is_looked_for_once_there_is_a_child(tmp_path):
    run = Run(tmp_path)
    run.write(MARK, b"7\n")
    assert read_status(run.record(), run.store, run.root, None).checkpoint is None
    run.submit()
    assert read_status(run.record(), run.store, run.root, None).checkpoint == Checkpoint(step=7)
    run.write(MARK, b"seven")
    assert read_status(run.record(), run.store, run.root, None).checkpoint == Checkpoint(step=None)


def test_a_bucket_is_asked_now_and_then(running):
    run, _ = running
    files, now, opened = run_files(run.record(), run.store), [0.0], []

    class Bucket(FolderObjects):
        away = False

        def read(self, uri):
            opened.append(uri)
            if self.away:
                raise StoreUnavailable("s3://lab", f"read {uri}", "no answer for 5 s")
            return super().read(uri)

    bucket = Bucket(run.root)
    look = PatientCheckpoints(lambda: bucket, clock=lambda: now[0])
    assert look(files) == Checkpoint(step=None)
    run.write(MARK, b"4\n")
    now[0] = BETWEEN_SECONDS - 1
    assert look(files) == Checkpoint(step=None) and len(opened) == 1
    now[0] = BETWEEN_SECONDS
    assert look(files) == Checkpoint(step=4) and len(opened) == 2
    bucket.away, now[0] = True, 2 * BETWEEN_SECONDS
    away = look(files)
    assert away.step is None and away.unknown == "local://lab cannot be read from here: no answer for 5 s"
    bucket.away, now[0] = False, now[0] + AFTER_FAILURE_SECONDS - 1
    assert look(files) == away and len(opened) == 3
    now[0] += 1
    assert look(files) == Checkpoint(step=4)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
