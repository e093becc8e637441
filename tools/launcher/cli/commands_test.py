"""The command line: help, wrong usage, selection of runs, what errors look like."""

import contextlib
import dataclasses
import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.launcher.cli import exit_codes, local_command, plan_command
from tools.launcher.cli.commands import COMMANDS, run
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.run_following import wait_on_disk
from tools.launcher.cli.run_selection import (
    NAMING,
    SHORTENING,
    WHOLE,
    NoSuchRun,
    find_named_run,
    find_run,
    find_unfinished_run,
    short_name,
)
from tools.launcher.iris.jobs import IrisUnreachable
from tools.launcher.iris.local.control import LocalStatus, StopOutcome
from tools.launcher.iris.local.state import LocalClusterError
from tools.launcher.observe.run_testlib import COORDINATOR_ID, Run
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RecordError, RunKey, append_event


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    """No test may see or touch the user's own runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_help_lists_every_command(capsys):
    assert run(["--help"]) == exit_codes.OK
    text = capsys.readouterr().out
    assert all(f"  {name}" in text for name in COMMANDS) and "Exit status: 0 done" in text


def test_no_command_is_wrong_usage(capsys):
    assert run([]) == exit_codes.USAGE
    assert "usage: launcher COMMAND" in capsys.readouterr().out


def test_an_unknown_command_names_the_known_ones(capsys):
    assert run(["stauts"]) == exit_codes.USAGE
    assert (
        "no command 'stauts' (did you mean status?). Commands: new, launch, rehearse, "
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name, capsys):
    with pytest.raises(SystemExit) as caught:
        run([name, "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "examples:" in text and "tools/bazel run" in text


def test_an_unknown_flag_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as caught:
        run(["status", "--no-such-flag"])
    assert caught.value.code == exit_codes.USAGE
    assert "unrecognized arguments: --no-such-flag" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["status", "verify"])
def test_without_runs_the_first_launch_is_shown(command, capsys):
    assert run([command]) == exit_codes.USAGE
    said = capsys.readouterr().err
    # The store is named: runs on a cluster are not in the local Iris's own (breaker, issue 4).
    assert said.startswith("error: no run is on record yet in file:///")
    assert said.endswith(
        "/slipway/store. Launch one: tools/bazel run //experiments/cat_count:launch; or name the store that your "
        "runs are in with --store=gs://bucket/prefix\n"
    )


def test_help_imports_no_scheduler_and_no_cloud_client():
    code = (
        "import json, sys\n"
        "from tools.launcher.cli.commands import run\n"
        "run(['--help'])\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    ).stdout
    assert not {"iris", "google", "grpc", "pyarrow", "numpy", "pydantic", "rich"} & set(
        json.loads(out.splitlines()[-1])
    )


def record(store, experiment, digit, ordinal, at):
    append_event(
        store,
        RunKey(experiment=experiment, launch_digest=digit * 64, ordinal=ordinal),
        "intent",
        "me",
        {"at": at},
    )


def test_runs_are_named_by_their_beginning(tmp_path):
    store = FileStore(tmp_path / "store")
    for experiment, digit, ordinal in (
        ("cats", "a", 1),
        ("cats", "a", 2),
        ("cats", "b", 1),
        ("dogs", "c", 1),
    ):
        record(store, experiment, digit, ordinal, "x")
    assert short_name(find_run(store, "dogs")) == "dogs/cccccccc/1"
    assert short_name(find_run(store, None)) == "dogs/cccccccc/1"
    assert short_name(find_run(store, "cats/a")) == "cats/aaaaaaaa/2"
    assert short_name(find_run(store, "cats/a/1")) == "cats/aaaaaaaa/1"
    with pytest.raises(
        NoSuchRun,
        match=r"^no run on record fits 'mice'\. There are runs of: cats, dogs \(in the store file://",
    ):
        find_run(store, "mice")
    with pytest.raises(
        NoSuchRun, match=r"no run on record fits 'dogs/a'. On record: dogs/cccccccc/1 \(in the"
    ):
        find_run(store, "dogs/a")


class Counting:
    """A store that counts what is read of it."""

    def __init__(self, store):
        self.store, self.url, self.read = store, store.url, 0

    def list(self, prefix):
        return self.store.list(prefix)

    def get(self, name):
        self.read += 1
        return self.store.get(name)


def test_the_newest_of_many_runs_costs_one_read_each_and_names_are_few(tmp_path):
    store = FileStore(tmp_path / "store")
    for ordinal in range(1, 31):
        record(store, "cats", "a", ordinal, "x")
        for kind in ("submitted", "coordinator_started", "failed"):
            key = RunKey(experiment="cats", launch_digest="a" * 64, ordinal=ordinal)
            append_event(store, key, kind, "me", {"job_id": "/a/b"})
    counting = Counting(store)
    assert find_run(counting, "cats").key.ordinal == 30 and counting.read == 30 + 4
    counting = Counting(store)
    assert find_run(counting, "cats/a/7").key.ordinal == 7 and counting.read == 4
    with pytest.raises(
        NoSuchRun,
        match=(
            r"^no run on record fits 'cats/b'. On record: (cats/a+/\d+, ){11}cats/a+/\d+ and 18 more "
            r"\(in the store file://.*/store\)$"
        ),
    ):
        find_run(store, "cats/b")


def test_to_look_the_beginning_of_a_name_is_enough(tmp_path):
    """`status tp` of the run tp_study listed twelve others."""
    store = FileStore(tmp_path / "store")
    for experiment in ("tp_study", "cats", "cats.import", "dogs_a", "dogs_b"):
        record(store, experiment, "a", 1, "x")
    assert short_name(find_run(store, "tp")) == "tp_study/aaaaaaaa/1"
    assert short_name(find_run(store, "tp/a/1")) == "tp_study/aaaaaaaa/1"
    # What is somebody's whole name is no beginning of another's.
    assert short_name(find_run(store, "cats")) == "cats/aaaaaaaa/1"
    with pytest.raises(
        NoSuchRun,
        match=(
            r"^'dogs/a' begins the names of 2 experiments on record in file://.*/store: dogs_a, dogs_b\. Give more "
            r"of one$"
        ),
    ):
        find_run(store, "dogs/a")


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("tpstudy", "tp_study"),
        ("study", "tp_study"),
        ("tp-study/a", "tp_study"),
        ("tp_", "tp_study or tp_other"),
    ],
)
def test_to_change_something_the_whole_name_is_asked_for_with_those_that_may_be_meant(
    wanted, meant, tmp_path
):
    store = FileStore(tmp_path / "store")
    for experiment in ("tp_study", "aa_cats", "ab_cats"):
        record(store, experiment, "a", 1, "x")
    if "other" in meant:
        record(store, "tp_other", "a", 1, "x")
    for find in (find_named_run, lambda *asked: find_unfinished_run(*asked, lambda record: False)):
        with pytest.raises(NoSuchRun) as caught:
            find(store, wanted)
        expected = " or ".join(sorted(meant.split(" or ")))
        assert str(caught.value) == (
            f"no run on record fits '{wanted}'. Did you mean {expected}? (in the store {store.url})"
        )


@pytest.mark.parametrize("command", ["status", "watch", "logs", "verify", "provenance"])
def test_help_says_what_may_be_shortened(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    with pytest.raises(SystemExit):
        run([command, "--help"])
    assert f"{NAMING} {SHORTENING}" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["cancel", "relaunch"])
def test_help_says_what_may_not_be_shortened(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    with pytest.raises(SystemExit):
        run([command, "--help"])
    assert f"{NAMING} {WHOLE}" in capsys.readouterr().out


def test_the_newest_run_is_so_by_time_and_not_by_the_text_of_it(tmp_path):
    """One writer gives milliseconds and another does not."""
    store = FileStore(tmp_path / "store")
    for ordinal, at in ((1, "2026-11-30T10:00:00.500Z"), (2, "2026-11-30T10:00:00Z")):
        event = {
            "schema": 1,
            "event_id": "0" * 32,
            "seq": 1,
            "kind": "intent",
            "at": at,
            "by": "me",
            "facts": {},
        }
        store.put_if_absent(f"runs/cats/{'a' * 64}/{ordinal}/events/0001.json", json.dumps(event).encode())
    assert find_run(store, "cats").key.ordinal == 1


def test_a_damaged_record_keeps_no_other_experiment_from_being_read(tmp_path):
    store = FileStore(tmp_path / "store")
    record(store, "cats", "a", 1, "x")
    record(store, "dogs", "b", 1, "x")
    next((tmp_path / "store" / "runs" / "cats").rglob("*.json")).write_text("{")
    assert short_name(find_run(store, "dogs/b")) == "dogs/bbbbbbbb/1"
    for wanted in ("cats", None):
        with pytest.raises(RecordError, match="cannot be read"):
            find_run(store, wanted)
    for wanted in ("mice", "not a name"):
        with pytest.raises(NoSuchRun):
            find_run(store, wanted)


class Cluster:
    """The local Iris, with jobs that end one question after another if they are going to."""

    def __init__(self, monkeypatch, *answers):
        self.answers, self.stopped, self.asked = list(answers), 0, 0
        found = LocalStatus(True, "http://127.0.0.1:1", 7, "", "", (), Path("log"), "running")
        self.status = found
        monkeypatch.setattr(local_command, "status", lambda _: self.status)
        monkeypatch.setattr(local_command, "connect", lambda _: contextlib.nullcontext(self))
        monkeypatch.setattr(local_command, "stop", self._stop)
        monkeypatch.setattr(local_command, "ENDING_SECONDS", 0.5)
        monkeypatch.setattr(local_command, "PAUSE_SECONDS", 0.05)

    def unfinished_jobs(self):
        self.asked += 1
        found = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def _stop(self, state, on_progress):
        self.stopped += 1
        return StopOutcome(True, 7, self.answers[-1], False, 0)


STOP_ANYWAY = (
    " Nothing was stopped. To end everything: tools/bazel run //tools/launcher -- local stop --end-runs\n"
)


def test_a_stop_that_would_end_runs_is_refused_and_names_them(tmp_path, monkeypatch, capsys):
    """An unfinished run became `failed: ended by launcher local stop`, unasked."""
    cats = Run(tmp_path / "slipway")
    cats.submit()
    iris = Cluster(monkeypatch, (COORDINATOR_ID, "/slipway/other"))
    assert run(["local", "stop"]) == exit_codes.REFUSED
    said = capsys.readouterr()
    assert said.err == (
        f"refused: 2 jobs go on: {COORDINATOR_ID} of the run {cats.key.short_name}, /slipway/other. Wait for the end, or "
        f"cancel the run.{STOP_ANYWAY}"
    )
    assert (said.out, iris.stopped, iris.asked, cats.record().state) == ("", 0, 1, "running")
    assert run(["local", "stop", "--end-runs"]) == exit_codes.OK
    assert f"jobs cancelled: {COORDINATOR_ID}, /slipway/other\n" in capsys.readouterr().out
    assert (iris.stopped, cats.record().reason) == (1, "ended by `launcher local stop`")


def test_a_job_that_is_about_to_end_keeps_nobody_from_stopping(tmp_path, monkeypatch, capsys):
    """That of the coordinator ends a moment after its record says so."""
    cats = Run(tmp_path / "slipway")
    cats.submit()
    cats.finish()
    iris = Cluster(monkeypatch, (COORDINATOR_ID,), (COORDINATOR_ID,), ())
    assert run(["local", "stop"]) == exit_codes.OK and (iris.asked, iris.stopped) == (3, 1)
    iris = Cluster(monkeypatch, ("/slipway/of-another-store",))
    assert run(["local", "stop"]) == exit_codes.REFUSED and iris.asked > 3
    assert "refused: 1 job goes on: /slipway/of-another-store. Wait" in capsys.readouterr().err


def test_what_a_stop_would_end_has_to_be_known(monkeypatch, capsys):
    iris = Cluster(monkeypatch, IrisUnreachable("http://127.0.0.1:1", 10.0))
    assert run(["local", "stop"]) == exit_codes.REFUSED
    said = capsys.readouterr().err
    assert said.startswith("refused: whether runs go on is not known: Iris at ") and said.endswith(
        STOP_ANYWAY
    )
    iris.status = dataclasses.replace(iris.status, running=False, note="process 7 does not answer")
    assert run(["local", "stop"]) == exit_codes.REFUSED
    assert "whether runs go on is not known: process 7 does not answer. Nothing" in capsys.readouterr().err
    iris.status, iris.answers = dataclasses.replace(iris.status, pid=None), [()]
    assert run(["local", "stop"]) == exit_codes.OK and iris.stopped == 1
    assert run(["local", "status", "--end-runs"]) == exit_codes.USAGE
    assert (
        "--end-runs is of `local stop`, and this is `local status`. Leave it out" in capsys.readouterr().err
    )


def test_following_ends_when_the_disk_is_full(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=4096))
    with pytest.raises(LocalClusterError) as caught:
        wait_on_disk(tmp_path, 3600)
    assert str(caught.value) == (
        f"the disk of the state folder {tmp_path} is full, and neither the local Iris nor the run can go on. "
        "Free some space, then launch again: that finds out what became of the run"
    )
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    wait_on_disk(tmp_path, 0)


def test_an_empty_name_is_no_name(tmp_path):
    store = FileStore(tmp_path / "store")
    record(store, "cats", "a", 1, "x")
    with pytest.raises(NoSuchRun, match=r"no run on record fits ''\. There are runs of: cats"):
        find_run(store, "")


def test_a_full_disk_is_a_sentence(capsys):
    def full(flags):
        raise OSError(errno.ENOSPC, "No space left on device", "/state/slipway/local/lock")

    assert reporting(full)(None) == exit_codes.UNKNOWN
    assert capsys.readouterr().err == (
        "error: /state/slipway/local/lock: No space left on device. Free the disk or correct the file, then "
        "run the command again\n"
    )


def test_the_answer_about_a_run_that_goes_on_is_not_recorded(tmp_path, capsys):
    going = Run(tmp_path / "slipway")
    going.submit()
    before = going.record().events
    assert run(["verify", "cats"]) == exit_codes.FAILED
    text = capsys.readouterr().out
    assert "verified: no\n" in text
    assert text.endswith("note: the run is running, so this is not its final answer and is not recorded\n")
    assert going.record().events == before
    assert run(["status"]) == exit_codes.OK
    assert "note: the local Iris is not running, so this run does not go on." in capsys.readouterr().out
    going.train()
    going.finish()
    assert run(["verify", "cats"]) == exit_codes.OK
    assert [event.kind for event in going.record().events[-2:]] == ["succeeded", "verified"]


def test_a_folder_is_no_plan(tmp_path, capsys):
    """It was a traceback."""
    assert plan_command.run([f"--plan={tmp_path}"]) == exit_codes.USAGE
    assert capsys.readouterr().err == (
        f"error: {tmp_path}: Is a directory. Name a file that the experiment's build made\n"
    )


def test_errors_of_our_world_become_sentences(capsys):
    def unreachable(flags):
        raise IrisUnreachable("http://127.0.0.1:1", 3.0)

    assert reporting(unreachable)(None) == exit_codes.UNKNOWN
    assert capsys.readouterr().err.startswith("error: ")

    def interrupted(flags):
        raise KeyboardInterrupt

    assert reporting(interrupted)(None) == exit_codes.INTERRUPTED
    assert "what was submitted goes on" in capsys.readouterr().err

    def broken(flags):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        reporting(broken)(None)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
