"""`watch`: at a terminal and elsewhere, to the end and interrupted, of runs here and of others."""

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tools.launcher.cli import exit_codes
from tools.launcher.cli.commands import run
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.cli.run_following import watch_command
from tools.launcher.iris.route import EMBEDDED, Route
from tools.launcher.observe.run_testlib import COORDINATOR_ID, Run
from tools.launcher.store.records import RunKey, reload_record

SECONDS = 60
CLOSED = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    """No test may see or touch the user's own runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("SLIPWAY_STORE", "SLIPWAY_CONTROLLER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tools.launcher.cli.launch_cluster.IRIS_GIVE_UP_SECONDS", 0.3)


def far(tmp_path, **route):
    """A run on a cluster to which there is no way, and whose files are here."""
    shared = tmp_path / "shared"
    return Run(
        shared,
        route={"scheduler": "iris", **(route or {"controller": CLOSED})},
        object_root=f"file://{shared / 'objects'}",
        cluster="far",
    )


def store_of(cats):
    return f"--store={cats.store.url}"


def test_a_run_that_has_ended_is_shown_and_verified(tmp_path, capsys):
    cats = far(tmp_path)
    cats.submit()
    cats.train()
    cats.finish()
    assert run(["watch", "cats", store_of(cats)]) == exit_codes.OK
    out = capsys.readouterr().out
    assert out.startswith("succeeded  tasks 2/2  step 3/3  reward 0.750  checkpoint 3\n"), out
    assert "verified: yes\n" in out and f"coordinator job: {COORDINATOR_ID}\n" in out
    assert cats.record().events[-1].kind == "verified"


def test_a_run_that_was_to_train_nothing_is_judged_by_its_imports(tmp_path, capsys):
    """It was called not verified, for want of a training."""
    cats = Run(
        tmp_path / "shared",
        stage="import",
        route={"scheduler": "iris", "controller": CLOSED},
        cluster="far",
        object_root=f"file://{tmp_path}/shared/objects",
    )
    cats.event("submitted", job_id=COORDINATOR_ID)
    cats.event("coordinator_started", job_id=COORDINATOR_ID)
    cats.event("step_reused", step="qwen@1")
    cats.make("qwen@1", {"config.json": b"{}"})
    cats.event("succeeded")
    assert run(["watch", "cats", store_of(cats)]) == exit_codes.OK
    out = capsys.readouterr().out
    assert "verified: yes\n  yes  imports_exist: qwen@1, with 1 file\n" in out
    assert (
        "stage import: its models and data have to be there, whole and as planned; it trains nothing\n" in out
    )
    assert cats.record().events[-1].kind == "verified"
    assert run(["status", "cats", store_of(cats)]) == exit_codes.OK
    assert "tasks joined: 0/0\nsteps: 0/0\n" in capsys.readouterr().out


def test_a_run_that_failed_is_not_verified(tmp_path, capsys):
    cats = far(tmp_path)
    cats.submit()
    cats.event("failed", reason="rank 1 was killed", step="cats@1")
    assert run(["watch", "cats", store_of(cats)]) == exit_codes.FAILED
    said = capsys.readouterr()
    assert said.out.startswith("failed  failed cats@1") and "verified: no\n" in said.out
    assert (
        "run failed: rank 1 was killed\nto try the same document again: tools/bazel run //tools/launcher -- relaunch "
        f'{cats.key.short_name} {store_of(cats)} --authorize="who: why"; it resumes from the newest whole checkpoint\n'
    ) in said.err


def test_a_run_that_is_cancelled_is_seen_to_be(tmp_path, capsys):
    """Its coordinator fails a moment before whoever cancels it has the last word."""
    cats = far(tmp_path)
    cats.submit()
    cats.event("cancel_requested", authorized="ann: wrong data")
    cats.event("failed", reason="child job is killed", step="cats@1")
    last_word = threading.Timer(1.0, cats.event, ["cancelled"], {"reason": "by ann: wrong data"})
    last_word.start()
    assert run(["watch", "cats", store_of(cats)]) == exit_codes.FAILED
    last_word.join()
    assert "run cancelled: by ann: wrong data\n" in capsys.readouterr().err


def test_waiting_for_a_cancellation_is_said(tmp_path, monkeypatch):
    cats, said = far(tmp_path), io.StringIO()
    cats.submit()
    cats.event("cancel_requested", authorized="ann: wrong data")
    cats.event("failed", reason="child job is killed", step="cats@1")
    waits = f"{cats.key.short_name} is being cancelled: waiting for its jobs to be seen ended ...\n"
    reload = reload_record

    def reload_then_end(store, key):
        if waits in said.getvalue():
            cats.event("cancelled", reason="by ann: wrong data")
        return reload(store, key)

    monkeypatch.setattr("tools.launcher.cli.run_following.reload_record", reload_then_end)
    monkeypatch.setattr(sys, "stderr", said)
    assert run(["watch", "cats", store_of(cats)]) == exit_codes.FAILED
    assert f"{waits}run cancelled: by ann: wrong data\n" in said.getvalue()


def test_a_cancellation_that_is_not_done_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tools.launcher.cli.run_following.CANCELLED_SECONDS", 0.0)
    cats = far(tmp_path)
    cats.submit()
    cats.event("cancel_requested", authorized="ann: wrong data")
    cats.event("failed", reason="child job is killed", step="cats@1")
    assert run(["watch", "cats", store_of(cats)]) == exit_codes.FAILED
    assert (
        "its cancellation was asked for by ann: wrong data, and is not seen to be done\nrun failed: child job is killed\n"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("kinds", "status", "words"),
    [
        ((), exit_codes.UNKNOWN, "nothing to follow, the run is in state intent. Launch it again"),
        (("refused",), exit_codes.FAILED, "the run is in state refused: no room. Launch it again"),
    ],
)
def test_a_run_without_a_job_cannot_be_watched(tmp_path, capsys, kinds, status, words):
    cats = far(tmp_path)
    for kind in kinds:
        cats.event(kind, reason="no room")
    assert run(["watch", "cats", store_of(cats)]) == status
    assert words in capsys.readouterr().err


def test_one_look_says_how_it_stands(tmp_path, capsys):
    cats = far(tmp_path)
    cats.submit()
    assert run(["watch", "cats", "--once", store_of(cats)]) == exit_codes.OK
    out = capsys.readouterr().out
    assert "state: running\n" in out and "ETA: not known until two steps were seen to end\n" in out
    cats.event("failed", reason="gone")
    assert run(["watch", "cats", "--once", store_of(cats)]) == exit_codes.FAILED
    assert "state: failed: gone\n" in capsys.readouterr().out


def test_without_the_local_iris_nothing_goes_on(tmp_path, capsys):
    cats = Run(tmp_path / "state" / "slipway")
    cats.submit()
    assert run(["watch"]) == exit_codes.UNKNOWN
    assert capsys.readouterr().err == (
        f"error: the run {cats.key.short_name} is running and does not go on: the local Iris does not run, and neither "
        "does anything on it. Start it: tools/bazel run //tools/launcher -- local start. Or launch the experiment "
        "again, which also finds out what became of the run\n"
    )
    assert run(["watch", "--once"]) == exit_codes.OK
    assert "\nnote: the local Iris does not run, " in capsys.readouterr().out


def test_a_run_that_is_not_there_is_wrong_usage(tmp_path, capsys):
    cats = far(tmp_path)
    assert run(["watch", "dogs", store_of(cats)]) == exit_codes.USAGE
    assert "no run on record fits 'dogs'. There are runs of: cats (in the store " in capsys.readouterr().err


KEY = RunKey(experiment="cats", launch_digest="a" * 64, ordinal=1)


@pytest.mark.parametrize(
    ("store", "state", "route", "flags"),
    [
        ("file:///s/store", "/s", EMBEDDED, ""),
        ("gs://lab/x", "/s", EMBEDDED, " --store=gs://lab/x"),
        ("gs://lab/x", None, Route(scheduler="iris", config="a.yaml"), " --store=gs://lab/x"),
        (
            "gs://lab/x",
            None,
            Route(scheduler="iris", controller=CLOSED),
            f" --store=gs://lab/x --controller={CLOSED}",
        ),
    ],
)
def test_the_command_that_watches_again_finds_the_run(store, state, route, flags, monkeypatch):
    place = LaunchPlace.model_validate(
        {
            "cluster": "x",
            "route": route,
            "runtime": "rehearsal",
            "store_url": store,
            "object_root_url": None,
            "state": None if state is None else Path(state),
        }
    )
    found = f"tools/bazel run //tools/launcher -- watch cats/aaaaaaaa/1{flags}"
    assert watch_command(KEY, place) == found
    # With another store named for all commands, also the local Iris's own has to be named.
    monkeypatch.setenv("SLIPWAY_STORE", "gs://lab/other")
    named = f" --store={store}"
    assert watch_command(KEY, place) == (found if named in found else found + named)


class Watching:
    """`watch` at a terminal of its own, of a run whose Iris cannot be asked: its record and files change."""

    def __init__(self, cats, *flags, columns=150):
        self.leader, follower = pty.openpty()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tools.launcher.cli.launcher_main", "watch", "cats"),
                *(f"--store={cats.store.url}", *flags),
            ],
            stdin=subprocess.DEVNULL,
            stdout=follower,
            stderr=subprocess.PIPE,
            # Whoever runs the tests may have been started with the signal ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            env={
                **{name: os.environ[name] for name in ("PATH", "XDG_STATE_HOME")},
                "PYTHONPATH": os.pathsep.join(sys.path),
                "COLUMNS": str(columns),
                "LINES": "50",
                "TERM": "xterm",
            },
        )
        os.close(follower)
        self.seen = ""

    def until(self, words):
        """Read what it shows until `words` are there."""
        end = time.monotonic() + SECONDS
        while words not in self.seen:
            assert time.monotonic() < end and self._read(), (words, self.seen, self.process.poll())

    def interrupted(self):
        """Hit Ctrl-C; exit status and stderr."""
        self.process.send_signal(signal.SIGINT)
        with self.process:
            while self._read():
                pass
            said = self.process.stderr.read().decode()
        os.close(self.leader)
        return self.process.returncode, said

    def _read(self):
        ready, _, _ = select.select([self.leader], [], [], SECONDS)
        try:
            data = os.read(self.leader, 65536) if ready else b""
        except OSError:  # Linux says so when the other side of a terminal is closed.
            data = b""
        self.seen += data.decode().replace("\r\n", "\n")
        return bool(data)


def test_ctrl_c_leaves_the_run_alone_and_says_so(tmp_path):
    cats = far(tmp_path, config="nowhere.yaml")
    cats.event("submitted", job_id=COORDINATOR_ID)
    watching = Watching(cats, "--plain")
    watching.until("submitted  Iris does not answer\n")
    cats.event("step_started", step="qwen@1")
    watching.until("running  step_started qwen@1  Iris does not answer\n")
    before = cats.record().events
    status, said = watching.interrupted()
    assert status == exit_codes.INTERRUPTED
    opening, note, empty, last = said.splitlines()
    assert opening == "opening the way to far ..."
    assert note.startswith(
        "note: cluster nowhere could not be reached: there is no Iris configuration nowhere.yaml"
    )
    assert note.endswith(
        "Only the record is watched: if the coordinator dies without a word, this waits for ever"
    )
    assert (empty, last) == (
        "",
        (
            f"interrupted: the run {cats.key.short_name} goes on. To watch it again: tools/bazel run //tools/launcher "
            f"-- watch {cats.key.short_name} --store={cats.store.url}"
        ),
    )
    assert cats.record().events == before
    # Lines, at a terminal too, and none twice.
    assert watching.seen.count("\n") == 2 and "\x1b" not in watching.seen


def test_a_terminal_has_a_table_that_changes_in_place(tmp_path):
    cats = far(tmp_path, config="nowhere.yaml")
    cats.submit()
    watching = Watching(cats)
    watching.until("not known until two steps were seen to end")
    for label in ("tasks joined", "coordinator", "elapsed"):
        assert re.search(rf"\x1b\[1m{label}\b", watching.seen), watching.seen
    cats.train()
    watching.until("0.750 latest, 0.500 mean")
    status, said = watching.interrupted()
    assert status == exit_codes.INTERRUPTED and "goes on. To watch it again: " in said
    # It moved up to draw over the table, and gave the cursor back.
    assert "\x1b[1A" in watching.seen and "\x1b[?25h" in watching.seen[-100:]


def test_a_narrow_table_leaves_room_for_what_the_terminal_writes_at_ctrl_c(tmp_path):
    """`^C` behind a full line moved the table down, and its first line stood there twice."""
    cats = far(tmp_path, config="nowhere.yaml")
    cats.submit()
    watching = Watching(cats, columns=40)
    watching.until("not asked yet")
    drawn = watching.seen
    watching.interrupted()
    # Codes for colours take no room; those that move the cursor begin a line.
    plain = re.sub(r"\x1b\[[0-9;]*m", "", drawn)
    lines = re.split(r"(?:\x1b\[[0-9;?]*[A-Za-z]|[\r\n])+", plain)
    assert any(line.startswith("verified") for line in lines)
    assert max(map(len, lines)) <= 40 - len("^C"), lines


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
