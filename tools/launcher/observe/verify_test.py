import copy
import json
import os
import shutil
import sys

import pytest

from tools.launcher.observe.run_files import PlanUnreadable
from tools.launcher.observe.run_testlib import (
    CHILD_ID,
    DOCUMENT,
    EVALUATION,
    MODEL,
    OUT,
    TMP,
    FakeIris,
    Run,
    finished_run,
    safetensors,
)
from tools.launcher.observe.status import read_status
from tools.launcher.observe.verify import FACT_NAMES, FilesElsewhere, record_verification, verify_run
from tools.launcher.store.content import DigestMismatch
from tools.launcher.store.records import append_event, attempt_id_of, load_record

CHECKPOINT, EXPORT, MANIFEST = (
    f"{TMP}/checkpoints/global_step_3",
    f"{OUT}/exports/global_step_3",
    f"{OUT}/terminal.json",
)


def verify(run, gateway=None):
    return verify_run(run.record(), run.store, run.root, gateway)


def fact(verification, name):
    return next(fact for fact in verification.facts if fact.name == name)


def test_a_good_run_is_verified_with_evidence(tmp_path):
    run, iris = finished_run(tmp_path), FakeIris()
    iris.put(CHILD_ID, "succeeded", tasks=2)
    verification = verify(run, iris)
    assert verification.verified
    assert verification.rehearsal
    assert verification.attempt_id == run.attempt
    assert tuple(fact.name for fact in verification.facts) == FACT_NAMES
    joined, loaded, advanced, artifacts = verification.facts
    assert (joined.expected, joined.seen) == ("2 tasks, ranks 0, 1", "ranks 0, 1")
    assert joined.evidence == (f"{run.attempt_uri}/joined/", f"job {CHILD_ID}")
    assert loaded.seen.startswith("2 of 2 tasks so, weights sha256 ")
    assert loaded.expected == (
        f"models/qwen@2026.11.30:0badcafe from {MODEL} through /tmp/marinskyrl/models/qwen on every task"
    )
    assert loaded.evidence == (f"{run.attempt_uri}/model_load/", f"{MODEL}/model.safetensors")
    assert advanced.seen == "steps 1 to 3, reward 0.250 to 0.750, weights changed"
    assert advanced.evidence == (f"{run.attempt_uri}/metrics.jsonl", f"{CHECKPOINT}/policy.safetensors")
    assert artifacts.seen == "all of them, at step 3"
    assert artifacts.evidence == (
        MANIFEST,
        f"{run.attempt_uri}.json",
        f"{OUT}/resolved-launch.yaml",
        f"{CHECKPOINT}/",
        f"{EXPORT}/",
    )


def test_a_scheduler_that_forgot_or_is_away_is_no_obstacle(tmp_path):
    run, iris = finished_run(tmp_path), FakeIris()
    assert verify(run, iris).verified
    iris.reachable = False
    assert verify(run, iris).verified


def remove(uri):
    return lambda run: run.path(uri.format(attempt=run.attempt_uri)).unlink()


def remove_folder(uri):
    return lambda run: shutil.rmtree(run.path(uri))


def change(uri, **fields):
    return lambda run: run.change(uri.format(attempt=run.attempt_uri), **fields)


def write(uri, content):
    return lambda run: run.write(uri.format(attempt=run.attempt_uri), content)


def cut(uri):
    def damage(run):
        path = run.path(uri.format(attempt=run.attempt_uri))
        path.write_bytes(path.read_bytes()[:-3])

    return damage


