"""Verification and status of runs of the real runtime, from what it leaves."""

import copy
import json
import sys

import pytest

from tools.launcher.observe.marinskyrl_leavings_for_test import leavings
from tools.launcher.observe.render_text import status_text, verification_text
from tools.launcher.observe.run_testlib import CHILD_ID, DOCUMENT, MODEL, OUT, TMP, FakeIris, Run
from tools.launcher.observe.status import read_status
from tools.launcher.observe.verify import FACT_NAMES, FilesElsewhere, record_verification, verify_run
from tools.launcher.store.object_store import StoreUnavailable
from tools.launcher.store.objects import FolderObjects
from tools.launcher.store.records import append_event, load_record

REAL = copy.deepcopy(DOCUMENT)
REAL["runtime"] = {"launcher_commit": "a" * 40, "profile": "fsdp"}
REAL["ray"] = {"rendezvous_dir": f"{TMP}/attempts/rendezvous"}
ONE_TASK = copy.deepcopy(REAL)
ONE_TASK["iris"]["allocation"]["num_nodes"] = 1
MANIFEST, RESOLVED = f"{OUT}/terminal.json", f"{OUT}/resolved-launch.yaml"
EXPORT, CHECKPOINT = f"{OUT}/exports/global_step_3/policy", f"{TMP}/checkpoints/global_step_3"
LATEST = f"{TMP}/checkpoints/latest_ckpt_global_step.txt"
RENDEZVOUS = f"{TMP}/attempts/rendezvous"


def real_run(folder, document=REAL, step=3):
    run = Run(folder, document, runtime="marinskyrl")
    run.submit()
    attempt = copy.deepcopy(document)
    attempt["run"]["attempt_id"] = run.attempt
    for uri, content in leavings(attempt, step=step, job_id=CHILD_ID).items():
        run.write(uri, content)
    run.event("step_finished", step="cats@1", global_step=step)
    run.event("succeeded")
    return run


def iris(state="succeeded", tasks=2):
    found = FakeIris()
    found.put(CHILD_ID, state, tasks=tasks)
    return found


def verify(run, gateway=None, objects=None):
    return verify_run(run.record(), run.store, None, gateway, objects=objects or FolderObjects(run.root))


def fact(verification, name):
    return next(each for each in verification.facts if each.name == name)


def test_a_good_run_is_verified_with_evidence(tmp_path):
    run = real_run(tmp_path)
    found = verify(run, iris())
    assert found.verified and found.is_known and not found.rehearsal
    assert found.attempt_id == run.attempt
    assert tuple(each.name for each in found.facts) == FACT_NAMES
    joined, loaded, advanced, artifacts = found.facts
    assert (joined.seen, joined.evidence) == ("2 of 2 tasks succeeded", (f"job {CHILD_ID}",))
    assert joined.expected == "2 tasks, all of them in the gang that trained"
    assert (
        loaded.expected == f"models/qwen@2026.11.30:0badcafe from {MODEL} through /tmp/marinskyrl/models/qwen"
    )
    assert loaded.seen.endswith(f"from {MODEL} at /tmp/marinskyrl/models/qwen")
    assert loaded.evidence == (RESOLVED,)
    assert (advanced.expected, advanced.seen) == ("at least 1 step of 3 planned", "step 3 of 3 planned")
    assert advanced.evidence == (MANIFEST, LATEST)
    assert artifacts.seen == "all of them, at step 3"
    assert artifacts.evidence == (
        MANIFEST,
        f"{run.attempt_uri}.json",
        f"{CHECKPOINT}/",
        f"{EXPORT}/",
    )
    assert verification_text(found).startswith("verified: yes\n  yes  tasks_joined: 2 of 2 tasks succeeded\n")
    assert "rehearsal" not in verification_text(found)


def test_the_answer_on_record_is_what_a_smoke_needs(tmp_path):
    run = real_run(tmp_path)
    event = record_verification(run.store, run.key, "ann@desk", verify(run, iris()))
    assert event is not None and event.kind == "verified"
    facts = run.record().verification
    assert facts is not None and (facts["verified"], facts["rehearsal"]) == (True, False)
    assert set(facts) == {"verified", "rehearsal", "attempt_id", "facts"}


@pytest.mark.parametrize("document", [REAL, ONE_TASK])
def test_what_iris_forgot_the_runtime_still_tells(tmp_path, document):
    run = real_run(tmp_path, document)
    for gateway in (FakeIris(), None):
        found = verify(run, gateway)
        assert found.verified, found
        joined = fact(found, "tasks_joined")
        told = "Iris does not tell of its job" if gateway else "Iris was not asked"
        assert joined.seen.endswith(f"({told})")
    places = (
        (RESOLVED,)
        if document is ONE_TASK
        else (f"{RENDEZVOUS}/ray_head.json", f"{RENDEZVOUS}/ray_head.done")
    )
    assert joined.evidence == places


