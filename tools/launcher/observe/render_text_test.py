import io
import sys

import pytest

from tools.launcher.observe.render_text import (
    progress_line,
    show_status,
    show_verification,
    status_text,
    verification_text,
)
from tools.launcher.observe.run_testlib import CHILD_ID, COORDINATOR_ID, OUT, TMP, FakeIris, Run, finished_run
from tools.launcher.observe.status import read_status
from tools.launcher.observe.verify import verify_run
from tools.launcher.store.records import RunState


class Terminal(io.StringIO):
    def isatty(self):
        return True


def running(tmp_path):
    run, iris = Run(tmp_path), FakeIris()
    run.submit()
    run.train()
    iris.put(COORDINATOR_ID, "running")
    iris.put(CHILD_ID, "running", tasks=2)
    return run, iris


def test_a_running_run_in_plain_lines(tmp_path):
    run, iris = running(tmp_path)
    status = read_status(run.record(), run.store, run.root, iris)
    lines = status_text(status).splitlines()
    assert lines[0] == f"run: {run.key}"
    assert lines[1:3] == ["state: running", "stage: rl"]
    assert lines[3].startswith("launched: 20") and lines[3].endswith("Z by ann@desk")
    assert lines[4:10] == [
        f"coordinator: {COORDINATOR_ID} (running, 1 of 1 tasks running)",
        f"child: {CHILD_ID} (running, 2 of 2 tasks running)",
        "tasks joined: 2/2",
        "steps: 3/3",
        "reward: 0.250 first, 0.750 latest, 0.500 mean",
        "checkpoint: step 3",
    ]
    assert lines[10].startswith("last event: child_submitted cats@1 at ")
    assert lines[11:] == ["verified: not asked yet"]


def test_what_needs_attention_is_said(tmp_path):
    run, iris = running(tmp_path)
    iris.put(COORDINATOR_ID, "killed")
    text = status_text(read_status(run.record(), run.store, run.root, iris))
    assert (
        "attention: the coordinator is gone and recorded no end; launch again to settle the record\n" in text
    )
    run.event("failed", reason="rank 1\nwas killed")
    text = status_text(read_status(run.record(), run.store, run.root, None))
    assert "state: failed: rank 1 was killed\n" in text
    # The record has told the end: that Iris was not asked is no news.
    assert f"coordinator: {COORDINATOR_ID}\n" in text


def test_a_job_that_does_not_exist_may_still_come_until_the_run_is_over(tmp_path):
    run, iris = running(tmp_path)
    status = read_status(run.record(), run.store, run.root, iris).model_copy(update={"child": None})
    assert "child: none yet\n" in status_text(status)
    over = status.model_copy(update={"state": RunState.SUCCEEDED})
    assert "child: none\n" in status_text(over)


@pytest.mark.parametrize(
    ("kind", "line"), [("verified", "verified: yes\n"), ("verify_failed", "verified: no\n")]
)
def test_the_answer_on_record_is_shown(tmp_path, kind, line):
    run = finished_run(tmp_path)
    run.event(kind)
    assert line in status_text(read_status(run.record(), run.store, run.root, None))


def test_progress_in_one_line(tmp_path):
    run, iris = running(tmp_path)
    status = read_status(run.record(), run.store, run.root, iris)
    assert (
        progress_line(status)
        == "running  child_submitted cats@1  tasks 2/2  step 3/3  reward 0.750  checkpoint 3"
    )
    iris.put(CHILD_ID, "pending", tasks=2, pending_reason="no room\nfor 2")
    status = read_status(run.record(), run.store, run.root, iris)
    assert progress_line(status).endswith("  waits: no room for 2")
    scheduler = (
        "Scheduler: No workers match constraints: ['device-type', 'device-variant'] Autoscaler: (scaling up) "
        "Waiting for worker scale-up in scale group 'h100x8-n02' (1 slice(s) requested)"
    )
    iris.put(CHILD_ID, "pending", tasks=2, pending_reason=scheduler)
    status = read_status(run.record(), run.store, run.root, iris)
    assert progress_line(status).endswith(
        "  waits: (scaling up) Waiting for worker scale-up in scale group 'h100x8-n02' ..."
    )
    assert len(progress_line(status)) < 170 and f"waits: {scheduler}\n" in status_text(status)
    iris.reachable = False
    status = read_status(run.record(), run.store, run.root, iris)
    assert progress_line(status).endswith("  reward 0.750  checkpoint 3  Iris does not answer")
    run.event("failed", reason="gone")
    assert progress_line(read_status(run.record(), run.store, run.root, iris)).endswith("  gone")