def test_steps_of_the_attempt_before_count_where_this_one_resumed(tmp_path):
    """A run killed after its last checkpoint leaves its successor nothing to train."""
    run = Run(tmp_path)
    before = f"{TMP}/attempts/{run.attempt}/metrics.jsonl"
    run.submit()
    run.train()
    lines = run.path(before).read_bytes().splitlines(keepends=True)
    run.event("failed", reason="killed")
    run.key = run.key.model_copy(update={"ordinal": 2})
    run.attempt = attempt_id_of(run.key)
    run.event("intent", **{**record_facts(run), "job_name": "cats-2"})
    run.submit()
    run.train()
    run.finish()
    for own, seen in (
        ([], "steps 1 to 3 (resumed after step 3), reward 0.250 to 0.750"),
        (lines[2:], "steps 1 to 3 (resumed after step 2), reward 0.250 to 0.750"),
    ):
        run.write(f"{run.attempt_uri}/metrics.jsonl", b"".join(own))
        answer = fact(verify(run), "optimizer_steps_advanced")
        assert answer.ok and answer.seen.startswith(seen)
        assert answer.evidence[:2] == (f"{run.attempt_uri}/metrics.jsonl", before)
        assert verify(run).verified
        assert read_status(run.record(), run.store, run.root, None).step == 3
    run.write(f"{run.attempt_uri}/metrics.jsonl", b"")
    run.write(before, b"".join(lines[:2]))
    assert "the last step is 2" in fact(verify(run), "optimizer_steps_advanced").seen
    run.path(before).unlink()
    assert "0 optimizer steps" in fact(verify(run), "optimizer_steps_advanced").seen


def test_steps_of_another_documents_attempt_count_where_this_one_resumed(tmp_path):
    """Another placement of a version, or a runtime that may go on, resumes the same checkpoints."""
    run = finished_run(tmp_path)
    own = f"{run.attempt_uri}/metrics.jsonl"
    lines = run.path(own).read_bytes().splitlines(keepends=True)
    elsewhere = {name: f"{TMP}/attempts/{name * 12}/metrics.jsonl" for name in "abc"}
    contents = {"a": lines[:1], "b": lines[1:], "c": lines[2:]}  # Made in this order; c is newer than ours.
    for seconds, name in enumerate("ab", start=1):
        run.write(elsewhere[name], b"".join(contents[name]))
        os.utime(run.path(elsewhere[name]), (seconds, seconds))
    run.write(own, b"")
    os.utime(run.path(own), (3, 3))
    run.write(elsewhere["c"], b"".join(contents["c"]))
    answer = fact(verify(run), "optimizer_steps_advanced")
    assert answer.ok and answer.seen.startswith("steps 1 to 3 (resumed after step 3), reward 0.250 to 0.750")
    assert answer.evidence[:3] == (own, elsewhere["b"], elsewhere["a"])
    run.path(elsewhere["b"]).unlink()
    assert "the last step is 1" in fact(verify(run), "optimizer_steps_advanced").seen


def test_a_reused_steps_training_may_have_begun_with_an_attempt_of_this_document(tmp_path):
    """Attempt 1 trained two steps, another document's attempt the last one; attempt 2 reused what that made."""
    run, maker = finished_run(tmp_path), "b" * 12
    own, theirs = f"{run.attempt_uri}/metrics.jsonl", f"{TMP}/attempts/{maker}/metrics.jsonl"
    lines = run.path(own).read_bytes().splitlines(keepends=True)
    for seconds, (uri, content) in enumerate(((own, lines[:2]), (theirs, lines[2:])), start=1):
        run.write(uri, b"".join(content))
        os.utime(run.path(uri), (seconds, seconds))
    manifest = json.loads(run.path(f"{OUT}/terminal.json").read_bytes())
    run.write(f"{OUT}/terminal.json", manifest | {"attempt_id": maker})
    again = run.key.model_copy(update={"ordinal": 2})
    for kind, facts in (
        ("intent", record_facts(run)),
        ("step_reused", {"step": "cats@1"}),
        ("succeeded", {}),
    ):
        append_event(run.store, again, kind, "ann@desk", facts)
    verification = verify_run(load_record(run.store, again), run.store, run.root, None)
    assert verification.attempt_id == maker
    assert fact(verification, "optimizer_steps_advanced").evidence[:2] == (theirs, own)


def record_facts(run):
    """What the intent of attempt 1 says, for one of the next."""
    first = load_record(run.store, run.key.model_copy(update={"ordinal": 1}))
    return first.events[0].facts


def metrics(*lines):
    def damage(run):
        text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        run.write(f"{run.attempt_uri}/metrics.jsonl", text)

    return damage


def step(number, **fields):
    return {"step": number, "reward_mean": 0.5, "loss": 0.1, "optimizer_updates": number, **fields}


