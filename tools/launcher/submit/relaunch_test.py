import sys

import pytest

from tools.launcher.iris.jobs import JobFacts
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunKey, append_event, list_records, load_record
from tools.launcher.store.version_claims import VersionClaim, claim_versions, latest_claim
from tools.launcher.submit.relaunch import (
    RelaunchRefused,
    prepare_relaunch,
    refuse_repinned,
    relaunch_ordinal,
    wait_until_quiet,
)
from tools.launcher.submit.turns import is_over


def records_of(tmp_path, *histories):
    store = FileStore(tmp_path)
    for ordinal, kinds in enumerate(histories, start=1):
        key = RunKey(experiment="cat", launch_digest="a" * 64, ordinal=ordinal)
        for kind in kinds:
            append_event(store, key, kind, "ann@desk", {"job_id": f"/slipway/cat-aaaaaaaa-{ordinal}"})
    return list_records(store)


@pytest.mark.parametrize(
    ("histories", "ordinal"),
    [
        ([["intent", "submitted", "failed"]], 2),
        ([["intent", "submitted", "failed"], ["intent", "submitted", "failed"]], 3),
        ([["intent", "submitted", "succeeded", "verify_failed"]], 2),
        ([["intent", "refused"]], 2),
        ([["intent", "conflict"]], 2),
    ],
)
def test_a_relaunch_is_the_next_ordinal(tmp_path, histories, ordinal):
    assert relaunch_ordinal(records_of(tmp_path, *histories)) == ordinal


@pytest.mark.parametrize(
    ("histories", "sentence"),
    [
        ([], "nothing to relaunch: this launch document was never submitted. Launch it without --relaunch"),
        (
            [["intent", "submitted"]],
            (
                "cat launch sha256:aaaaaaaa ordinal 1 is submitted as job /slipway/cat-aaaaaaaa-1. "
                "Wait for its end or cancel it, then relaunch"
            ),
        ),
        (
            [["intent", "submitted", "failed"], ["intent", "submitted", "coordinator_started"]],
            (
                "cat launch sha256:aaaaaaaa ordinal 2 is running as job /slipway/cat-aaaaaaaa-2. "
                "Wait for its end or cancel it, then relaunch"
            ),
        ),
        (
            [["intent"]],
            (
                "cat launch sha256:aaaaaaaa ordinal 1 was begun by ann@desk and its submission "
                "is not confirmed. "
                "Launch without --relaunch, which finds out what became of it"
            ),
        ),
    ],
)
def test_a_relaunch_is_refused_while_an_attempt_may_live(tmp_path, histories, sentence):
    with pytest.raises(RelaunchRefused) as raised:
        relaunch_ordinal(records_of(tmp_path, *histories))
    assert str(raised.value) == sentence


def test_records_of_two_launches_are_a_mistake(tmp_path):
    store = FileStore(tmp_path)
    for digest in ("a" * 64, "b" * 64):
        append_event(store, RunKey(experiment="cat", launch_digest=digest, ordinal=1), "failed", "x", {})
    with pytest.raises(ValueError, match="one experiment and launch digest"):
        relaunch_ordinal(list_records(store))


class Ending:
    """A scheduler whose jobs run until it was asked `looks` times."""

    def __init__(self, looks, unrecorded=()):
        self.looks, self.unrecorded, self.now, self.asked = looks, unrecorded, 0.0, []

    def describe(self, job_id):
        self.asked.append(job_id)
        state = "running" if len(self.asked) <= self.looks else "killed"
        return JobFacts(
            job_id=job_id, name="x", state=state, error="", pending_reason="", argv=(), env={}, tasks=()
        )

    def children(self, job_id):
        return tuple(self.describe(child) for child in self.unrecorded)

    def sleep(self, seconds):
        self.now += seconds


