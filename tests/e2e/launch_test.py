"""From built experiments to verified runs on a real embedded Iris, through the command line."""

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.launcher_testlib import SECONDS, ended, here, started
from tools.launcher.iris.gateway import connect
from tools.launcher.iris.local.cluster_for_test import stopped_afterwards, wait_until
from tools.launcher.iris.local.control import status
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunRecord, attempt_id_of, list_records

CLUSTERS = {"cat_count": "local", "gsm8k_grpo": "cw_us_east_02a"}


@pytest.fixture(scope="module")
def state() -> Iterator[Path]:
    home = Path(os.environ.get("TEST_TMPDIR", "/tmp")) / "state"
    with stopped_afterwards(home / "slipway") as folder:
        yield folder


def files_of(name: str) -> list[str]:
    outputs = {"launch": "launch.yaml", "digest": "digest", "graph": "graph.json", "plan": "plan.json"}
    built = [f"--{flag}=experiments/{name}/{name}.{ending}" for flag, ending in outputs.items()]
    return [*built, f"--cluster=third_party/clusters/{CLUSTERS[name]}.yaml"]


def record_of(state: Path, name: str) -> RunRecord:
    (record,) = list_records(FileStore(state / "store"), name)
    return record


def jobs(state: Path) -> list[str]:
    """Ids of all jobs that the embedded Iris knows for cat_count, coordinator and child."""
    found = status(state)
    assert found.running
    coordinator = record_of(state, "cat_count").coordinator_job_id
    assert coordinator is not None
    with connect(found.url) as gateway:
        # The coordinator itself ends a moment after its record says so.
        unfinished = [job for job in gateway.unfinished_jobs() if "cat_count" in job]
        others = [job for job in unfinished if job != coordinator]
        return [coordinator, *(child.job_id for child in gateway.children(coordinator)), *others]


def test_a_dry_run_prints_the_request_and_starts_nothing(state):
    done = here(state, "launch", *files_of("cat_count"), "--dry-run")
    assert done.returncode == 0, done.stderr
    request = json.loads(done.stdout[done.stdout.index("\n{\n") :])
    assert request["name"].startswith("cat_count-") and request["env"] == {}
    assert not status(state).running
    assert list_records(FileStore(state / "store")) == ()


STALLS = {"SLIPWAY_REHEARSAL_FAULT": '{"rank": 0, "kind": "stall", "step": 6}'}


def test_a_launch_ends_verified(state):
    """Another experiment is rehearsed meanwhile, for the tests below."""
    launch = started(state, "launch", *files_of("cat_count"))
    begun = here(state, "rehearse", *files_of("gsm8k_grpo"), "--detach", **STALLS)
    done = ended(launch)
    assert begun.returncode == 0, begun.stdout + begun.stderr
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
    done = here(state, "status", "cat_count")
    assert done.returncode == 0, done.stderr
    first, latest = map(float, re.findall(r"([0-9.]+) (?:first|latest)", done.stdout))
    assert latest > first + 0.2
    assert "state: succeeded" in done.stdout and "tasks joined: 2/2" in done.stdout


