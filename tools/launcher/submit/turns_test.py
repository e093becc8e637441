"""Of all runs of one artifact version, one at a time holds the turn."""

import subprocess
import sys

import pytest

from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunKey, append_event, load_record
from tools.launcher.submit.turns import (
    TurnRefused,
    TurnUnreadable,
    is_over,
    runs_with_a_turn,
    take_turn,
    turn_holder,
)

NAME, VERSION = "lab/cat-rl", "2026.11.30"
HERE = RunKey(experiment="cat", launch_digest="a" * 64, ordinal=1)
THERE = RunKey(experiment="cat", launch_digest="b" * 64, ordinal=1)


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path)


def take(store, key, by="ann@desk"):
    take_turn(store, key, NAME, VERSION, by, lambda run: load_record(store, run))


def tell(store, key, *kinds, **facts):
    for kind in kinds:
        append_event(
            store, key, kind, "ann@desk", {"job_id": "/slipway/cat-1", "reason": "out of memory"} | facts
        )


def refusal(store, key):
    with pytest.raises(TurnRefused) as caught:
        take(store, key, by="bob@lab")
    return str(caught.value)


def test_a_run_has_its_own_turn_as_often_as_it_asks(store):
    take(store, HERE)
    first = turn_holder(store, NAME, VERSION)
    take(store, HERE, by="bob@lab")
    tell(store, HERE, "intent")
    take(store, HERE)
    assert turn_holder(store, NAME, VERSION) == first
    assert (first.key, first.place, first.by, first.after) == (HERE, 1, "ann@desk", 0)
    assert store.list("versions/") == ("versions/lab/cat-rl/2026.11.30/turns/0001.json",)


def test_other_versions_and_names_have_turns_of_their_own(store):
    take(store, HERE)
    take_turn(store, THERE, NAME, "2026.12.01", "bob@lab", lambda run: load_record(store, run))
    take_turn(store, THERE, "lab/cat", VERSION, "bob@lab", lambda run: load_record(store, run))
    assert turn_holder(store, NAME, VERSION).key == HERE
    assert {turn.key for turn in runs_with_a_turn(store)} == {HERE, THERE}


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (
            (),
            (
                "whose submission is not confirmed: it is not begun to be recorded. Two runs would write the same "
                "checkpoints. Launch that one again, which finds out what became of it, or end it: "
                '`launcher cancel cat/aaaaaaaa/1 --store=STORE --authorize="who: why"`'
            ),
        ),
        (("intent",), "whose submission is not confirmed: it is still intent. Two runs would"),
        (
            ("intent", "submitted"),
            (
                "which is submitted as job /slipway/cat-1. Two runs would write the same checkpoints. Wait for its "
                "end (`launcher status cat/aaaaaaaa/1 --store=STORE`), or end it: `launcher cancel cat/aaaaaaaa/1 "
                "--store=STORE --authorize="
            ),
        ),
        (("intent", "submitted", "coordinator_started"), "which is running as job /slipway/cat-1."),
        (("intent", "submitted", "cancel_requested"), "which is submitted as job /slipway/cat-1."),
    ],
)
def test_another_run_is_told_who_holds_the_turn_and_what_resolves_it(store, kinds, said):
    take(store, HERE)
    tell(store, HERE, *kinds)
    # The card of the cluster may name the store, which neither command reads (breaker, issue 4).
    text = refusal(store, THERE).replace(store.url, "STORE")
    taken = turn_holder(store, NAME, VERSION).at
    assert text.startswith(
        f"lab/cat-rl@2026.11.30 is the turn of cat/aaaaaaaa/1, taken by ann@desk at {taken}, {said}"
    )
    assert turn_holder(store, NAME, VERSION).key == HERE


