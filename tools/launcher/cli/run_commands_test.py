"""`status`, `verify`, `provenance` and `relaunch` of runs in any store, and of records of any age."""

import json
import shutil
import sys

import pytest

from tools.launcher.cli import exit_codes
from tools.launcher.cli.commands import run
from tools.launcher.cli.run_checkpoints import (
    find_checkpoint,
    remaining_text,
    resume_text,
    resume_text_if_any,
)
from tools.launcher.cli.shipped_cards import shipped_budget, shipped_cluster
from tools.launcher.observe.run_testlib import TMP, Run, finished_run
from tools.launcher.store.bundles import BUNDLE_PREFIX, unpack
from tools.launcher.store.content import get_content
from tools.launcher.store.records import RunKey, append_event, list_records
from tools.launcher.submit.provenance import provenance_key, write_provenance

REMOTE = {
    "route": {"scheduler": "iris", "controller": "http://127.0.0.1:1"},
    "object_root": None,
    "cluster": "far",
}


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    """No test may see or touch the user's own runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("SLIPWAY_STORE", "SLIPWAY_CONTROLLER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tools.launcher.cli.launch_cluster.IRIS_GIVE_UP_SECONDS", 0.3)


def bundle_of(cats):
    return unpack(get_content(cats.store, BUNDLE_PREFIX, cats.record().bundle_digest))


def elsewhere(cats, *kinds):
    """Begin a run of the same document on a cluster of others."""
    key = cats.key.model_copy(update={"ordinal": 2})
    append_event(cats.store, key, "intent", "bob@lab", {**cats.record().events[0].facts, **REMOTE})
    for kind in kinds:
        append_event(cats.store, key, kind, "bob@lab", {"job_id": "/slipway/cats-2"})
    return key


def test_the_store_is_given_by_flag_or_by_variable(tmp_path, monkeypatch, capsys):
    cats = finished_run(tmp_path / "shared")
    assert run(["status"]) == exit_codes.USAGE
    assert run(["status", f"--store={cats.store.url}/"]) == exit_codes.OK
    assert f"run: {cats.key}\n" in capsys.readouterr().out
    monkeypatch.setenv("SLIPWAY_STORE", cats.store.url)
    assert run(["status", "cats"]) == exit_codes.OK
    other = tmp_path / "empty"
    assert run(["status", f"--store=file://{other}"]) == exit_codes.USAGE
    assert run(["status", "--store=s3://x/y"]) == exit_codes.USAGE


def test_a_record_of_the_version_before_is_of_the_local_iris(tmp_path, capsys):
    """It says nothing of route, runtime, object root and shape."""
    cats = finished_run(tmp_path / "state" / "slipway")
    assert not {"route", "runtime", "shape", "object_root"} & cats.record().events[0].facts.keys()
    assert run(["status"]) == exit_codes.OK
    assert run(["verify"]) == exit_codes.OK
    assert "verified: yes" in capsys.readouterr().out
    assert run(["provenance"]) == exit_codes.FAILED
    assert "has no provenance in file://" in capsys.readouterr().err


NASTY = "\x1b[2J\x1b]0;mine\x07\u202e|<b>\rverified: yes\nverified: yes"


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "cats"],
        ["watch", "cats", "--once"],
        ["watch", "cats", "--plain"],
        ["verify", "cats"],
        ["logs", "cats"],
        ["runs"],
        ["runs", "--format=markdown"],
        ["cancel", "cats", "--authorize=ann: wrong data"],
    ],
)
def test_what_a_record_holds_reaches_no_terminal_as_a_code_and_makes_no_line(tmp_path, capsys, arguments):
    """A store is shared, and a record holds what others' programs wrote."""
    cats = Run(tmp_path / "shared", stage=NASTY, cluster=NASTY, topology={"num_nodes": NASTY})
    cats.event("submitted", job_id=f"/a/{NASTY}")
    cats.event("cancel_requested", authorized=NASTY, jobs=[NASTY])
    cats.event("failed", reason=NASTY, step=NASTY, stderr_tail=NASTY)
    run([*arguments, f"--store={cats.store.url}"])
    shown = capsys.readouterr()
    text = shown.out + shown.err
    assert "2J" in text or arguments[0] in ("runs", "verify", "logs")
    assert all(character.isprintable() or character == "\n" for character in text)
    assert "\nverified: yes" not in shown.out