@pytest.mark.parametrize(
    ("damage", "name", "seen"),
    [
        (remove("{attempt}/joined/1.json"), "tasks_joined", "ranks 0; missing ranks: 1"),
        (
            lambda run: shutil.rmtree(run.path(f"{run.attempt_uri}/joined")),
            "tasks_joined",
            "missing ranks: 0, 1",
        ),
        (
            write("{attempt}/joined/2.json", {"rank": 2, "world_size": 2, "at_step": 0}),
            "tasks_joined",
            "unexpected ranks: 2",
        ),
        (change("{attempt}/joined/1.json", world_size=1), "tasks_joined", "1.json has world_size 1, not 2"),
        (change("{attempt}/joined/1.json", rank=0), "tasks_joined", "1.json has rank 0, not 1"),
        (change("{attempt}/joined/1.json", at_step=2), "tasks_joined", "1.json has at_step 2, not 0"),
        (cut("{attempt}/joined/1.json"), "tasks_joined", "1.json is torn: "),
        (remove("{attempt}/model_load/1.json"), "model_loaded_as_declared", "1.json is missing"),
        (
            change("{attempt}/model_load/1.json", declared_path="/tmp/other"),
            "model_loaded_as_declared",
            "rank 1 has declared_path '/tmp/other'",
        ),
        (
            change("{attempt}/model_load/0.json", source_uri="s3://b/x"),
            "model_loaded_as_declared",
            "rank 0 has source_uri 's3://b/x'",
        ),
        (
            change("{attempt}/model_load/0.json", identity="m@1:0"),
            "model_loaded_as_declared",
            "rank 0 has identity 'm@1:0'",
        ),
        (
            change("{attempt}/model_load/0.json", tokenizer_revision="main"),
            "model_loaded_as_declared",
            "rank 0 has tokenizer_revision 'main'",
        ),
        (
            change("{attempt}/model_load/1.json", weights_sha256="f" * 64),
            "model_loaded_as_declared",
            "the ranks loaded 2 different weights: ",
        ),
        (
            write(f"{MODEL}/model.safetensors", b"changed"),
            "model_loaded_as_declared",
            "the loaded weights have sha256 ",
        ),
        (
            write("{attempt}/model_load/1.json", b"[]"),
            "model_loaded_as_declared",
            "1.json is a JSON list, not an object",
        ),
        (
            remove("{attempt}/metrics.jsonl"),
            "optimizer_steps_advanced",
            "metrics.jsonl is missing; 0 optimizer steps",
        ),
        (metrics(), "optimizer_steps_advanced", "0 optimizer steps"),
        (metrics(step(1), step(2)), "optimizer_steps_advanced", "the last step is 2"),
        (metrics(step(1), step(3)), "optimizer_steps_advanced", "the steps do not follow each other: 1, 3"),
        (metrics(step(1), step(1)), "optimizer_steps_advanced", "the steps do not follow each other: 1, 1"),
        (
            metrics(step(1), step(2), step(3, loss=float("nan"))),
            "optimizer_steps_advanced",
            "loss is not a finite number at step 3",
        ),
        (
            metrics(step(1), step(2), step(3, reward_mean=None)),
            "optimizer_steps_advanced",
            "reward_mean is not a finite number at step 3",
        ),
        (
            metrics(step(1), step(2), step(3, optimizer_updates=2)),
            "optimizer_steps_advanced",
            "the optimizer's update count does not rise: 1, 2, 2",
        ),
        (
            metrics(step(1), {"reward": 1}),
            "optimizer_steps_advanced",
            "metrics.jsonl line 2 is not a step's report",
        ),
        (
            write("{attempt}/metrics.jsonl", b'{"step": 1, "rewa'),
            "optimizer_steps_advanced",
            "0 optimizer steps",
        ),
        (
            write(f"{CHECKPOINT}/policy.safetensors", safetensors([0.0, 0.0])),
            "optimizer_steps_advanced",
            "the weights are those that were loaded: nothing was learned",
        ),
        (
            remove(f"{CHECKPOINT}/policy.safetensors"),
            "optimizer_steps_advanced",
            "the weights cannot be compared with the loaded ones",
        ),
        (remove(MANIFEST), "terminal_artifacts_exist", "terminal.json is missing"),
        (cut(MANIFEST), "terminal_artifacts_exist", "terminal.json is torn: "),
        (
            change(MANIFEST, run_id="dogs"),
            "terminal_artifacts_exist",
            "the manifest has run_id 'dogs', not 'cats-2026.11.30'",
        ),
        (
            change(MANIFEST, attempt_id="f" * 12),
            "terminal_artifacts_exist",
            "the manifest has attempt_id 'ffffffffffff', not ",
        ),
        (change(MANIFEST, task_count=1), "terminal_artifacts_exist", "the manifest has task_count 1, not 2"),
        (
            change(MANIFEST, global_step=2),
            "terminal_artifacts_exist",
            "the manifest has global_step 2, not 3",
        ),
        (
            change(MANIFEST, global_step=None),
            "terminal_artifacts_exist",
            "the manifest's global_step is None, so no checkpoint can be looked for",
        ),
        (
            change(MANIFEST, checkpoint="s3://b/c"),
            "terminal_artifacts_exist",
            f"the manifest names the checkpoint 's3://b/c', not {CHECKPOINT}",
        ),
        (
            change(MANIFEST, export=None),
            "terminal_artifacts_exist",
            f"the manifest names the export None, not {EXPORT}",
        ),
        (remove("{attempt}.json"), "terminal_artifacts_exist", "attempt record "),
        (
            change("{attempt}.json", state="failed"),
            "terminal_artifacts_exist",
            "the attempt's record says 'failed'",
        ),
        (
            remove(f"{OUT}/resolved-launch.yaml"),
            "terminal_artifacts_exist",
            "resolved-launch.yaml is missing",
        ),
        (
            cut(f"{CHECKPOINT}/policy.safetensors"),
            "terminal_artifacts_exist",
            "checkpoint policy.safetensors is torn: expected 86 bytes, seen 83 bytes",
        ),
        (
            write(f"{CHECKPOINT}/policy.safetensors", safetensors([9.0, 9.0])),
            "terminal_artifacts_exist",
            "checkpoint policy.safetensors has another digest than trainer_state.json says",
        ),
        (
            remove(f"{CHECKPOINT}/trainer_state.json"),
            "terminal_artifacts_exist",
            "checkpoint trainer_state.json is missing",
        ),
        (
            change(f"{CHECKPOINT}/trainer_state.json", global_step=2),
            "terminal_artifacts_exist",
            "trainer_state.json has global_step 2, not 3",
        ),
        (
            remove(f"{TMP}/checkpoints/latest_ckpt_global_step.txt"),
            "terminal_artifacts_exist",
            "latest_ckpt_global_step.txt says 'nothing', not 3",
        ),
        (
            write(f"{TMP}/checkpoints/latest_ckpt_global_step.txt", b"2\n"),
            "terminal_artifacts_exist",
            "latest_ckpt_global_step.txt says '2', not 3",
        ),
        (
            write(f"{OUT}/resolved-launch.yaml", {"run": {"id": "dogs", "attempt_id": "f" * 12}}),
            "terminal_artifacts_exist",
            (
                "resolved-launch.yaml has run.id 'dogs', not 'cats-2026.11.30'; "
                "resolved-launch.yaml has run.attempt_id 'ffffffffffff', not "
            ),
        ),
        (
            write(f"{OUT}/resolved-launch.yaml", b"a: [1"),
            "terminal_artifacts_exist",
            "resolved-launch.yaml:2:1: while",
        ),
        (
            write(f"{OUT}/resolved-launch.yaml", b"run: x"),
            "terminal_artifacts_exist",
            "has run.id None, not ",
        ),
        (
            write(f"{CHECKPOINT}/optimizer.safetensors", b"x"),
            "terminal_artifacts_exist",
            "checkpoint optimizer.safetensors has another digest than trainer_state.json says",
        ),
        (
            remove(f"{CHECKPOINT}/optimizer.safetensors"),
            "terminal_artifacts_exist",
            "checkpoint optimizer.safetensors is missing, which trainer_state.json names",
        ),
        (remove_folder(EXPORT), "terminal_artifacts_exist", f"the export {EXPORT} is missing"),
        (
            remove(f"{EXPORT}/model.safetensors"),
            "terminal_artifacts_exist",
            "export model.safetensors is missing",
        ),
        (
            cut(f"{EXPORT}/model.safetensors"),
            "terminal_artifacts_exist",
            "export model.safetensors is torn: expected 86 bytes, seen 83 bytes",
        ),
        (remove(f"{EXPORT}/config.json"), "terminal_artifacts_exist", "export config.json is missing"),
        (cut(f"{EXPORT}/config.json"), "terminal_artifacts_exist", "export config.json is torn: "),
        (
            remove(f"{EXPORT}/tokenizer_config.json"),
            "terminal_artifacts_exist",
            "export tokenizer_config.json is missing",
        ),
    ],
)
def test_each_damage_denies_its_fact(tmp_path, damage, name, seen):
    run = finished_run(tmp_path)
    damage(run)
    verification = verify(run)
    assert not verification.verified
    denied = fact(verification, name)
    assert not denied.ok
    assert seen in denied.seen
    assert denied.expected


