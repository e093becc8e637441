"""The coordinator and its gang as real jobs of the embedded Iris, all of them at a time."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tools.launcher.coordinator.bundle_for_test import RUN, submitted
from tools.launcher.iris.gateway import connect
from tools.launcher.iris.jobs import JobRequest
from tools.launcher.iris.local.cluster_for_test import (
    ended_job,
    plan_in_place,
    stopped_afterwards,
    wait_until,
)
from tools.launcher.iris.local.control import ensure_running
from tools.launcher.iris.task_bootstrap import CODE_ARCHIVE, bootstrap_argv
from tools.launcher.rehearsal.document_for_test import import_inputs
from tools.launcher.rehearsal.limits import STEP_VARIABLE
from tools.launcher.rehearsal.process_gateway_for_test import code_archive
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.records import RunState, load_record

ONE_NODE = {"iris__allocation__num_nodes": 1, "skyrl__trainer__placement__policy_num_nodes": 1}
ATTEMPTS = "local://scratch/tmp/ttl=14d/skyrl/marin/lab/cat-count/2026.11.30/attempts"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with stopped_afterwards(tmp_path_factory.mktemp("state")) as state:
        cluster = ensure_running(state, plan=plan_in_place())
        with connect(cluster.url) as opened:
            yield opened


class Launch:
    """One submitted coordinator."""

    def __init__(
        self, gateway, folder: Path, name: str, step_seconds: str, retries: int = 3, **changes: Any
    ) -> None:
        self.gateway, self.name = gateway, name
        self.store, self.root = FileStore(folder / "store"), ObjectRoot(folder / "objects")
        # Making the inputs is tested elsewhere; here each would cost a process.
        import_inputs(self.root)
        self.assignment = submitted(self.store, **changes)
        self.request = JobRequest(
            name=name,
            user="tester",
            argv=bootstrap_argv(
                "tools.launcher.coordinator.main",
                [
                    f"--store=file://{folder}/store",
                    f"--object-root=file://{folder}/objects",
                    f"--bundle={self.assignment.bundle}",
                    f"--launch={self.assignment.key.launch_digest}",
                    f"--experiment={self.assignment.key.experiment}",
                    "--ordinal=1",
                    "--stage=rl",
                ],
            ),
            cpu=4.0,
            memory="16GB",
            disk="64GB",
            replicas=1,
            gpu_variant=None,
            gpus_per_task=0,
            files={CODE_ARCHIVE: code_archive()},
            env={STEP_VARIABLE: step_seconds},
            timeout_seconds=600,
            max_task_retries=retries,
            coscheduled=False,
            children_survive=True,
        )
        self.job_id = gateway.submit(self.request)

    def record(self):
        return load_record(self.store, self.assignment.key)

    def attempt(self) -> Path:
        return next(path for path in self.root.path(ATTEMPTS).iterdir() if len(path.name) == 12)

    def running_child(self) -> str:
        """Wait until the child has trained a step and stands in the record; return its id."""

        def trained() -> bool:
            found = list(self.root.path(ATTEMPTS).glob("*/metrics.jsonl"))
            return bool(found) and found[0].stat().st_size > 0

        wait_until(trained, seconds=90, what="a training step")
        # The event of the child's submission is there while it runs, not only at the end.
        wait_until(lambda: self.record().child_job_ids, seconds=20, what="the child in the record")
        (child_id,) = self.record().child_job_ids
        return child_id

    def ended(self):
        """Wait for the coordinator's end; return its facts and the record."""
        return ended_job(self.gateway, self.job_id, seconds=90), self.record()


@pytest.fixture(scope="module")
def launches(gateway, tmp_path_factory):
    """One launch for each test; they begin together and wait beside each other.

    Those whose turn comes later stand still after their first step, all tasks in their pause: so no task finds
    another one gone before Iris does.
    """
    return {
        name: Launch(gateway, tmp_path_factory.mktemp(name), name, step_seconds, **changes)
        for name, step_seconds, changes in (
            ("restarted", "0.8", {}),
            ("killed", "600", {}),
            ("cancelled", "600", ONE_NODE),
            ("launcherless", "600", ONE_NODE),
        )
    }