def test_a_verified_run_in_plain_lines(tmp_path):
    run = finished_run(tmp_path)
    lines = verification_text(verify_run(run.record(), run.store, run.root, None)).splitlines()
    assert lines[:3] == [
        "verified: yes",
        "  yes  tasks_joined: ranks 0, 1",
        f"       evidence: {run.attempt_uri}/joined/",
    ]
    assert lines[3].startswith("  yes  model_loaded_as_declared: 2 of 2 tasks so, weights sha256 ")
    assert lines[6] == "  yes  optimizer_steps_advanced: steps 1 to 3, reward 0.250 to 0.750, weights changed"
    assert lines[9:] == [
        "  yes  terminal_artifacts_exist: all of them, at step 3",
        f"       evidence: {OUT}/terminal.json",
        f"       evidence: {run.attempt_uri}.json",
        f"       evidence: {OUT}/resolved-launch.yaml",
        f"       evidence: {TMP}/checkpoints/global_step_3/",
        f"       evidence: {OUT}/exports/global_step_3/",
        "stage rl: its tasks, the model they loaded, its steps and what the training left have to be as planned",
        "rehearsal: a CPU stand-in ran this plan; no language model was trained",
    ]


def test_a_denied_run_says_what_was_expected(tmp_path):
    run = finished_run(tmp_path)
    run.path(f"{run.attempt_uri}/joined/1.json").unlink()
    lines = verification_text(verify_run(run.record(), run.store, run.root, None)).splitlines()
    assert lines[:3] == [
        "verified: no",
        "  no   tasks_joined: ranks 0; missing ranks: 1",
        "       expected: 2 tasks, ranks 0, 1",
    ]


def test_colours_only_on_a_terminal(tmp_path, monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    run = finished_run(tmp_path)
    status = read_status(run.record(), run.store, run.root, None)
    verification = verify_run(run.record(), run.store, run.root, None)
    for show, thing, plain in (
        (show_status, status, status_text(status)),
        (show_verification, verification, verification_text(verification)),
    ):
        pipe, terminal = io.StringIO(), Terminal()
        show(thing, pipe)
        show(thing, terminal)
        assert pipe.getvalue() == plain
        assert "\x1b[" not in plain
        assert "\x1b[" in terminal.getvalue()


def test_a_terminal_shows_the_same_facts(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "240")
    run = finished_run(tmp_path)
    run.path(f"{run.attempt_uri}/joined/1.json").unlink()
    verification = verify_run(run.record(), run.store, run.root, None)
    terminal = Terminal()
    show_verification(verification, terminal)
    text = terminal.getvalue()
    assert text.startswith("verified: no\n")
    for fact in verification.facts:
        assert fact.name in text
        assert fact.evidence[0] in text
    assert "expected: 2 tasks, ranks 0, 1" in text
    assert "no language model was trained" in text


def test_text_from_outside_is_not_markup(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    run = Run(tmp_path)
    run.event("submitted", job_id=COORDINATOR_ID)
    run.event("failed", reason="index [red]7[/red] out of range")
    terminal = Terminal()
    show_status(read_status(run.record(), run.store, run.root, None), terminal)
    assert "index [red]7[/red] out of range" in terminal.getvalue()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