def test_a_child_with_too_few_tasks_is_not_joined(tmp_path):
    run, iris = finished_run(tmp_path), FakeIris()
    iris.put(CHILD_ID, "succeeded", tasks=1)
    joined = fact(verify(run, iris), "tasks_joined")
    assert not joined.ok
    assert joined.seen == "ranks 0, 1; the child job has 1 tasks"


def test_a_run_that_has_not_succeeded_is_not_verified(tmp_path):
    run = Run(tmp_path)
    run.submit()
    run.train()
    verification = verify(run)
    assert [fact.ok for fact in verification.facts] == [True, True, True, False]
    assert fact(verification, "terminal_artifacts_exist").seen == "the run's record says running"


def test_a_run_that_left_nothing_is_denied_in_all_four(tmp_path):
    run = Run(tmp_path)
    run.submit()
    run.event("failed", reason="x")
    verification = verify(run)
    assert [fact.ok for fact in verification.facts] == [False] * 4
    assert not verification.rehearsal


def test_an_export_is_not_asked_for_where_none_is_planned(tmp_path):
    document = copy.deepcopy(DOCUMENT)
    document["run"]["export_hf"] = False
    run = finished_run(tmp_path, document)
    shutil.rmtree(run.path(EXPORT))
    run.change(MANIFEST, export=None)
    assert verify(run).verified


