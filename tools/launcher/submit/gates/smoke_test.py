import sys
from typing import Any

import pytest

from tools.launcher.store.records import RunKey, RunRecord
from tools.launcher.store.run_events import EVENT_SCHEMA, RunEvent
from tools.launcher.store.run_record import fold
from tools.launcher.submit.gates.smoke import SmokeFacts, smoke_gate

SHAPE = {"runtime": {"commit": "a" * 40}, "geometry": {"engine TP": 2}}
OTHER = {"runtime": {"commit": "b" * 40}, "geometry": {"engine TP": 2}}
LAUNCH = "tools/bazel run //experiments/x:x_smoke.launch"


def facts(**changes: Any) -> SmokeFacts:
    wanted = {
        "label": "//experiments/x:x",
        "cluster": "cw-us-east-02a",
        "nodes": 8,
        "threshold": 2,
        "smoke": "//experiments/x:x_smoke",
        "shape": SHAPE,
        "store_url": "gs://team/slipway",
    }
    return SmokeFacts.model_validate(wanted | changes)


def record(*kinds: str, ordinal: int = 1, rehearsal: bool = False, **intent: Any) -> RunRecord:
    """A run of the smoke; `kinds` are its events after the intent."""
    key = RunKey(experiment="x_smoke", launch_digest="d" * 64, ordinal=ordinal)
    opening = {"runtime": "rehearsal" if rehearsal else "marinskyrl", "shape": SHAPE} | intent
    contents: dict[str, Any] = {"intent": opening, "verified": {"verified": True, "rehearsal": rehearsal}}
    events = [
        RunEvent(
            schema_version=EVENT_SCHEMA,
            event_id=f"{number:032x}",
            seq=number,
            kind=kind,
            at=f"2026-11-{ordinal:02}T12:00:00Z",
            by="ada@lab",
            facts=contents.get(kind, {}),
        )
        for number, kind in enumerate(("intent", *kinds), start=1)
    ]
    return fold(key, events)


DONE = ("submitted", "succeeded", "verified")


def test_a_verified_run_of_the_shape_passes():
    gate = smoke_gate(facts(), [record(*DONE, ordinal=1), record(*DONE, ordinal=2, shape=OTHER)])
    assert (gate.state, gate.fix) == ("passed", "")
    assert gate.found == "x_smoke/dddddddd/1 of 2026-11-01T12:00:00Z is verified and of this shape"


def test_of_several_the_newest_counts():
    gate = smoke_gate(facts(), [record(*DONE, ordinal=2), record(*DONE, ordinal=3), record(*DONE, ordinal=1)])
    assert "x_smoke/dddddddd/3" in gate.found


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"threshold": None}, "cw-us-east-02a asks for none"),
        ({"nodes": 2}, "2 nodes, and cw-us-east-02a asks for one above 2"),
        ({"nodes": 1, "threshold": 1}, "1 node, and cw-us-east-02a asks for one above 1"),
    ],
)
def test_a_small_launch_needs_none(changes, found):
    gate = smoke_gate(facts(**changes), [])
    assert (gate.state, gate.found) == ("not_needed", found)


def refused(*records: RunRecord, **changes: Any) -> tuple[str, str]:
    gate = smoke_gate(facts(**changes), records)
    assert gate.state == "missing"
    large = "8 nodes on cw-us-east-02a, above its threshold of 2"
    assert gate.found.startswith(large)
    return gate.found.removeprefix(large), gate.fix


def test_a_target_that_names_no_smoke():
    assert refused(smoke=None) == (
        ", and //experiments/x:x names no smoke",
        (
            'write smoke = "//…" at //experiments/x:x: an experiment of the same shape on at most '
            "2 nodes; launch that "
            "first"
        ),
    )


def test_no_run_at_all():
    assert refused() == ("; no run of x_smoke is on record", LAUNCH)


def test_a_rehearsal_is_no_smoke():
    said = (
        "; only rehearsals of x_smoke are on record, such as x_smoke/dddddddd/2; a stand-in trained no model"
    )
    assert refused(record(*DONE, rehearsal=True), record(*DONE, ordinal=2, rehearsal=True)) == (said, LAUNCH)
    # The files say who trained, whatever the record says; and who does not say it does not count.
    lying = record(*DONE, rehearsal=True, runtime="marinskyrl")
    silent = record(*DONE, ordinal=2, runtime=None)
    assert refused(lying, silent) == (said, LAUNCH)


def test_a_verified_import_is_no_smoke():
    imported = record(*DONE, stage="import")
    assert refused(imported) == ("; no run of x_smoke is on record", LAUNCH)
    assert smoke_gate(facts(), [imported, record(*DONE, ordinal=2, stage="rl")]).state == "passed"


def test_a_stale_smoke_names_what_differs():
    said, fix = refused(record(*DONE, shape=OTHER))
    assert said == (
        "; stale smoke: x_smoke/dddddddd/1 of 2026-11-01T12:00:00Z is verified, but runtime commit "
        "is aaaaaaaaaaaa "
        "here, bbbbbbbbbbbb in the smoke run"
    )
    assert fix == LAUNCH


def test_of_stale_ones_the_nearest_is_told():
    far = {"runtime": {"commit": "b" * 40}, "geometry": {"engine TP": 4}}
    said, _ = refused(record(*DONE, ordinal=1, shape=OTHER), record(*DONE, ordinal=2, shape=far))
    assert "x_smoke/dddddddd/1 of " in said


def test_of_many_differences_six_are_told():
    said, _ = refused(record(*DONE, shape={str(number): number for number in range(9)}))
    assert said.endswith("; 3 is not written here, 3 in the smoke run; and 5 more")


def test_a_record_without_a_shape():
    said, _ = refused(record(*DONE, shape={}))
    assert said.endswith(" is verified, but its record does not say its shape")


@pytest.mark.parametrize(
    ("kinds", "state", "fix"),
    [
        (("submitted",), "submitted", LAUNCH),
        (("submitted", "failed"), "failed", LAUNCH),
        (
            ("submitted", "succeeded"),
            "succeeded",
            "tools/bazel run //tools/launcher -- verify x_smoke/dddddddd/1 --store=gs://team/slipway",
        ),
        (("submitted", "succeeded", "verified", "verify_failed"), "succeeded", LAUNCH),
    ],
)
def test_a_smoke_that_is_not_verified(kinds, state, fix):
    said = f"; x_smoke/dddddddd/1 has this shape and is {state}, not verified"
    assert refused(record(*kinds), record(*DONE, ordinal=2, shape=OTHER)) == (said, fix)


def test_an_unverified_smoke_of_another_shape():
    said, fix = refused(record("submitted", "failed", shape=OTHER))
    assert said.startswith("; x_smoke/dddddddd/1 is failed, not verified, and runtime commit is ")
    assert fix == LAUNCH


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
