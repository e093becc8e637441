"""Tests of the life of the embedded cluster, with the real daemon.

Two daemons live beside each other, each in a state folder of its own: what they do is mostly to wait.
"""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tools.launcher.iris.gateway import connect
from tools.launcher.iris.jobs import JobRequest
from tools.launcher.iris.local import processes
from tools.launcher.iris.local.cluster_for_test import (
    ended_job,
    plan_in_place,
    stopped_afterwards,
    wait_until,
)
from tools.launcher.iris.local.control import LocalCluster, ensure_running, status, stop
from tools.launcher.iris.local.daemon import NONCE_VARIABLE
from tools.launcher.iris.local.secret_memory import secret_memory
from tools.launcher.iris.local.shapes import GangShape
from tools.launcher.iris.local.state import local_paths, read_record
from tools.launcher.iris.sample_request_for_test import request

STARTER = """
import dataclasses, json, sys
from pathlib import Path
from tools.launcher.iris.local.cluster_for_test import plan_in_place
from tools.launcher.iris.local.control import ensure_running
print(json.dumps(dataclasses.asdict(ensure_running(Path(sys.argv[1]), plan=plan_in_place()))))
"""


def shell(name: str, script: str, **changes: Any) -> JobRequest:
    return JobRequest(**request(name=name, argv=("bash", "-c", script), files={}, **changes))


def nonce_of(state: Path) -> str:
    record = read_record(local_paths(state))
    assert record is not None
    return record.nonce