def test_records_as_markdown_hold_no_markup_of_others(tmp_path, capsys):
    cats = Run(tmp_path / "shared", stage=NASTY, cluster="@all &lt; $x$ ~~y~~ #1")
    page = tmp_path / "run.md"
    assert run(["status", "cats", f"--store={cats.store.url}", f"--record={page}"]) == exit_codes.OK
    text = page.read_text()
    assert r"| cluster | &#64;all &amp;lt; \$x\$ \~\~y\~\~ \#1 |" in text and r"\|\<b\>" in text


@pytest.mark.parametrize("bundle", ["../../etc/passwd", "0" * 63, NASTY])
def test_a_bundle_that_no_digest_names(tmp_path, capsys, bundle):
    cats = Run(tmp_path / "shared")
    cats.event("submitted", job_id="/a/b", bundle=bundle)
    cats.event("failed", reason="x")
    assert run(["status", "cats", f"--store={cats.store.url}"]) == exit_codes.OK
    assert "' is no SHA-256 of an object below bundles/sha256/. The record" in capsys.readouterr().out
    for command in (["verify", "cats"], ["diff", "cats", "cats"]):
        assert run([*command, f"--store={cats.store.url}"]) == exit_codes.UNKNOWN
        assert "' is no SHA-256 of an object below bundles/sha256/. The record" in capsys.readouterr().err


def test_files_are_where_the_launch_had_them(tmp_path, capsys):
    cats = finished_run(tmp_path / "shared")
    facts = {**cats.record().events[0].facts, "object_root": f"file://{tmp_path / 'shared' / 'objects'}"}
    for kind, more in (("intent", facts), ("submitted", {"job_id": "/a/b"}), ("succeeded", {})):
        append_event(cats.store, cats.key.model_copy(update={"ordinal": 2}), kind, "me@here", more)
    assert run(["status", "cats//2", f"--store={cats.store.url}"]) == exit_codes.OK
    assert "steps: 0/3" in capsys.readouterr().out  # Its own attempt left nothing, and the root is there.
    assert run(["status", "cats//1", f"--store={cats.store.url}"]) == exit_codes.OK


def test_a_run_on_a_cluster_that_does_not_answer_is_shown_all_the_same(tmp_path, capsys):
    cats = Run(tmp_path / "shared")
    elsewhere(cats, "submitted")
    assert run(["status", "cats//2", f"--store={cats.store.url}"]) == exit_codes.OK
    out = capsys.readouterr().out
    assert "state: submitted" in out and "coordinator: /slipway/cats-2 (unknown)" in out
    assert f"note: its files are at {TMP}/attempts, which is not read from here" in out
    assert "note: the controller http://127.0.0.1:1" in out
    assert run(["verify", "cats//2", f"--store={cats.store.url}"]) == exit_codes.UNKNOWN
    assert f"left its files at {TMP}/attempts, which this command does not read" in capsys.readouterr().err


def test_the_statement_is_printed_as_it_was_written_and_indented_at_a_terminal(tmp_path, capsys, monkeypatch):
    cats = finished_run(tmp_path / "shared")
    write_provenance(cats.store, cats.record(), bundle_of(cats))
    assert run(["provenance", "cats", f"--store={cats.store.url}"]) == exit_codes.OK
    stored = capsys.readouterr().out
    assert stored.encode() == cats.store.get(provenance_key(cats.key))
    # At a terminal it was one line of thousands of characters.
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run(["provenance", "cats", f"--store={cats.store.url}"]) == exit_codes.OK
    shown = capsys.readouterr().out
    assert shown.startswith('{\n  "_type": "https://in-toto.io/Statement/v1",\n')
    assert json.loads(shown) == json.loads(stored)