def test_a_later_runtime_streams_the_weights_and_stages_their_metadata(tmp_path):
    run = real_run(tmp_path)
    at = "/tmp/marinskyrl/model_metadata/0badcafe"
    edit(RESOLVED, "config.skyrl.trainer.policy.model.path", at)(run)
    assert fact(verify(run, iris()), "model_loaded_as_declared").seen.endswith(f"from {MODEL} at {at}")
    edit(RESOLVED, "config.skyrl.trainer.policy.model.source_uri", "s3://b/other")(run)
    assert not fact(verify(run, iris()), "model_loaded_as_declared").ok


def test_a_model_in_object_storage_needs_its_source_in_the_resolved_document(tmp_path):
    document = copy.deepcopy(REAL)
    document["inputs"]["model"]["uri"] = "s3://lab/models/qwen"
    run = real_run(tmp_path, document)
    assert verify(run, iris()).verified
    edit(RESOLVED, "config.skyrl.trainer.policy.model.source_identity", None)(run)
    assert fact(verify(run, iris()), "model_loaded_as_declared").seen == (
        "resolved-launch.yaml has skyrl.trainer.policy.model.source_identity None, not "
        "'models/qwen@2026.11.30:0badcafe'"
    )


def test_the_resolved_document_may_be_the_plain_one(tmp_path):
    run = real_run(tmp_path)
    plain = json.loads(run.path(RESOLVED).read_bytes())["config"]
    run.write(RESOLVED, b"# as YAML\n" + json.dumps(plain).encode())
    assert fact(verify(run, iris()), "model_loaded_as_declared").ok


def test_without_an_export_the_checkpoint_root_says_the_step(tmp_path):
    document = copy.deepcopy(REAL)
    document["run"]["export_hf"] = False
    run = real_run(tmp_path, document)
    found = verify(run, iris())
    assert found.verified and fact(found, "optimizer_steps_advanced").seen == "step 3 of 3 planned"
    assert fact(found, "terminal_artifacts_exist").expected == (
        f"manifest, attempt record, checkpoint of attempt {run.attempt}"
    )
    run.path(LATEST).unlink()
    assert (
        fact(verify(run, iris()), "optimizer_steps_advanced").seen == f"{LATEST.rsplit('/')[-1]} is missing"
    )


def test_weights_in_one_file_count_as_well(tmp_path):
    run = real_run(tmp_path)
    run.path(f"{EXPORT}/model.safetensors.index.json").unlink()
    run.write(f"{EXPORT}/model.safetensors", b"w")
    assert verify(run, iris()).verified


def edit(uri, path, value):
    """Set one value inside a JSON object."""

    def damage(run):
        place = uri.format(attempt=run.attempt_uri)
        whole = json.loads(run.path(place).read_bytes())
        *parents, last = path.split(".")
        inner = whole
        for name in parents:
            inner = inner[name]
        inner[last] = value
        run.write(place, whole)

    return damage


def remove(uri):
    return lambda run: run.path(uri.format(attempt=run.attempt_uri)).unlink()


def write(uri, content):
    return lambda run: run.write(uri.format(attempt=run.attempt_uri), content)


LOADED, STEPS, ARTIFACTS = FACT_NAMES[1:]
POLICY = "config.skyrl.trainer.policy.model"