def test_without_a_planned_number_one_step_suffices(tmp_path):
    document = copy.deepcopy(DOCUMENT)
    document["skyrl"]["trainer"]["max_steps"] = None
    run = finished_run(tmp_path, document)
    assert verify(run).verified
    assert fact(verify(run), "optimizer_steps_advanced").expected.startswith("at least 1 step, ")


def test_a_resumed_attempt_says_from_where(tmp_path):
    run = finished_run(tmp_path)
    metrics(step(2), step(3))(run)
    assert fact(verify(run), "optimizer_steps_advanced").seen.startswith(
        "steps 2 to 3 (resumed after step 1), "
    )
    assert verify(run).verified


def test_a_last_line_being_written_is_not_damage(tmp_path):
    run = finished_run(tmp_path)
    path = run.path(f"{run.attempt_uri}/metrics.jsonl")
    path.write_bytes(path.read_bytes() + b'{"step": 4')
    assert verify(run).verified


def test_a_reused_step_is_verified_by_the_attempt_that_made_it(tmp_path):
    run = finished_run(tmp_path)
    again = run.key.model_copy(update={"ordinal": 2})
    bundle = run.record().bundle_digest
    for kind, facts in (
        ("intent", {"bundle": bundle, "artifacts": ["qwen@1", "cats@1"], "stage": "rl"}),
        ("submitted", {"job_id": "/slipway/cats-2"}),
        ("step_reused", {"step": "cats@1"}),
        ("succeeded", {}),
    ):
        append_event(run.store, again, kind, "ann@desk", facts)
    verification = verify_run(load_record(run.store, again), run.store, run.root, None)
    assert verification.verified
    assert verification.attempt_id == run.attempt


def test_files_that_are_elsewhere_give_no_answer(tmp_path):
    run = finished_run(tmp_path)
    with pytest.raises(FilesElsewhere) as caught:
        verify_run(run.record(), run.store, None, None)
    assert str(caught.value) == (
        f"{run.key} left its files at {TMP}/attempts, which this command does not read, so it is not known whether "
        f"the run did what it was launched for. Look at its terminal manifest {OUT}/terminal.json"
    )


