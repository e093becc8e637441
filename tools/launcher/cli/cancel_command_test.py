"""`cancel` where no cluster is needed to tell what it does; with one, see tests/e2e/launch_test.py."""

import sys

import pytest

from tools.launcher.cli import exit_codes
from tools.launcher.cli.commands import run
from tools.launcher.observe.run_testlib import COORDINATOR_ID, Run
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunKey, RunState, append_event, load_record
from tools.launcher.submit.turns import take_turn

WHY = "--authorize=ann: wrong data"
KEY = RunKey(experiment="dogs", launch_digest="d" * 64, ordinal=1)


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    """No test may see or touch the user's own runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("SLIPWAY_STORE", "SLIPWAY_CONTROLLER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tools.launcher.cli.launch_cluster.IRIS_GIVE_UP_SECONDS", 0.3)


@pytest.fixture
def cats(tmp_path):
    return Run(tmp_path / "slipway")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name the run to cancel: experiment[/launch digest[/ordinal]]; `launcher status` shows them"),
        (["cats"], "this needs someone who answers for it: say who and why, for example --authorize="),
        (["cats", "--authorize=ann"], "--authorize='ann' lacks the colon between them. Say who and why"),
        (["mice", WHY], "no run on record fits 'mice'. There are runs of: cats (in "),
        (["cats", WHY, "--store=ftp://x"], "ftp://x"),
    ],
)
def test_a_wrong_command_line_changes_nothing(cats, arguments, said, capsys):
    before = cats.record()
    assert run(["cancel", *arguments]) == exit_codes.USAGE
    assert said in capsys.readouterr().err
    assert cats.record() == before


def test_the_value_of_a_credential_does_not_get_into_the_record(cats, capsys, monkeypatch):
    """Breaker, issue 4: a launch looks for it in its reasons, a cancellation recorded it."""
    monkeypatch.setenv("WANDB_API_KEY", "wb-3f9a77c1e0d24")
    append_event(cats.store, KEY, "intent", "ann@desk", {"credentials": ["WANDB_API_KEY", "HF_TOKEN"]})
    assert run(["cancel", "dogs", "--authorize=ann: wb-3f9a77c1e0d24 was stolen"]) == exit_codes.USAGE
    said = capsys.readouterr().err
    assert "error: --authorize holds the value of WANDB_API_KEY, and what it says is recorded" in said
    assert "wb-3f9a77c1e0d24" not in said
    assert len(load_record(cats.store, KEY).events) == 1


@pytest.mark.parametrize("end", ["succeeded", "failed", "cancelled"])
def test_a_run_that_is_over_is_said_to_be(cats, end, capsys):
    cats.submit()
    cats.event(end, reason="by bob: enough")
    before = cats.record()
    assert run(["cancel", "cats", WHY]) == exit_codes.OK
    assert f"over already, nothing to cancel: {end}" in capsys.readouterr().out
    assert cats.record() == before


def test_while_the_local_iris_is_away_the_request_is_kept(cats, capsys):
    cats.submit()
    assert run(["cancel", "cats", "--dry-run"]) == exit_codes.UNKNOWN
    assert cats.record().events[-1].kind == "child_submitted"
    said = (
        "error: the local Iris does not run, and neither does anything on it. Start it: tools/bazel run "
        "//tools/launcher -- local start. The request to cancel is on record: call this again, which goes on\n"
    )
    for _ in range(2):
        capsys.readouterr()
        assert run(["cancel", "cats", WHY]) == exit_codes.UNKNOWN
        assert capsys.readouterr().err == said
    assert [event.kind for event in cats.record().events].count("cancel_requested") == 1
    assert cats.record().state is RunState.RUNNING
    assert run(["status", "cats"]) == exit_codes.OK
    assert "cancellation: asked for by ann: wrong data; not yet seen to be done" in capsys.readouterr().out


def test_of_two_living_runs_neither_is_taken_by_guess(cats, capsys):
    cats.submit()
    other = cats.key.model_copy(update={"launch_digest": "e" * 64})
    append_event(cats.store, other, "intent", "ann@desk", {"job_name": "cats-2"})
    names = sorted([f"cats/{cats.key.launch_digest[:8]}/1", "cats/eeeeeeee/1"])
    assert run(["cancel", "cats", WHY]) == exit_codes.USAGE
    assert (
        f"'cats' fits 2 runs that are not over: {', '.join(names)}. Name one of them"
        in capsys.readouterr().err
    )
    append_event(cats.store, other, "cancelled", "ann@desk", {})
    assert run(["cancel", "cats", WHY]) == exit_codes.UNKNOWN
    assert cats.record().events[-1].kind == "cancel_requested"


def test_a_cluster_that_does_not_answer_leaves_the_request_on_record(cats, capsys):
    route = {"scheduler": "iris", "controller": "http://127.0.0.1:1"}
    append_event(
        cats.store, KEY, "intent", "ann@desk", {"route": route, "job_name": "dogs-1", "object_root": None}
    )
    append_event(cats.store, KEY, "submitted", "ann@desk", {"job_id": COORDINATOR_ID})
    assert run(["cancel", "dogs", WHY, "--controller=nonsense"]) == exit_codes.USAGE
    assert "controller 'nonsense' is not the address of an Iris controller" in capsys.readouterr().err
    assert run(["cancel", "dogs", WHY, "--controller=http://127.0.0.1:2"]) == exit_codes.UNKNOWN
    said = capsys.readouterr().err
    assert "http://127.0.0.1:2" in said and "The request to cancel is on record" in said
    record = load_record(cats.store, KEY)
    assert record.events[-1].facts == {"authorized": "ann: wrong data", "jobs": [COORDINATOR_ID]}


def test_the_local_iris_of_somebody_else_is_not_taken_for_ours(tmp_path, monkeypatch, capsys):
    """A store that is shared has the records of many machines."""

    class Shared(FileStore):
        url = "gs://lab/slipway"

    shared = Shared(tmp_path / "shared")
    facts = {
        "route": {"scheduler": "embedded"},
        "job_name": "dogs-1",
        "object_root": "file:///home/cy/objects",
    }
    append_event(shared, KEY, "intent", "cy@laptop", facts)
    monkeypatch.setattr("tools.launcher.cli.run_place.open_store", lambda url: shared)
    arguments = ["cancel", "dogs", "--store=gs://lab/slipway", WHY]
    assert run(arguments) == exit_codes.UNKNOWN
    assert capsys.readouterr().err == (
        "error: the run is on the local Iris of cy@laptop, which cannot be asked from here. Run the command there\n"
    )
    assert len(load_record(shared, KEY).events) == 1
    assert run(["relaunch", *arguments[1:]]) == exit_codes.REFUSED
    assert "Relaunch it there, or launch the experiment here" in capsys.readouterr().err


def test_a_run_of_which_only_the_turn_is_known_is_closed(cats, capsys):
    take_turn(cats.store, KEY, "lab/dogs", "2026.11.30", "ann@desk", lambda key: load_record(cats.store, key))
    assert run(["cancel", "dogs", "--dry-run"]) == exit_codes.OK
    assert load_record(cats.store, KEY) is None
    assert run(["cancel", "dogs/dddddddd/1", WHY]) == exit_codes.OK
    assert f"{KEY} is cancelled by ann: wrong data; it had no job" in capsys.readouterr().out
    assert load_record(cats.store, KEY).state is RunState.CANCELLED
    assert run(["cancel", "dogs", WHY]) == exit_codes.OK
    assert "over already, nothing to cancel: cancelled: by ann: wrong data" in capsys.readouterr().out


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