@pytest.mark.parametrize(
    ("damage", "name", "seen"),
    [
        (
            edit(RESOLVED, f"{POLICY}.path", "/tmp/x"),
            LOADED,
            "has skyrl.trainer.policy.model.path '/tmp/x', not ",
        ),
        (
            edit(RESOLVED, f"{POLICY}.revision", "main"),
            LOADED,
            "policy.model.revision 'main', not 'models/qwen@",
        ),
        (
            edit(RESOLVED, "config.inputs.model.uri", "s3://b/x"),
            LOADED,
            "has inputs.model.uri 's3://b/x', not ",
        ),
        (
            edit(RESOLVED, "config.inputs.model.identity", "m@1:0"),
            LOADED,
            "has inputs.model.identity 'm@1:0', not ",
        ),
        (
            edit(RESOLVED, "config.run.attempt_id", "f" * 12),
            LOADED,
            "has run.attempt_id 'ffffffffffff', not ",
        ),
        (edit(RESOLVED, "config.runtime", None), LOADED, "has runtime.launcher_commit None, not 'aaaa"),
        (
            edit(RESOLVED, "config", []),
            LOADED,
            "resolved-launch.yaml has no `config`, which the runtime writes",
        ),
        (write(RESOLVED, b'{"config": {'), LOADED, "resolved-launch.yaml is torn: "),
        (remove(RESOLVED), LOADED, "resolved-launch.yaml is missing"),
        (
            edit(MANIFEST, "result.model.global_step", 0),
            STEPS,
            "the manifest says step 0, latest_ckpt_global_step.txt",
        ),
        (edit(MANIFEST, "result.model.global_step", 0), STEPS, "the last step is 0"),
        (edit(MANIFEST, "result.attempt_id", "f" * 12), STEPS, "the manifest is of attempt 'ffffffffffff'"),
        (write(LATEST, b"2"), STEPS, "the manifest says step 3, latest_ckpt_global_step.txt says 2"),
        (remove(MANIFEST), STEPS, "terminal.json is missing"),
        (remove(MANIFEST), ARTIFACTS, "terminal.json is missing"),
        (write(MANIFEST, b"[]"), ARTIFACTS, "terminal.json is a JSON list, not an object"),
        (
            edit(MANIFEST, "result", None),
            ARTIFACTS,
            "terminal.json has no `result`, which the runtime writes",
        ),
        (
            edit(MANIFEST, "result.run_id", "dogs"),
            ARTIFACTS,
            "the manifest has run_id 'dogs', not 'cats-2026.11.30'",
        ),
        (
            edit(MANIFEST, "result.state", "failed"),
            ARTIFACTS,
            "the manifest has state 'failed', not 'succeeded'",
        ),
        (
            edit(MANIFEST, "result.launcher_commit", "b"),
            ARTIFACTS,
            "the manifest has launcher_commit 'b', not ",
        ),
        (edit(MANIFEST, "result.model", None), ARTIFACTS, "the manifest names no exported policy"),
        (
            edit(MANIFEST, "result.model.policy_export_uri", f"{OUT}/other"),
            ARTIFACTS,
            f"the manifest names the export {OUT}/other, not {EXPORT}",
        ),
        (remove("{attempt}.json"), ARTIFACTS, "attempt record "),
        (
            edit("{attempt}.json", "result.state", "failed"),
            ARTIFACTS,
            "the attempt record has state 'failed', not 'succeeded'",
        ),
        (remove(LATEST), ARTIFACTS, "checkpoint latest_ckpt_global_step.txt is missing"),
        (write(LATEST, b"three"), ARTIFACTS, "latest_ckpt_global_step.txt says 'three', which is no step"),
        (
            remove(f"{CHECKPOINT}/trainer_state.pt"),
            ARTIFACTS,
            f"checkpoint {CHECKPOINT}/trainer_state.pt is missing",
        ),
        (remove(f"{EXPORT}/config.json"), ARTIFACTS, "export config.json is missing"),
        (
            remove(f"{EXPORT}/model.safetensors.index.json"),
            ARTIFACTS,
            "export has no weights: neither model.safetensors nor model.safetensors.index.json",
        ),
        (
            remove(f"{EXPORT}/model-00002-of-00002.safetensors"),
            ARTIFACTS,
            "export lacks model-00002-of-00002.safetensors, which model.safetensors.index.json names",
        ),
        (
            write(f"{EXPORT}/model.safetensors.index.json", {"weight_map": {}}),
            ARTIFACTS,
            "export model.safetensors.index.json names no shard",
        ),
        (
            lambda run: [remove(f"{EXPORT}/tokenizer{end}.json")(run) for end in ("", "_config")],
            ARTIFACTS,
            "export has none of tokenizer_config.json, tokenizer.json, tokenizer.model",
        ),
        (lambda run: run.event("failed", reason="x"), None, ""),
    ],
)
def test_each_damage_denies_its_fact(tmp_path, damage, name, seen):
    run = real_run(tmp_path)
    damage(run)
    found = verify(run, iris())
    if name is None:  # Success is final, whatever a late writer says.
        assert found.verified
        return
    assert not found.verified and found.is_known
    denied = fact(found, name)
    assert not denied.ok and seen in denied.seen, denied.seen
    event = record_verification(run.store, run.key, "ann@desk", found)
    assert event is not None and event.kind == "verify_failed"


