"""From built experiments to verified runs on a real embedded Iris, through the command line."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.launcher.cli.built_experiment_testlib import build, source_of
from tools.launcher.iris.gateway import connect
from tools.launcher.iris.local.control import status, stop
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunRecord, attempt_id_of, list_records
from tools.launcher.store.testing.fake_gcs_for_test import FakeGcs

CLUSTERS = {"cat_count": "local", "gsm8k_grpo": "cw_us_east_02a"}
SECONDS = 240


@pytest.fixture(scope="module")
def state() -> Iterator[Path]:
    home = Path(os.environ.get("TEST_TMPDIR", "/tmp")) / "state"
    yield home / "slipway"
    stop(home / "slipway")


def launcher(
    state: Path, command: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run one command line of the launcher in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tools.launcher.cli.launcher_main", command, *arguments],
        env={
            "HOME": str(state.parent),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(sys.path),
            "XDG_STATE_HOME": str(state.parent),
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def files_of(name: str) -> list[str]:
    outputs = {"launch": "launch.yaml", "digest": "digest", "graph": "graph.json", "plan": "plan.json"}
    built = [f"--{flag}=experiments/{name}/{name}.{ending}" for flag, ending in outputs.items()]
    return [*built, f"--cluster=third_party/clusters/{CLUSTERS[name]}.yaml"]


def record_of(state: Path, name: str) -> RunRecord:
    (record,) = list_records(FileStore(state / "store"), name)
    return record


def jobs(state: Path) -> list[str]:
    """Ids of all jobs that the embedded Iris knows for our runs, coordinators and children."""
    found = status(state)
    assert found.running
    with connect(found.url) as gateway:
        coordinators = [record.coordinator_job_id for record in list_records(FileStore(state / "store"))]
        return [
            job
            for coordinator in coordinators
            if coordinator
            for job in (coordinator, *(child.job_id for child in gateway.children(coordinator)))
        ]


def test_a_dry_run_prints_the_request_and_starts_nothing(state):
    done = launcher(state, "launch", *files_of("cat_count"), "--dry-run")
    assert done.returncode == 0, done.stderr
    request = json.loads(done.stdout[done.stdout.index("\n{\n") :])
    assert request["name"].startswith("cat_count-") and request["env"] == {}
    assert not status(state).running
    assert list_records(FileStore(state / "store")) == ()


def test_a_launch_ends_verified(state):
    done = launcher(state, "launch", *files_of("cat_count"))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "verified: yes" in lines
    record = record_of(state, "cat_count")
    assert record.verification is not None and record.key.ordinal == 1
    for expected in (
        f"coordinator job: {record.coordinator_job_id}",
        f"child job: {record.child_job_ids[0]}",
        f"recipe digest: sha256:{record.recipe_digest}",
        f"launch digest: sha256:{record.launch_digest}",
    ):
        assert expected in lines
    for fact in (
        "tasks_joined",
        "model_loaded_as_declared",
        "optimizer_steps_advanced",
        "terminal_artifacts_exist",
    ):
        assert re.search(rf"^  yes +{fact}", done.stdout, re.MULTILINE), done.stdout


def test_the_rewards_rise(state):
    done = launcher(state, "status", "cat_count")
    assert done.returncode == 0, done.stderr
    first, latest = map(float, re.findall(r"([0-9.]+) (?:first|latest)", done.stdout))
    assert latest > first + 0.2
    assert "state: succeeded" in done.stdout and "tasks joined: 2/2" in done.stdout


def test_a_second_launch_finds_the_first(state):
    before, events = jobs(state), record_of(state, "cat_count").events
    done = launcher(state, "launch", *files_of("cat_count"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "already finished" in done.stdout and "verified: yes" in done.stdout
    assert jobs(state) == before and len(before) == 2
    assert record_of(state, "cat_count").events == events


def test_verify_answers_with_evidence(state):
    done = launcher(state, "verify", "cat_count")
    assert done.returncode == 0, done.stdout + done.stderr
    facts = re.findall(r"^  yes +\w+: .*\n +evidence: \w+", done.stdout, re.MULTILINE)
    assert len(facts) == 4


def test_verify_says_no_when_the_export_is_gone(state):
    export = state / "objects/local/slipway/marin/slipway/cat-count-rl/2026.11.30/exports"
    hidden = export.with_name("hidden")
    export.rename(hidden)
    try:
        done = launcher(state, "verify", "cat_count")
        assert done.returncode == 1
        assert "verified: no" in done.stdout and re.search(
            r"^  no +terminal_artifacts_exist", done.stdout, re.MULTILINE
        )
    finally:
        hidden.rename(export)
    assert launcher(state, "verify", "cat_count").returncode == 0


SLOW = {"SLIPWAY_REHEARSAL_STEP_SECONDS": "5"}


def test_a_run_is_cancelled_with_its_child_and_relaunched_from_its_bundle(state):
    step = {"SLIPWAY_REHEARSAL_STEP_SECONDS": "3"}
    begun = launcher(state, "rehearse", *files_of("gsm8k_grpo"), "--detach", **step)
    assert begun.returncode == 0, begun.stdout + begun.stderr
    living = launcher(state, "relaunch", "gsm8k_grpo", "--authorize=ann: node fault")
    assert living.returncode == 3 and "Wait for its end or cancel it, then relaunch" in living.stderr
    unanswered = launcher(state, "cancel", "gsm8k_grpo")
    assert unanswered.returncode == 2 and "say who and why" in unanswered.stderr
    # Written at step 4 of 8.
    end = time.monotonic() + SECONDS
    while not any((state / "objects" / "s3").glob("**/qwen06-gsm8k-rl/**/global_step_4/trainer_state.json")):
        assert time.monotonic() < end
        time.sleep(0.2)
    done = launcher(state, "cancel", "gsm8k_grpo", "--authorize=ann: wrong data")
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = list_records(FileStore(state / "store"), "gsm8k_grpo")
    both = [record.coordinator_job_id, *record.child_job_ids]
    assert f"was running: {', '.join(both)}" in done.stdout.splitlines() and len(both) == 2
    assert re.search(r"^remains: checkpoint of step \d+: s3://", done.stdout, re.MULTILINE), done.stdout
    with connect(status(state).url) as gateway:
        assert [gateway.describe(job).state for job in both] == ["killed", "killed"]
    # The coordinator may have had time to record that its child was ended.
    kinds = [event.kind for event in record.events]
    assert "cancel_requested" in kinds and kinds[-1] == "cancelled" and record.state == "cancelled"
    assert record.events[-1].facts["states"] == dict.fromkeys(both, "killed")
    again = launcher(state, "rehearse", *files_of("gsm8k_grpo"))
    assert again.returncode == 1 and "was cancelled: by ann: wrong data" in again.stderr, again.stderr
    over = launcher(state, "cancel", "gsm8k_grpo", "--authorize=ann: wrong data")
    assert over.returncode == 0 and "over already, nothing to cancel: cancelled" in over.stdout
    relaunched = launcher(
        state, "relaunch", "gsm8k_grpo", "--authorize=ann: the data was right", "--detach", **SLOW
    )
    assert relaunched.returncode == 0, relaunched.stdout + relaunched.stderr
    assert re.search(r"^resume: from step \d+, the newest whole checkpoint", relaunched.stdout, re.MULTILINE)
    first, commit = attempt_id_of(record.key), record.runtime_commit
    assert f"  written by: attempt 1 ({first}), runtime {commit} (as now)" in relaunched.stdout.splitlines()
    assert re.search(
        r"^coordinator: /slipway/gsm8k_grpo-[0-9a-f]{8}-2 \(submitted\)$", relaunched.stdout, re.MULTILINE
    )
    statement = json.loads(launcher(state, "provenance", "gsm8k_grpo").stdout)
    assert statement["predicate"]["buildDefinition"]["internalParameters"]["authorizedBy"] == "ann"


def test_a_run_that_is_stopped_says_so_and_is_relaunched_on_request(state):
    """The run that the test before left."""
    begun = launcher(state, "rehearse", *files_of("gsm8k_grpo"), "--detach", **SLOW)
    assert begun.returncode == 0, begun.stdout + begun.stderr
    assert (
        "detached: follow it with" in begun.stdout and "-2 (already submitted: following it)" in begun.stdout
    )
    stopped = launcher(state, "local", "stop")
    assert stopped.returncode == 0, stopped.stderr
    assert "jobs cancelled: /slipway/gsm8k_grpo-" in stopped.stdout
    seen = launcher(state, "status", "gsm8k_grpo").stdout
    assert "state: failed: " in seen, seen
    again = launcher(state, "rehearse", *files_of("gsm8k_grpo"))
    assert again.returncode == 1 and "--relaunch" in again.stderr, again.stdout + again.stderr
    unanswered = launcher(state, "rehearse", *files_of("gsm8k_grpo"), "--relaunch")
    assert unanswered.returncode == 2
    assert "say who and why, for example --authorize=" in unanswered.stderr
    why = "ann: the local Iris was stopped"
    done = launcher(state, "rehearse", *files_of("gsm8k_grpo"), "--relaunch", f"--authorize={why}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "resume: " in done.stdout
    assert "verified: yes" in done.stdout.splitlines()
    newest = max(list_records(FileStore(state / "store"), "gsm8k_grpo"), key=lambda found: found.key.ordinal)
    assert newest.events[0].facts["authorized"] == why
    assert {record.key.ordinal for record in list_records(FileStore(state / "store"), "gsm8k_grpo")} == {
        1,
        2,
        3,
    }


def test_a_plan_for_a_real_cluster_is_refused_here_and_rehearsed(state):
    refused = launcher(state, "launch", *files_of("gsm8k_grpo"))
    assert refused.returncode == 3
    assert refused.stderr.startswith("refused: the cluster cw-us-east-02a has no store: ")
    done = launcher(state, "rehearse", *files_of("gsm8k_grpo"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verified: yes" in done.stdout.splitlines()


KEY = "hidden-6f1d0b9e8c"


@pytest.fixture(scope="module")
def unfederated(tmp_path_factory) -> list[str]:
    """gsm8k_grpo, handed to its cluster without a hub: the embedded Iris here is nobody's hub."""
    edits = {
        "target_cluster=inputs.cluster.name": "target_cluster=None",
        'parent_cluster_config="lib/iris/config/marin.yaml"': "parent_cluster_config=None",
    }
    ledger = Path("experiments/gsm8k_grpo/versions.lock.yaml")
    files = build(tmp_path_factory.mktemp("unfederated"), source_of(edits=edits), ledger=ledger)
    return [*(f"--{flag}={path}" for flag, path in files.items()), "--budget=experiments/budget.yaml"]