def _ended_once_as_failed(launch):
    """The coordinator recorded its failure, and Iris, which may start it three more times, does not."""
    coordinator, record = launch.ended()
    assert record.state is RunState.FAILED
    assert [event.kind for event in record.events].count("failed") == 1
    assert (coordinator.state, [task.attempts for task in coordinator.tasks]) == ("failed", [1])
    assert coordinator.error == record.reason[:1000]
    return record


def test_a_coordinator_killed_mid_run_takes_up_its_child_and_leaves_the_evidence(gateway, launches):
    launch = launches["restarted"]
    child_id = launch.running_child()
    os.kill(_pid_of(f"{launch.job_id}/0:0"), signal.SIGKILL)
    coordinator, record = launch.ended()
    assert coordinator.state == "succeeded", (coordinator, record, gateway.logs(launch.job_id))
    assert [task.attempts for task in coordinator.tasks] == [2]
    kinds = [event.kind for event in record.events]
    assert (record.state, kinds.count("coordinator_started")) == (RunState.SUCCEEDED, 2)
    assert [kinds.count(kind) for kind in ("failed", "child_submitted", "step_finished")] == [0, 1, 1]
    # One child, started once, and it is the record's.
    assert record.coordinator_job_id == launch.job_id
    assert record.child_job_ids == (child_id,)
    assert child_id == f"{launch.job_id}/lab-cat-count-2026.11.30-{record.attempt_ids[0]}"
    assert [job.job_id for job in gateway.children(launch.job_id)] == [child_id]
    child = gateway.describe(child_id)
    assert (child.state, [task.exit_code for task in child.tasks]) == ("succeeded", [0, 0])
    assert [task.attempts for task in child.tasks] == [1, 1]
    for rank in (0, 1):
        joined = json.loads((launch.attempt() / "joined" / f"{rank}.json").read_bytes())
        assert joined["task_id"] == f"{child_id}/{rank}:0"
        assert (launch.attempt() / "model_load" / f"{rank}.json").is_file()
    finished = next(e.facts for e in record.events if e.kind == "step_finished" and e.facts["step"] == RUN)
    assert finished["reward_first"] < 0.3 < 0.7 < finished["reward_last"]
    manifest = json.loads(launch.root.path(finished["terminal_manifest"]).read_bytes())
    assert (manifest["iris_job_id"], manifest["rehearsal"]) == (child_id, True)


def test_a_child_task_killed_mid_run_ends_in_a_failed_record(gateway, launches):
    launch = launches["killed"]
    child_id = launch.running_child()
    killed_at = time.monotonic()
    os.kill(_pid_of(f"{child_id}/1:0"), signal.SIGKILL)
    record = _ended_once_as_failed(launch)
    assert time.monotonic() - killed_at < 30
    assert f"child job {child_id} is failed: task 1 of 2 ended with exit code" in record.reason
    assert "(killed)" in record.reason


def test_a_cancelled_child_ends_in_a_failed_record(gateway, launches):
    launch = launches["cancelled"]
    child_id = launch.running_child()
    gateway.cancel(child_id)
    assert f"child job {child_id} is killed" in _ended_once_as_failed(launch).reason


def test_a_launcher_killed_below_the_coordinator_fails_the_run_and_leaves_no_child(gateway, launches):
    launch = launches["launcherless"]
    child_id = launch.running_child()
    os.kill(_pid_of_launcher(launch.job_id), signal.SIGKILL)
    record = _ended_once_as_failed(launch)
    assert "the launcher ended with exit code -9 and no answer" in record.reason
    assert record.events[-1].facts["child_ended"] == child_id
    assert gateway.describe(child_id).state == "killed"


def _pid_of(task_id: str) -> int:
    """Return the process of a task: it carries its id in the environment."""
    for pid, environment, _ in _processes():
        if f"IRIS_TASK_ID={task_id}" in environment:
            return pid
    raise AssertionError(f"no process of {task_id}")


def _pid_of_launcher(coordinator_id: str) -> int:
    for pid, environment, command in _processes():
        if f"IRIS_TASK_ID={coordinator_id}/0:0" in environment and "launch" in command:
            return pid
    raise AssertionError(f"no launcher below {coordinator_id}")


def _processes():
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                environment = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
                command = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            yield int(folder.name), environment, command


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