WEIGHTS = {"config.json": b"{}", "model.safetensors": safetensors([0.0])}


def imported(folder, state="succeeded", **intent):
    """A run that ends at its imports, as a good one leaves it."""
    run = Run(folder, stage="import", **intent)
    run.make("qwen@1", WEIGHTS)
    run.event("step_finished", step="qwen@1")
    run.event(state)
    return run


def test_a_run_that_ends_at_its_imports_is_judged_by_them(tmp_path):
    run = imported(tmp_path)
    verification = verify(run)
    assert verification.verified and verification.rehearsal and verification.stage == "import"
    (imports,) = verification.facts
    assert (imports.name, imports.seen) == ("imports_exist", "qwen@1, with 2 files")
    assert imports.expected == "qwen@1, whole and the plan's"
    assert imports.evidence == (f"{MODEL}/.artifact.json",)
    event = record_verification(run.store, run.key, "ann@desk", verification)
    assert event.kind == "verified" and "stage" not in event.facts


@pytest.mark.parametrize(
    ("damage", "seen"),
    [
        (lambda run: run.path(f"{MODEL}/.artifact.json").unlink(), "qwen@1 .artifact.json is missing"),
        (lambda run: run.write(f"{MODEL}/.artifact.json", b"{"), "qwen@1 .artifact.json cannot be read: "),
        (lambda run: run.path(f"{MODEL}/config.json").unlink(), "qwen@1 config.json is missing"),
        (
            lambda run: run.write(f"{MODEL}/config.json", b"[]"),
            "qwen@1 config.json has another digest than .artifact.json says",
        ),
        (
            lambda run: run.change(f"{MODEL}/.artifact.json", fingerprint="f" * 64),
            f"{MODEL} holds qwen@1 (hf_model, fingerprint ffffffff), not qwen@1 (hf_model, fingerprint ",
        ),
        (
            lambda run: run.change(f"{MODEL}/.artifact.json", kind="dataset"),
            f"{MODEL} holds qwen@1 (dataset, fingerprint ",
        ),
        (
            lambda run: run.change(f"{MODEL}/.artifact.json", files={}),
            "qwen@1 .artifact.json names no file, so nothing says what of it has to be there",
        ),
    ],
)
def test_an_import_that_is_not_there_denies_it(tmp_path, damage, seen):
    run = imported(tmp_path)
    damage(run)
    verification = verify(run)
    assert not verification.verified and verification.is_known
    assert verification.facts[0].seen.startswith(seen)


def test_an_import_that_failed_is_not_verified_by_what_lies_there(tmp_path):
    assert verify(imported(tmp_path, "failed")).facts[0].seen == "the run's record says failed"


def test_an_adopted_import_is_known_by_the_digits_on_its_record(tmp_path):
    run = imported(tmp_path)
    record = json.loads(run.path(f"{MODEL}/.artifact.json").read_bytes())
    run.change(f"{MODEL}/.artifact.json", fingerprint=record["fingerprint"][:8], rehearsal=False)
    run.write(f"{MODEL}/config.json", b"of the real runtime: large files are looked for and not read")
    verification = verify(run)
    assert verification.verified and not verification.rehearsal


def test_imports_that_cannot_be_read_from_here_are_unknown(tmp_path):
    run = imported(tmp_path)
    with pytest.raises(FilesElsewhere) as caught:
        verify_run(run.record(), run.store, None, None)
    assert str(caught.value) == (
        f"{run.key} ends at its imports, {MODEL}, which this command does not read, so it is not known "
        "whether they are there. Look for the .artifact.json of each"
    )


def evaluated(folder):
    """A run that trains and evaluates, as a good one leaves it."""
    run = Run(folder, stage="evaluate")
    run.submit()
    run.train()
    result = {"export": f"{OUT}/exports/global_step_3", "reward_mean": 0.5}
    run.make("cats-eval@1", {"result.json": json.dumps(result).encode()})
    run.finish()
    return run