def test_a_cluster_of_others_gets_one_job_and_the_store_everything(state, tmp_path, unfederated):
    """The embedded Iris stands for the cluster: reached by its address, as one behind a tunnel would be."""
    cluster = status(state)
    assert cluster.running
    elsewhere = tmp_path / "slipway"
    with FakeGcs() as bucket:
        # The launcher writes the first two events; the third is the coordinator's, which is held.
        coordinator = bucket.hold(method="insert", key=r"/events/0003\.json$", when="before", count=3)
        arguments = [
            *unfederated,
            f"--controller={cluster.url}",
            f"--store={bucket.store_url('team')}",
            "--allow-dirty",
            "--detach",
        ]
        variables = {"STORAGE_EMULATOR_HOST": bucket.url, "WANDB_API_KEY": KEY}
        asked = launcher(elsewhere, "launch", *arguments, **variables)
        assert asked.returncode == 3, asked.stdout + asked.stderr
        assert "there is no terminal to ask at; nothing was submitted. To agree beforehand: " in asked.stderr
        assert " //experiments/gsm8k_grpo:launch -- --store=" in asked.stderr and " --yes\n" in asked.stderr
        assert bucket.objects == {}

        first = launcher(elsewhere, "launch", *arguments, "--yes", **variables)
        assert first.returncode == 0, first.stdout + first.stderr
        (job_id,) = re.findall(r"^coordinator: (\S+) \(submitted\)$", first.stdout, re.MULTILINE)
        assert f" -- status gsm8k_grpo --store={bucket.store_url('team')}`" in first.stdout
        again = launcher(elsewhere, "launch", *arguments, "--yes", **variables)
        assert again.returncode == 0, again.stdout + again.stderr
        assert f"coordinator: {job_id} (already submitted: following it)" in again.stdout.splitlines()
        with connect(cluster.url) as gateway:
            ours = [job for job in gateway.unfinished_jobs() if "gsm8k_grpo" in job]
            assert ours == [job_id]
            job = gateway.describe(job_id)
            assert job is not None and "--credential=WANDB_API_KEY" in job.argv
            assert "--runtime=marinskyrl" in job.argv and not any("object-root" in word for word in job.argv)
            gateway.cancel(job_id)
        coordinator.cut()
        kept = {**bucket.objects}
    names = [re.sub(r"[0-9a-f]{64}", "…", name) for name in kept]
    version = "team/versions/users/lab/tests/qwen06-gsm8k-rl/2026.09.21"
    assert [name for name in names if "/000" not in name or "/0001" in name or "/0002" in name] == [
        "team/bundles/sha256/…",
        f"{version}/claims/0001.json",
        f"{version}/turns/0001.json",
        "team/runs/gsm8k_grpo/…/1/events/0001.json",
        "team/runs/gsm8k_grpo/…/1/events/0002.json",
        "team/runs/gsm8k_grpo/…/1/provenance.json",
    ]
    intent = json.loads(next(data for name, data in kept.items() if name.endswith("events/0001.json")))[
        "facts"
    ]
    assert (intent["object_root"], intent["runtime"]) == (None, "marinskyrl")
    assert intent["route"]["controller"] == cluster.url
    assert intent["overrides"].keys() == {"clean-tree"}
    said = [done.stdout + done.stderr for done in (asked, first, again)]
    assert not any(KEY in text for text in [*said, *(str(data) for data in kept.values())])
    assert not (elsewhere / "store").exists()


def test_an_altered_document_is_refused_before_anything_starts(state, tmp_path):
    built = Path("experiments/cat_count/cat_count.launch.yaml").read_text()
    altered = tmp_path / "launch.yaml"
    altered.write_text(built.replace("train_batch_size: 32", "train_batch_size: 64"))
    done = launcher(state, "launch", f"--launch={altered}", *files_of("cat_count")[1:])
    assert done.returncode == 2
    assert "error: " in done.stderr and "Traceback" not in done.stderr


def test_an_unknown_stage_names_the_known_ones(state):
    done = launcher(state, "launch", *files_of("cat_count"), "--stage=evaluate")
    assert done.returncode == 2
    assert "--stage=evaluate does not end this graph. Its stages: rl" in done.stderr


def test_after_a_stop_the_record_still_answers(state):
    assert launcher(state, "local", "stop").returncode == 0
    assert launcher(state, "local", "status").returncode == 1
    done = launcher(state, "launch", *files_of("cat_count"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "already finished" in done.stdout and "verified: yes" in done.stdout


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
