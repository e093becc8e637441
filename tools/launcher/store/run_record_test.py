import itertools
import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.launcher.store.run_events import EVENT_KINDS, RunEvent, RunKey
from tools.launcher.store.run_record import RunState, fold

KEY = RunKey(experiment="cat_count", launch_digest="a" * 64, ordinal=1)


def events_of(*kinds_and_facts):
    return [
        RunEvent(
            schema_version=1,
            event_id=f"{n:032x}",
            seq=n,
            kind=kind,
            at=f"2026-11-30T12:00:{n:02d}Z",
            by=f"w{n}",
            facts=facts,
        )
        for n, (kind, facts) in enumerate(kinds_and_facts, start=1)
    ]


def state_of(*kinds):
    return fold(KEY, events_of(*((kind, {}) for kind in kinds))).state


@pytest.mark.parametrize(
    ("kinds", "state"),
    [
        (["intent"], RunState.INTENT),
        (["intent", "refused"], RunState.REFUSED),
        (["intent", "refused", "submitted"], RunState.SUBMITTED),
        (["intent", "conflict"], RunState.CONFLICT),
        (["intent", "submitted", "refused"], RunState.SUBMITTED),
        (["intent", "coordinator_started", "submitted"], RunState.RUNNING),
        (["intent", "submitted", "coordinator_started", "failed"], RunState.FAILED),
        (["intent", "submitted", "coordinator_started", "failed", "coordinator_started"], RunState.RUNNING),
        (["intent", "submitted", "failed", "step_started"], RunState.FAILED),
        (["intent", "submitted", "coordinator_started", "succeeded"], RunState.SUCCEEDED),
        (["intent", "succeeded", "failed", "coordinator_started", "submitted"], RunState.SUCCEEDED),
        (["intent", "succeeded", "verified"], RunState.SUCCEEDED),
        (["paused"], RunState.INTENT),
    ],
)
def test_states(kinds, state):
    assert state_of(*kinds) is state


def test_everything_design_10_asks_for_is_read():
    intent = {
        "job_name": "cat_count-aaaaaaaa-1",
        "bundle": "b" * 64,
        "recipe": "c" * 64,
        "stage": "rl",
        "cluster": "local",
        "runtime_commit": "d" * 40,
        "topology": {"num_nodes": 2},
        "artifacts": ["m@1", "r@1"],
        "forwarded_names": ["HF_TOKEN"],
        "source_commit": "e" * 40,
        "dirty": True,
    }
    record = fold(
        KEY,
        events_of(
            ("intent", intent),
            ("submitted", {"job_id": "/s/c"}),
            ("coordinator_started", {"job_id": "/s/c"}),
            ("step_reused", {"step": "m@1"}),
            ("child_submitted", {"job_id": "/s/c/child", "attempt_id": "0123456789ab", "step": "r@1"}),
            ("child_submitted", {"job_id": "/s/c/child", "attempt_id": "0123456789ab", "step": "r@1"}),
            ("step_finished", {"step": "e@1"}),
            ("succeeded", {}),
            ("verified", {"verified": True}),
        ),
    )
    assert record.job_name == "cat_count-aaaaaaaa-1"
    assert record.coordinator_job_id == "/s/c"
    assert record.child_job_ids == ("/s/c/child",)
    assert record.attempt_ids == ("0123456789ab",)
    assert record.artifacts == ("m@1", "r@1", "e@1")
    assert (record.recipe_digest, record.launch_digest, record.bundle_digest) == (
        "c" * 64,
        "a" * 64,
        "b" * 64,
    )
    assert record.runtime_commit == "d" * 40
    assert record.topology == {"num_nodes": 2}
    assert (record.stage, record.cluster) == ("rl", "local")
    assert (record.who, record.when) == ("w1", "2026-11-30T12:00:01Z")
    assert (record.source_commit, record.dirty) == ("e" * 40, True)
    assert record.forwarded_names == ("HF_TOKEN",)
    assert record.verification == {"verified": True}
    assert record.reason is None


def test_the_latest_verification_counts():
    yes, no = ("verified", {"n": 1}), ("verify_failed", {"n": 2})
    start = ("succeeded", {})
    assert fold(KEY, events_of(start, yes, no)).verification is None
    assert fold(KEY, events_of(start, yes, no)).verify_failure == {"n": 2}
    assert fold(KEY, events_of(start, no, yes)).verification == {"n": 1}
    assert fold(KEY, events_of(start, no, yes)).verify_failure is None


def test_the_reason_belongs_to_the_state():
    failed = ("failed", {"reason": "rank 1 died"})
    assert fold(KEY, events_of(("intent", {}), failed)).reason == "rank 1 died"
    assert fold(KEY, events_of(("intent", {}), failed, ("coordinator_started", {}))).reason is None
    refused = ("refused", {"reason": "no room"})
    assert fold(KEY, events_of(("intent", {}), refused, ("submitted", {}))).reason is None


def test_no_events_is_no_record():
    with pytest.raises(ValueError, match="a record has at least one event"):
        fold(KEY, [])


FACTS = st.dictionaries(
    st.sampled_from(["job_id", "step", "reason", "artifacts", "topology", "dirty", "bundle", "attempt_id"]),
    st.one_of(st.none(), st.integers(), st.text(max_size=3), st.lists(st.text(max_size=3), max_size=2)),
    max_size=4,
)
HISTORIES = st.lists(
    st.tuples(st.sampled_from([*sorted(EVENT_KINDS), "later_kind"]), FACTS), min_size=1, max_size=12
)


@given(HISTORIES, st.randoms(use_true_random=False))
def test_folding_does_not_depend_on_the_order_of_reading(history, rng: random.Random):
    events = events_of(*history)
    shuffled = list(events)
    rng.shuffle(shuffled)
    assert fold(KEY, shuffled) == fold(KEY, events)


@given(HISTORIES)
def test_success_is_final_and_a_submission_is_never_undone(history):
    events = events_of(*history)
    states = [fold(KEY, events[:length]).state for length in range(1, len(events) + 1)]
    submitted = False
    for before, after in itertools.pairwise(states):
        if before is RunState.SUCCEEDED:
            assert after is RunState.SUCCEEDED
        submitted = submitted or before.is_live or before.is_final
        if submitted:
            assert after.is_live or after.is_final


@given(HISTORIES)
def test_what_was_learned_is_kept(history):
    events = events_of(*history)
    for length in range(1, len(events)):
        earlier, later = fold(KEY, events[:length]), fold(KEY, events)
        assert later.child_job_ids[: len(earlier.child_job_ids)] == earlier.child_job_ids
        assert set(earlier.artifacts) <= set(later.artifacts)
        assert later.coordinator_job_id or not earlier.coordinator_job_id


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