@pytest.mark.parametrize("end", ["succeeded", "failed", "cancelled", "refused", "conflict"])
def test_a_run_that_is_over_passes_the_turn_on(store, end):
    take(store, HERE)
    tell(store, HERE, "intent", end)
    take(store, THERE)
    assert (turn_holder(store, NAME, VERSION).key, turn_holder(store, NAME, VERSION).place) == (THERE, 2)
    tell(store, THERE, "intent")
    assert "turn of cat/bbbbbbbb/1" in refusal(store, HERE)


def test_a_refusal_from_before_its_turn_does_not_end_it(store):
    take(store, HERE)
    tell(store, HERE, "intent", "refused")
    take(store, HERE)  # The same run is launched again: it competes for the next turn like any other.
    assert (turn_holder(store, NAME, VERSION).place, turn_holder(store, NAME, VERSION).after) == (2, 2)
    assert "it is still refused" in refusal(store, THERE)
    tell(store, HERE, "refused")
    take(store, THERE)


@pytest.mark.parametrize("facts", [{"interrupted": True}, {"child_running": "/slipway/cat-1/child"}])
def test_a_failure_that_leaves_jobs_keeps_the_turn(store, facts):
    take(store, HERE)
    tell(store, HERE, "intent", "submitted")
    tell(store, HERE, "failed", **facts)
    assert not is_over(load_record(store, HERE))
    assert (
        "which failed and may have left jobs that work: out of memory. Two runs would write the same "
        "checkpoints. Close it, which ends what is left of it: `launcher cancel cat/aaaaaaaa/1 "
    ) in refusal(store, THERE)
    tell(store, HERE, "failed")
    take(store, THERE)


def test_a_name_that_no_store_can_hold_is_refused(store):
    with pytest.raises(
        TurnRefused, match="lab/cät@dev cannot have a turn: object key 'versions/lab/cät/dev/turns'"
    ):
        take_turn(store, HERE, "lab/cät", "dev", "ann@desk", lambda run: load_record(store, run))


def test_a_version_that_had_all_its_turns_is_refused(store):
    take(store, HERE)
    tell(store, HERE, "intent", "failed")
    folder = "versions/lab/cat-rl/2026.11.30/turns/"
    store.put_if_absent(f"{folder}9999.json", store.get(f"{folder}0001.json"))
    assert refusal(store, THERE) == (
        "lab/cat-rl@2026.11.30 had 9999 turns, which is all there are. Give it a new version"
    )


@pytest.mark.parametrize("data", [b"", b"[]", b'{"run": "cat/1"}', b'{"run": "cat/x/1", "by": "", "at": ""}'])
def test_a_damaged_turn_is_named(store, data):
    store.put_if_absent("versions/lab/cat-rl/2026.11.30/turns/0001.json", data)
    with pytest.raises(TurnUnreadable, match="turn versions/lab/cat-rl/2026.11.30/turns/0001.json cannot be"):
        take(store, HERE)


COMPETITOR = """
import sys
from pathlib import Path
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunKey, append_event, load_record
from tools.launcher.submit.turns import TurnRefused, take_turn
store = FileStore(Path(sys.argv[1]))
key = RunKey(experiment="cat", launch_digest=sys.argv[2] * 64, ordinal=1)
print("ready", flush=True)
sys.stdin.readline()
try:
    take_turn(store, key, "lab/cat-rl", "2026.11.30", "x@y", lambda run: load_record(store, run))
    append_event(store, key, "intent", "x@y", {})
    print("holds")
except TurnRefused:
    print("refused")
"""


def test_of_eight_processes_one_holds_the_turn(tmp_path):
    store = FileStore(tmp_path)
    take(store, HERE)
    tell(store, HERE, "intent", "failed")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COMPETITOR, str(tmp_path), digit],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": ":".join(sys.path)},
        )
        for digit in "01234567"
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert sorted(said) == ["holds"] + ["refused"] * 7
    holder = turn_holder(store, NAME, VERSION)
    assert holder.place == 2 and holder.key.launch_digest == str(said.index("holds")) * 64


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