def test_what_a_relaunch_needs_is_asked_for(tmp_path, capsys):
    cats = Run(tmp_path / "shared")
    store = f"--store={cats.store.url}"
    assert run(["relaunch", store]) == exit_codes.USAGE
    assert "name the run to relaunch: experiment[/launch digest]" in capsys.readouterr().err
    assert run(["relaunch", "cats", store]) == exit_codes.USAGE
    assert "say who and why, for example --authorize=" in capsys.readouterr().err
    elsewhere(cats, "submitted", "failed")
    why = "--authorize=ann: node fault"
    assert run(["relaunch", "cats//2", store, why]) == exit_codes.USAGE
    assert (
        "there is no card of the cluster 'far' here, and the gates need it. Name it with --cluster=FILE"
        in (capsys.readouterr().err)
    )
    assert run(["relaunch", "cats//2", store, why, f"--cluster={tmp_path}"]) == exit_codes.USAGE
    assert "Is a directory. Name the card of the run's cluster" in capsys.readouterr().err
    # The bundle of this test is nothing that a build makes.
    assert run(["relaunch", "cats//1", store, why]) == exit_codes.USAGE
    assert "of the bundle of cats/" in capsys.readouterr().err
    append_event(
        cats.store, RunKey(experiment="dogs", launch_digest="d" * 64, ordinal=1), "failed", "x@y", {}
    )
    assert run(["relaunch", "dogs", store, why]) == exit_codes.USAGE
    assert "its record names no bundle, so there is nothing to start again" in capsys.readouterr().err
    assert len(list_records(cats.store)) == 3


def test_without_its_bundle_a_run_is_launched_from_its_experiment(tmp_path, capsys):
    """Breaker, issue 4: the sentence named a key to check, and nothing to do."""
    cats = Run(tmp_path / "shared")
    shutil.rmtree(tmp_path / "shared" / "store" / "bundles")
    assert run(["relaunch", "cats", f"--store={cats.store.url}", "--authorize=ann: why"]) == exit_codes.USAGE
    assert (
        f"is no longer in {cats.store.url}, so there is nothing to start again. Build the experiment and launch it "
        "with --relaunch, which stores it again"
    ) in capsys.readouterr().err


def test_what_lies_at_the_checkpoint_root_is_found(tmp_path):
    cats = Run(tmp_path / "shared")
    bundle = bundle_of(cats)
    assert resume_text_if_any(bundle, cats.key, cats.root) == ""
    assert remaining_text(bundle, cats.key, cats.root) == "no whole checkpoint"
    cats.write(f"{cats.attempt_uri}/launch.yaml", {"runtime": {"launcher_commit": "a" * 40}})
    cats.train()
    found = find_checkpoint(bundle, cats.key, cats.root)
    assert (found.checkpoint.step, found.checkpoint.attempt_id) == (3, cats.attempt)
    assert (found.checkpoint.ordinal, found.checkpoint.runtime_commit) == (1, "a" * 40)
    assert (
        remaining_text(bundle, cats.key, cats.root)
        == f"checkpoint of step 3: {TMP}/checkpoints/global_step_3"
    )
    assert remaining_text(bundle, cats.key, None) == (
        f"unknown which checkpoint: {TMP}/checkpoints is not read from here"
    )


def test_a_checkpoint_root_that_cannot_be_read_is_unknown(tmp_path):
    cats = Run(tmp_path / "shared")
    folder = cats.path(f"{TMP}/checkpoints")
    folder.parent.mkdir(parents=True)
    folder.symlink_to(folder)
    found = find_checkpoint(bundle_of(cats), cats.key, cats.root)
    assert found.checkpoint is None and "cannot be read: Too many levels of symbolic links" in found.unknown


def test_resuming_is_told_of_the_document(tmp_path):
    cats = finished_run(tmp_path / "shared")
    document = bundle_of(cats).model_copy(
        update={
            "launch_yaml": bundle_of(cats).launch_yaml.replace(
                b'"run": {', b'"runtime": {"launcher_commit": "' + b"c" * 40 + b'"}, "run": {'
            )
        }
    )
    text = resume_text(document, cats.key, cats.root)
    assert text.startswith("resume: from step 3, the newest whole checkpoint (resume_mode latest)\n")
    assert resume_text_if_any(document, cats.key, cats.root) == text
    unknown = f"resume: unknown: {TMP}/checkpoints is not read from here."
    assert resume_text_if_any(document, cats.key, None).startswith(unknown)


def test_the_projects_own_cards_and_budget_are_at_hand():
    assert shipped_cluster("local").scheduler == "embedded"
    assert shipped_cluster("cw-us-east-02a").scheduler == "iris"
    assert shipped_cluster("far") is None
    assert shipped_budget().endswith("experiments/budget.yaml")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