def test_a_second_launch_finds_the_first(state):
    before, events = jobs(state), record_of(state, "cat_count").events
    done = here(state, "launch", *files_of("cat_count"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "already finished" in done.stdout and "verified: yes" in done.stdout
    assert jobs(state) == before and len(before) == 2
    assert record_of(state, "cat_count").events == events


def test_verify_answers_with_evidence(state):
    done = here(state, "verify", "cat_count")
    assert done.returncode == 0, done.stdout + done.stderr
    facts = re.findall(r"^  yes +\w+: .*\n +evidence: \w+", done.stdout, re.MULTILINE)
    assert len(facts) == 4


def test_a_finished_run_is_not_relaunched_for_nothing(state):
    events = record_of(state, "cat_count").events
    done = here(state, "relaunch", "cat_count", "--authorize=ann: to be sure")
    assert done.returncode == 3, done.stdout + done.stderr
    assert " ended well at " in done.stderr and "give the experiment a new `version`" in done.stderr
    assert record_of(state, "cat_count").events == events


def test_an_import_is_verified_by_what_it_imports(state):
    """It was called not verified, for want of a training."""
    done = here(state, "launch", *files_of("cat_count"), "--stage=import")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verified: yes" in done.stdout.splitlines()
    verified = here(state, "verify", "cat_count.import")
    assert verified.returncode == 0 and "  yes  imports_exist: " in verified.stdout, verified.stdout
    (place,) = re.findall(r"evidence: local://(\S*qwen3\S*/\.artifact\.json)", verified.stdout)
    (mark,) = (state / "objects").rglob(f"*/{place}")
    content = mark.read_bytes()
    mark.unlink()
    gone = here(state, "verify", "cat_count.import")
    mark.write_bytes(content)
    assert gone.returncode == 1 and ".artifact.json is missing" in gone.stdout, gone.stdout
    again = here(state, "verify", "cat_count.import")
    assert again.returncode == 0, again.stdout


def test_verify_says_no_when_the_export_is_gone(state):
    export = state / "objects/local/slipway/marin/slipway/cat-count-rl/2026.11.30/exports"
    hidden = export.with_name("hidden")
    export.rename(hidden)
    try:
        done = here(state, "verify", "cat_count")
        assert done.returncode == 1
        assert "verified: no" in done.stdout and re.search(
            r"^  no +terminal_artifacts_exist", done.stdout, re.MULTILINE
        )
    finally:
        hidden.rename(export)
    assert here(state, "verify", "cat_count").returncode == 0


def test_a_run_is_watched_and_its_logs_are_read(state):
    """The rehearsal that was begun beside the launch goes on until it stalls; the launch has ended."""
    watching = started(state, "watch", "gsm8k_grpo", "--plain")
    with watching:
        seen = ""
        while not re.search(r"tasks 1/1  step [1-9]/8  reward ", seen):
            line = watching.stdout.readline()
            assert line, (seen, watching.stderr.read())
            seen += line
        watching.send_signal(signal.SIGINT)
        said = watching.stderr.read()
    name = record_of(state, "gsm8k_grpo").key.short_name
    assert watching.returncode == 130
    assert said == (
        f"\ninterrupted: the run {name} goes on. To watch it again: tools/bazel run //tools/launcher -- watch {name}\n"
    )
    assert record_of(state, "gsm8k_grpo").state == "running"
    once = here(state, "watch", name, "--once").stdout
    assert re.search(r"^checkpoint: ", once, re.MULTILINE) and "(running, 1 of 1 tasks running)" in once, once
    listed = json.loads(here(state, "runs", "--format=json", "--state=running").stdout)
    assert [found["run"] for found in listed] == [name]

    ended_well = here(state, "watch", "cat_count")
    assert ended_well.returncode == 0 and "verified: yes" in ended_well.stdout.splitlines()
    both = here(state, "logs", "cat_count")
    writers = {line.partition(" | ")[0].strip() for line in both.stdout.splitlines()}
    assert both.returncode == 0 and writers <= {"coordinator", "task 0", "task 1"}, both
    assert {"coordinator", "task 0"} <= writers, both
    own = [line for line in both.stdout.splitlines() if line.startswith("task 0 ")]
    last = here(state, "logs", "cat_count", "--task=0", "--tail=1", "--follow")
    assert last.stdout.splitlines() == [own[-1].partition(" | ")[2]], (own, last)
    assert last.stderr == "note: the run is succeeded; nothing more is written\n"
    none = here(state, "logs", "cat_count", "--task=7")
    assert (none.returncode, none.stderr) == (2, "error: --task=7: the run has 2 tasks, 0 to 1\n")
    none = here(state, "logs", name, "--task=7")
    assert (none.returncode, none.stderr) == (2, "error: --task=7: the run has one task, 0\n")


def test_a_run_is_cancelled_with_its_child_and_relaunched_from_its_bundle(state):
    """The rehearsal that was begun beside the launch: it stalls after the checkpoint of step 4 of 8."""
    living = here(state, "relaunch", "gsm8k_grpo", "--authorize=ann: node fault")
    assert living.returncode == 3 and "Wait for its end or cancel it, then relaunch" in living.stderr
    unanswered = here(state, "cancel", "gsm8k_grpo")
    assert unanswered.returncode == 2 and "say who and why" in unanswered.stderr
    written = "**/qwen06-gsm8k-rl/**/global_step_4/trainer_state.json"
    wait_until(lambda: any((state / "objects/s3").glob(written)), seconds=SECONDS, what="a checkpoint")
    shown = here(state, "cancel", "gsm8k_grpo", "--dry-run")
    assert re.search(r"^would remain: checkpoint of step \d+: s3://", shown.stdout, re.MULTILINE), shown
    done = here(state, "cancel", "gsm8k_grpo", "--authorize=ann: wrong data")
    assert done.returncode == 0, done.stdout + done.stderr
    record = record_of(state, "gsm8k_grpo")
    both = [record.coordinator_job_id, *record.child_job_ids]
    assert f"was running: {', '.join(both)}" in done.stdout.splitlines() and len(both) == 2
    assert re.search(r"^remains: checkpoint of step 4: s3://", done.stdout, re.MULTILINE), done.stdout
    with connect(status(state).url) as gateway:
        assert [gateway.describe(job).state for job in both] == ["killed", "killed"]
    # The coordinator may have had time to record that its child was ended.
    kinds = [event.kind for event in record.events]
    assert "cancel_requested" in kinds and kinds[-1] == "cancelled" and record.state == "cancelled"
    assert record.events[-1].facts["states"] == dict.fromkeys(both, "killed")
    again = here(state, "rehearse", *files_of("gsm8k_grpo"))
    assert again.returncode == 1 and "was cancelled: by ann: wrong data" in again.stderr, again.stderr
    over = here(state, "cancel", "gsm8k_grpo", "--authorize=ann: wrong data")
    assert over.returncode == 0 and "over already, nothing to cancel: cancelled" in over.stdout
    relaunched = here(
        state, "relaunch", "gsm8k_grpo", "--authorize=ann: the data was right", "--detach", **STALLS
    )
    assert relaunched.returncode == 0, relaunched.stdout + relaunched.stderr
    assert re.search(r"^resume: from step 4, the newest whole checkpoint", relaunched.stdout, re.MULTILINE)
    first, commit = attempt_id_of(record.key), record.runtime_commit
    assert f"  written by: attempt 1 ({first}), runtime {commit} (as now)" in relaunched.stdout.splitlines()
    assert re.search(
        r"^coordinator: /slipway/gsm8k_grpo-[0-9a-f]{8}-2 \(submitted\)$", relaunched.stdout, re.MULTILINE
    )
    statement = json.loads(here(state, "provenance", "gsm8k_grpo").stdout)
    assert statement["predicate"]["buildDefinition"]["internalParameters"]["authorizedBy"] == "ann"


def test_a_run_that_is_stopped_says_so(state):
    """The run that the test before left."""
    begun = here(state, "rehearse", *files_of("gsm8k_grpo"), "--detach")
    assert begun.returncode == 0, begun.stdout + begun.stderr
    assert (
        "detached: follow it with" in begun.stdout and "-2 (already submitted: following it)" in begun.stdout
    )
    unasked = here(state, "local", "stop")
    assert unasked.returncode == 3 and " of the run gsm8k_grpo/" in unasked.stderr, unasked
    assert here(state, "local", "status").returncode == 0
    stopped = here(state, "local", "stop", "--end-runs")
    assert stopped.returncode == 0, stopped.stderr
    assert "jobs cancelled: /slipway/gsm8k_grpo-" in stopped.stdout
    seen = here(state, "status", "gsm8k_grpo").stdout
    assert "state: failed: " in seen, seen


def test_after_a_stop_the_record_still_answers(state):
    assert here(state, "local", "status").returncode == 1
    done = here(state, "launch", *files_of("cat_count"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "already finished" in done.stdout and "verified: yes" in done.stdout


def test_a_stopped_run_is_relaunched_on_request(state):
    again = here(state, "rehearse", *files_of("gsm8k_grpo"))
    assert again.returncode == 1 and "--relaunch" in again.stderr, again.stdout + again.stderr
    unanswered = here(state, "rehearse", *files_of("gsm8k_grpo"), "--relaunch")
    assert unanswered.returncode == 2
    assert "say who and why, for example --authorize=" in unanswered.stderr
    why = "ann: the local Iris was stopped"
    done = here(state, "rehearse", *files_of("gsm8k_grpo"), "--relaunch", f"--authorize={why}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "resume: " in done.stdout
    assert "verified: yes" in done.stdout.splitlines()
    records = {found.key.ordinal: found for found in list_records(FileStore(state / "store"), "gsm8k_grpo")}
    assert records.keys() == {1, 2, 3}
    assert records[3].events[0].facts["authorized"] == why


def test_a_plan_for_a_real_cluster_is_refused_here_and_rehearsed(state):
    refused = here(state, "launch", *files_of("gsm8k_grpo"))
    assert refused.returncode == 3
    assert refused.stderr.startswith("refused: the cluster cw-us-east-02a has no store: ")
    done = here(state, "rehearse", *files_of("gsm8k_grpo"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verified: yes" in done.stdout.splitlines()


def test_an_altered_document_is_refused_before_anything_starts(state, tmp_path):
    built = Path("experiments/cat_count/cat_count.launch.yaml").read_text()
    altered = tmp_path / "launch.yaml"
    altered.write_text(built.replace("train_batch_size: 32", "train_batch_size: 64"))
    done = here(state, "launch", f"--launch={altered}", *files_of("cat_count")[1:])
    assert done.returncode == 2
    assert "error: " in done.stderr and "Traceback" not in done.stderr


def test_an_unknown_stage_names_the_known_ones(state):
    done = here(state, "launch", *files_of("cat_count"), "--stage=evaluate")
    assert done.returncode == 2
    assert "--stage=evaluate does not end this graph. Its stages: import, rl" in done.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