@pytest.fixture(scope="module")
def killed_meanwhile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Future[None]]:
    """The life of a daemon that is killed, while the other one lives."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(killed_and_replaced, tmp_path_factory.mktemp("killed"))


@pytest.mark.usefixtures("killed_meanwhile")
def test_four_starters_one_daemon_and_its_whole_life(tmp_path: Path) -> None:
    with stopped_afterwards(tmp_path / "state") as state:
        environ = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "SLIPWAY_TEST_TOKEN": "callers-own-value",
        }
        starters = [
            subprocess.Popen(
                [sys.executable, "-c", STARTER, str(state)], stdout=subprocess.PIPE, text=True, env=environ
            )
            for _ in range(4)
        ]
        # The starters have ended when the daemon is used: it outlives them.
        results = [json.loads(starter.communicate(timeout=120)[0]) for starter in starters]
        assert len({(result["pid"], result["url"]) for result in results}) == 1
        assert sorted(result["reused"] for result in results) == [False, True, True, True]
        pid, url = results[0]["pid"], results[0]["url"]
        assert os.getsid(pid) == pid
        assert Path(f"/proc/{pid}/cwd").resolve() == local_paths(state).root.resolve()
        assert b"callers-own-value" not in Path(f"/proc/{pid}/environ").read_bytes()

        begin = time.monotonic()
        again = ensure_running(state, plan=plan_in_place(), shape=GangShape("H100", 8, 2))
        assert (again.pid, again.url, again.reused, again.note) == (pid, url, True, "")
        assert time.monotonic() - begin < 5

        with connect(url) as gateway:
            done = gateway.submit(shell("done", "true"))
            assert ended_job(gateway, done).state == "succeeded"
            gang = {"replicas": 2, "gpu_variant": "H100", "gpus_per_task": 8, "coscheduled": True}
            running = gateway.submit(shell("running", "sleep 60", **gang))
            wait_until(
                lambda: (
                    [task.state for task in getattr(gateway.describe(running), "tasks", ())]
                    == ["running"] * 2
                ),
                seconds=60,
                what="the gang to run",
            )
        # With GPU workers there: controller, log server and every worker listen on loopback only.
        listeners = processes.listeners(pid)
        assert len(listeners) >= 5
        assert [listener for listener in listeners if not listener.loopback] == []
        assert status(state).unfinished_jobs == (running,)

        other_build = dataclasses.replace(plan_in_place(), digest="f" * 64)
        kept = ensure_running(state, plan=other_build)
        assert (kept.pid, kept.reused) == (pid, True)
        assert kept.note == (
            "The embedded Iris runs another build; kept, because job /slipway/running has not finished. "
            "To replace it, wait or stop it."
        )
        with connect(url) as gateway:
            gateway.cancel(running)
        replaced = ensure_running(state, plan=other_build)
        assert replaced.pid != pid
        assert (replaced.reused, replaced.runtime_digest) == (False, "f" * 64)
        assert replaced.note == "The embedded Iris ran another build and had nothing to do; replaced."
        assert processes.start_ticks(pid) is None
        with connect(replaced.url) as gateway:
            known = {job: getattr(gateway.describe(job), "state", None) for job in (done, running)}
            assert known == {done: "succeeded", running: "killed"}
        stopped_with_all_it_had(state, replaced, tmp_path / "marker")


def stopped_with_all_it_had(state: Path, running: LocalCluster, marker: Path) -> None:
    nonce = nonce_of(state)
    with connect(running.url) as gateway:
        job = gateway.submit(
            shell("stopped", f"setsid sleep 60 & touch {marker}; sleep 60", max_task_retries=3)
        )
        wait_until(marker.exists, seconds=30, what="the task to run")
    memory = secret_memory(local_paths(state).root)
    assert memory.key_file.is_file()
    outcome = stop(state)
    assert not memory.folder.exists()
    assert (outcome.was_running, outcome.pid, outcome.ended_jobs) == (True, running.pid, (job,))
    assert not outcome.forced
    assert outcome.killed_processes == 1
    assert processes.carrying(NONCE_VARIABLE, nonce) == ()
    assert processes.start_ticks(running.pid) is None
    assert status(state).note == "not running"
    assert not stop(state).was_running


def killed_and_replaced(folder: Path) -> None:
    with stopped_afterwards(folder / "state") as state:
        first = ensure_running(state, plan=plan_in_place())
        nonce = nonce_of(state)
        marker = folder / "marker"
        script = f"""grep -q sealed-meanwhile "$RIGGING_SECRETS_DIR/HF_TOKEN" || exit 9
            case "$IRIS_TASK_ID" in *:0) setsid sleep 60 & touch {marker}; sleep 60;; esac"""
        with connect(first.url) as gateway:
            survivor = gateway.submit(
                shell(
                    "survivor",
                    script,
                    max_task_retries=1,
                    secrets={"HF_TOKEN": SecretStr("sealed-meanwhile")},
                )
            )
            lost = gateway.submit(shell("lost", "sleep 60"))
            wait_until(marker.exists, seconds=30, what="the task to run")
            # One that the controller has not seen running yet is run again without a retry.
            wait_until(
                lambda: [task.state for task in getattr(gateway.describe(lost), "tasks", ())] == ["running"],
                seconds=30,
                what="the other task to run",
            )
        os.kill(first.pid, signal.SIGKILL)
        wait_until(lambda: processes.start_ticks(first.pid) is None, seconds=5, what="the end of the daemon")
        found = status(state)
        assert (found.running, found.note) == (
            False,
            f"not running; process {first.pid} ended without being stopped",
        )
        memory = secret_memory(local_paths(state).root)
        (left,) = memory.task_files.glob("*/*/HF_TOKEN")
        second = ensure_running(state, plan=plan_in_place())
        assert second.pid != first.pid
        assert not second.reused
        assert not left.exists()
        assert second.note == (
            f"The last embedded Iris (process {first.pid}) ended without being stopped; replaced."
        )
        # What it had started is gone, also what had left its session.
        assert processes.carrying(NONCE_VARIABLE, nonce) == ()
        with connect(second.url) as gateway:
            facts = ended_job(gateway, survivor)
            assert (facts.state, facts.tasks[0].attempts) == ("succeeded", 2)
            assert ended_job(gateway, lost).state == "worker_failed"

        # Somebody removes what is known of it: it can't be found any more, and ends by itself.
        local_paths(state).daemon_record.unlink()
        wait_until(
            lambda: processes.start_ticks(second.pid) is None, seconds=15, what="the end of the daemon"
        )
        assert not memory.folder.exists()


def test_a_killed_daemon_is_replaced_and_its_work_goes_on(killed_meanwhile: Future[None]) -> None:
    killed_meanwhile.result()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
