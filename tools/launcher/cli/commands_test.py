"""The command line: help, wrong usage, selection of runs, what errors look like."""

import errno
import json
import shutil
import subprocess
import sys

import pytest

from tools.launcher.cli import exit_codes, plan_command
from tools.launcher.cli.commands import COMMANDS, run
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.run_following import wait_on_disk
from tools.launcher.cli.run_selection import NoSuchRun, find_run, short_name
from tools.launcher.iris.jobs import IrisUnreachable
from tools.launcher.iris.local.state import LocalClusterError
from tools.launcher.observe.run_testlib import Run
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
        NoSuchRun, match="no run on record fits 'mice'. On record: cats/aaaaaaaa/1, cats/aaaaaaaa/2"
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
            r"^no run on record fits 'cat'. On record: (cats/a+/\d+, ){11}cats/a+/\d+ and 18 more "
            r"\(in the store file://.*/store\)$"
        ),
    ):
        find_run(store, "cat")


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
    with pytest.raises(NoSuchRun, match="no run on record fits ''. On record: cats/aaaaaaaa/1"):
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