@pytest.mark.parametrize(
    ("damage", "seen"),
    [
        (edit(f"{RENDEZVOUS}/ray_head.json", "num_tasks", 1), "ray_head.json has num_tasks 1, not 2"),
        (edit(f"{RENDEZVOUS}/ray_head.done", "outcome", "x"), "ray_head.done has outcome 'x'"),
        (
            edit(f"{RENDEZVOUS}/ray_head.done", "gang_epoch", "0"),
            "ray_head.json and ray_head.done are of different gangs",
        ),
        (remove(f"{RENDEZVOUS}/ray_head.done"), "ray_head.done is missing"),
    ],
)
def test_a_rendezvous_that_denies_it_counts_where_iris_was_asked(tmp_path, damage, seen):
    run = real_run(tmp_path)
    damage(run)
    found = verify(run, FakeIris())
    assert (fact(found, "tasks_joined").seen, found.is_known) == (seen, True)
    found = verify(run)
    assert fact(found, "tasks_joined").seen == f"unknown: Iris was not asked; unknown: {seen}"
    assert not found.verified and not found.is_known
    assert record_verification(run.store, run.key, "ann@desk", found) is None
    assert run.record().verify_failure is None
    away = iris()
    away.reachable = False
    assert fact(verify(run, away), "tasks_joined").seen.startswith("unknown: Iris at http://127.0.0.1:1")


def test_a_single_task_of_another_attempt_is_not_this_one(tmp_path):
    run = real_run(tmp_path, ONE_TASK)
    edit(RESOLVED, "config.run.attempt_id", "f" * 12)(run)
    assert fact(verify(run, FakeIris()), "tasks_joined").seen == (
        "the resolved document is of attempt 'ffffffffffff'"
    )


def test_tasks_that_did_not_all_succeed_deny_it(tmp_path):
    run = real_run(tmp_path)
    assert fact(verify(run, iris(tasks=1)), "tasks_joined").seen == "the child job has 1 tasks"
    assert fact(verify(run, iris("killed")), "tasks_joined").seen == "2 killed"


class Away:
    """Buckets without an answer, which count how often they are asked."""

    def __init__(self):
        self.asked = 0

    def read(self, uri):
        self.asked += 1
        raise StoreUnavailable("s3://lab", f"read {uri}", "NoCredentialsError: Unable to locate credentials")

    exists = read


def test_what_cannot_be_read_is_unknown_asked_once_and_not_recorded(tmp_path):
    run, away = real_run(tmp_path), Away()
    record_verification(run.store, run.key, "ann@desk", verify(run, iris()))
    found = verify(run, iris(), away)
    assert [each.ok for each in found.facts] == [True, False, False, False]
    reason = "unknown: local://lab cannot be read from here: NoCredentialsError: Unable to locate credentials"
    assert {each.seen for each in found.facts[1:]} == {reason}
    assert away.asked == 1
    assert not found.verified and not found.is_known
    assert record_verification(run.store, run.key, "bob@lap", found) is None
    assert run.record().verification is not None


def test_a_run_that_failed_is_not_verified_even_if_its_files_cannot_be_read(tmp_path):
    run = Run(tmp_path, REAL, runtime="marinskyrl")
    run.submit()
    run.event("failed", reason="OOM")
    found = verify(run, iris("failed"), Away())
    assert not found.verified and found.is_known
    assert fact(found, "terminal_artifacts_exist").seen.startswith("the run's record says failed; unknown: ")


def test_buckets_that_are_not_read_at_all_give_no_answer(tmp_path):
    run = real_run(tmp_path)
    with pytest.raises(FilesElsewhere, match="which this command does not read"):
        verify_run(run.record(), run.store, run.root, iris(), objects=None)


def test_a_reused_step_is_verified_by_the_attempt_that_made_it(tmp_path):
    run = real_run(tmp_path)
    again = run.key.model_copy(update={"ordinal": 2})
    opening = dict(run.record().events[0].facts)
    for kind, facts in (
        ("intent", opening),
        ("submitted", {"job_id": "/slipway/cats-2"}),
        ("step_reused", {"step": "cats@1"}),
        ("succeeded", {}),
    ):
        append_event(run.store, again, kind, "ann@desk", facts)
    record = load_record(run.store, again)
    found = verify_run(record, run.store, None, FakeIris(), objects=FolderObjects(run.root))
    assert found.verified, found
    assert found.attempt_id == run.attempt
    remove(MANIFEST)(run)
    assert not verify_run(record, run.store, None, FakeIris(), objects=FolderObjects(run.root)).verified


def test_status_shows_what_record_and_iris_tell(tmp_path):
    run = Run(tmp_path, REAL, runtime="marinskyrl")
    run.submit()
    text = status_text(read_status(run.record(), run.store, None, iris("running")))
    assert "tasks joined: 2/2\nsteps: ?/3\n" in text and "note: " not in text
    run.event("step_finished", step="cats@1", global_step=3)
    run.event("succeeded")
    text = status_text(read_status(run.record(), run.store, None, None))
    assert "tasks joined: 0/2\nsteps: 3/3\n" in text


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