def test_a_relaunch_waits_for_the_jobs_of_ended_attempts(tmp_path):
    records = records_of(tmp_path, ["intent", "submitted", "child_submitted", "failed"])
    iris = Ending(looks=6)
    wait_until_quiet(iris, records, clock=lambda: iris.now, sleep=iris.sleep)
    assert iris.now == 1.5 and set(iris.asked) == {"/slipway/cat-aaaaaaaa-1"}


def test_a_relaunch_waits_for_a_child_that_was_never_recorded(tmp_path):
    records = records_of(tmp_path, ["intent", "submitted", "failed"])
    iris = Ending(looks=4, unrecorded=["/slipway/cat-aaaaaaaa-1/gang"])
    wait_until_quiet(iris, records, clock=lambda: iris.now, sleep=iris.sleep)
    assert iris.now == 1.0 and iris.asked[-1] == "/slipway/cat-aaaaaaaa-1/gang"


def test_a_relaunch_never_runs_beside_a_job_that_does_not_end(tmp_path):
    records = records_of(tmp_path, ["intent", "submitted", "child_submitted", "failed"])
    iris = Ending(looks=10**6)
    with pytest.raises(RelaunchRefused) as caught:
        wait_until_quiet(iris, records, seconds=30, clock=lambda: iris.now, sleep=iris.sleep)
    assert str(caught.value) == (
        "cat launch sha256:aaaaaaaa ordinal 1 is failed, but its job /slipway/cat-aaaaaaaa-1 is still running "
        "after 30 s, and two attempts would write the same checkpoints. Wait for its end or cancel it, then "
        "relaunch"
    )


def test_before_a_relaunch_the_earlier_attempts_are_over_on_record(tmp_path):
    """Else their turn would not pass on."""
    store = FileStore(tmp_path)
    key = RunKey(experiment="cat", launch_digest="a" * 64, ordinal=1)
    for kind in ("intent", "submitted", "failed"):
        facts = {"job_id": "/slipway/cat-aaaaaaaa-1", "reason": "ended by SIGTERM", "interrupted": True}
        append_event(store, key, kind, "coordinator", facts)
    assert not is_over(load_record(store, key))
    iris = Ending(looks=3)
    ordinal = prepare_relaunch(
        store, iris, list_records(store), "bob@lab", clock=lambda: iris.now, sleep=iris.sleep
    )
    record = load_record(store, key)
    assert ordinal == 2 and is_over(record) and record.reason == "ended by SIGTERM"


STEP = {"name": "lab/cat", "version": "2026.11.30", "fingerprint": "1" * 64}


def claim(store, fingerprint, runtime, compatible=()):
    claims = [
        VersionClaim(
            name=STEP["name"],
            version=STEP["version"],
            fingerprint=fingerprint,
            runtime_commit=runtime,
            launch="e" * 64,
            compatible=compatible,
            repins=len(compatible),
        )
    ]
    claim_versions(store, claims, "ann@desk")


def test_a_relaunch_after_a_repin_needs_a_fresh_version(tmp_path):
    store = FileStore(tmp_path)
    refuse_repinned(store, STEP, "a" * 40)
    claim(store, "1" * 64, "a" * 40)
    refuse_repinned(store, STEP, "a" * 40)
    claim(store, "2" * 64, "b" * 40, compatible=("1" * 64,))
    at = latest_claim(store, STEP["name"], STEP["version"]).at
    with pytest.raises(RelaunchRefused) as caught:
        refuse_repinned(store, STEP, "a" * 40)
    assert str(caught.value) == (
        f"lab/cat@2026.11.30 was launched since by ann@desk at {at} with the runtime {'b' * 40}, and this attempt's "
        f"bundle is pinned to {'a' * 40}. Its checkpoints may be that launch's. Publish a fresh version and launch "
        "it, or relaunch the run of launch sha256:eeeeeeee"
    )
    with pytest.raises(
        RelaunchRefused, match="as another recipe \\(222222222222, this bundle's is 111111111111\\)"
    ):
        refuse_repinned(store, STEP, "b" * 40)
    refuse_repinned(store, STEP | {"compatible": ["2" * 64]}, "a" * 40)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