def test_a_run_that_evaluates_is_judged_by_its_training_and_its_evaluations(tmp_path):
    verification = verify(evaluated(tmp_path))
    assert verification.verified and verification.stage == "evaluate"
    assert [each.name for each in verification.facts] == [*FACT_NAMES, "evaluations_exist"]
    assert fact(verification, "evaluations_exist").seen == "cats-eval@1, with 1 file"


@pytest.mark.parametrize(
    ("damage", "seen"),
    [
        (
            lambda run: run.path(f"{EVALUATION}/.artifact.json").unlink(),
            "cats-eval@1 .artifact.json is missing",
        ),
        (
            lambda run: run.make("cats-eval@1", {"result.json": b'{"export": "x", "reward_mean": "?"}'}),
            (
                "cats-eval@1 result.json has reward_mean '?', which is no number; cats-eval@1 result.json is of "
                f"the export 'x', which is not below {OUT}/exports"
            ),
        ),
    ],
)
def test_an_evaluation_that_is_not_there_denies_it(tmp_path, damage, seen):
    run = evaluated(tmp_path)
    damage(run)
    verification = verify(run)
    assert not verification.verified
    assert fact(verification, "evaluations_exist").seen == seen
    assert all(fact(verification, name).ok for name in FACT_NAMES)


def test_an_evaluation_that_cannot_be_read_from_here_is_never_passed_over(tmp_path):
    run = evaluated(tmp_path)
    for runtime in ("rehearsal", "marinskyrl"):
        record = run.record().model_copy(update={"runtime": runtime})
        with pytest.raises(FilesElsewhere, match="left its files at"):
            verify_run(record, run.store, None, None)


def test_a_training_is_not_asked_for_evaluations_that_its_graph_goes_on_to(tmp_path):
    run = evaluated(tmp_path)
    record = run.record().model_copy(update={"artifacts": ("qwen@1", "cats@1")})
    verification = verify_run(record, run.store, run.root, None)
    assert verification.verified and verification.stage == "rl"


def test_the_answer_is_recorded_once(tmp_path):
    run = finished_run(tmp_path)
    event = record_verification(run.store, run.key, "ann@desk", verify(run))
    assert event.kind == "verified"
    assert run.record().verification == event.facts
    assert event.facts["verified"] is True
    assert [fact["name"] for fact in event.facts["facts"]] == list(FACT_NAMES)
    assert record_verification(run.store, run.key, "bob@lap", verify(run)) == event
    elsewhere = verify(run).model_copy(
        update={
            "facts": tuple(fact.model_copy(update={"evidence": ("elsewhere",)}) for fact in verify(run).facts)
        }
    )
    assert record_verification(run.store, run.key, "bob@lap", elsewhere) == event
    count = len(run.record().events)
    run.path(MANIFEST).unlink()
    denied = record_verification(run.store, run.key, "ann@desk", verify(run))
    assert denied.kind == "verify_failed"
    assert run.record().verification is None
    assert len(run.record().events) == count + 1


def test_a_damaged_bundle_is_not_believed(tmp_path):
    run = finished_run(tmp_path)
    (tmp_path / "store" / "bundles" / "sha256" / run.record().bundle_digest).write_bytes(b"x")
    with pytest.raises(DigestMismatch):
        verify(run)


def test_a_record_without_bundle_or_with_a_foreign_one_is_refused(tmp_path):
    run = finished_run(tmp_path)
    other = run.key.model_copy(update={"launch_digest": "e" * 64})
    append_event(run.store, other, "intent", "x", {"bundle": run.record().bundle_digest})
    bare = run.key.model_copy(update={"ordinal": 7})
    append_event(run.store, bare, "intent", "x", {})
    with pytest.raises(PlanUnreadable, match=r"The record was tampered with"):
        verify_run(load_record(run.store, other), run.store, run.root, None)
    with pytest.raises(PlanUnreadable, match=r"the record names no bundle, so nothing is known of its files"):
        verify_run(load_record(run.store, bare), run.store, run.root, None)


def test_a_document_without_what_is_needed_is_named(tmp_path):
    document = copy.deepcopy(DOCUMENT)
    del document["artifacts"]["export_root"]
    with pytest.raises(
        PlanUnreadable, match=r"cannot be read \(KeyError: 'export_root'\). Build the experiment"
    ):
        verify(finished_run(tmp_path, document))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
