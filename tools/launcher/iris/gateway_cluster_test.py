"""Tests of the gateway on the embedded cluster: real controller, real workers, real tasks.

What jobs do here is mostly to wait, so those that need no test at their side are all submitted at the start.
"""

import hashlib
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tools.launcher.iris.capacity import placeability
from tools.launcher.iris.gateway import IrisGateway, connect
from tools.launcher.iris.jobs import JobNameTaken, JobRefused, JobRequest
from tools.launcher.iris.local.cluster_for_test import (
    ended_job,
    plan_in_place,
    stopped_afterwards,
    wait_until,
)
from tools.launcher.iris.local.control import ensure_running
from tools.launcher.iris.local.processes import carrying
from tools.launcher.iris.remote import open_cluster
from tools.launcher.iris.route import Route
from tools.launcher.iris.sample_request_for_test import request

FOREIGN_SECRET = "the-callers-own"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IrisGateway]:
    with pytest.MonkeyPatch.context() as patch, stopped_afterwards(tmp_path_factory.mktemp("state")) as state:
        # What Iris's own client takes along from the user's environment.
        patch.setenv("HF_TOKEN", FOREIGN_SECRET)
        patch.setenv("WANDB_API_KEY", FOREIGN_SECRET)
        patch.setenv("MARIN_PROVENANCE", FOREIGN_SECRET)
        cluster = ensure_running(state, plan=plan_in_place())
        with connect(cluster.url) as opened:
            yield opened


def shell(name: str, script: str, **changes: Any) -> JobRequest:
    return JobRequest(**request(name=name, argv=("bash", "-c", script), files={}, **changes))


def python(name: str, code: str, **changes: Any) -> JobRequest:
    return JobRequest(**request(name=name, argv=("python", "-c", textwrap.dedent(code)), **changes))


def gang(name: str, script: str, nodes: int, **changes: Any) -> JobRequest:
    return shell(
        name,
        script,
        **{
            "cpu": 48.0,
            "memory": "1400GB",
            "disk": "4TB",
            "replicas": nodes,
            "gpu_variant": "H100",
            "gpus_per_task": 8,
            "coscheduled": True,
        }
        | changes,
    )


AT_THE_START: dict[str, JobRequest] = {}


def at_the_start(request: JobRequest) -> str:
    """Have a job submitted before the first test; returns its name."""
    AT_THE_START[request.name] = request
    return request.name


@pytest.fixture(scope="module")
def submitted(gateway: IrisGateway) -> dict[str, str]:
    """The ids of those jobs, by name."""
    return {name: gateway.submit(request) for name, request in AT_THE_START.items()}


@pytest.mark.usefixtures("submitted")
def test_the_way_to_it_through_an_iris_configuration(gateway: IrisGateway, tmp_path: Path) -> None:
    config = tmp_path / "lab.yaml"
    config.write_text(
        f"name: lab\nplatform: {{manual: {{}}}}\nworker_provider: {{}}\n"
        f"controller: {{manual: {{host: 127.0.0.1, port: {gateway.url.rpartition(':')[2]}}}}}\n"
        "defaults: {worker: {docker_image: any}}\n"
    )
    with open_cluster(Route(scheduler="iris", config=str(config)), give_up_after_seconds=10.0) as opened:
        assert opened.check_in() == "anonymous"
        job_id = opened.submit(shell("from-afar", "true"))
        assert ended_job(opened, job_id).state == "succeeded"


PLAIN = at_the_start(
    python(
        "plain",
        """
        import json, os, pathlib
        home = pathlib.Path(os.environ["IRIS_WORKDIR"])
        print(json.dumps({"environ": dict(os.environ), "file": (home / "in" / "a.bin").read_bytes().hex()}))
        """,
        files={"in/a.bin": b"\x00\xff"},
        env={"SLIPWAY_A": "b"},
    )
)


def test_a_job_gets_its_files_and_its_environment_and_nothing_else(
    gateway: IrisGateway, submitted: dict[str, str]
) -> None:
    job_id = submitted[PLAIN]
    assert job_id == gateway.job_id_of("slipway", "plain") == "/slipway/plain"
    facts = ended_job(gateway, job_id)
    assert (facts.state, facts.name, facts.error, facts.pending_reason) == ("succeeded", "plain", "", "")
    assert facts.env == {"SLIPWAY_A": "b"}
    assert facts.argv[:2] == ("python", "-c")
    assert [(task.index, task.state, task.exit_code, task.attempts) for task in facts.tasks] == [
        (0, "succeeded", 0, 1)
    ]
    wait_until(lambda: bool(gateway.logs(job_id)), seconds=10, what="a line of log")
    said = json.loads(gateway.logs(job_id)[-1])
    assert said["file"] == "00ff"
    assert said["environ"]["SLIPWAY_A"] == "b"
    assert FOREIGN_SECRET not in said["environ"].values()
    assert "MARIN_PROVENANCE" not in said["environ"]
    assert said["environ"]["IRIS_ADVERTISE_HOST"] == "127.0.0.1"


IMPORTS = at_the_start(
    python(
        "imports",
        """
        import importlib.util, iris, numpy, pydantic, safetensors, yaml
        print(importlib.util.find_spec("tools"))
        """,
    )
)


def test_a_task_imports_the_wheels_and_not_the_daemons_launcher(
    gateway: IrisGateway, submitted: dict[str, str]
) -> None:
    job_id = submitted[IMPORTS]
    facts = ended_job(gateway, job_id)
    assert facts.state == "succeeded", facts
    wait_until(lambda: bool(gateway.logs(job_id)), seconds=10, what="a line of log")
    assert gateway.logs(job_id)[-1] == "None"


TOGETHER = at_the_start(gang("gang", "echo rank $IRIS_TASK_ID; sleep 600", 2))


def test_a_gang_of_two_nodes_runs_together(gateway: IrisGateway, submitted: dict[str, str]) -> None:
    job_id = submitted[TOGETHER]
    wait_until(
        lambda: (
            [task.state for task in getattr(gateway.describe(job_id), "tasks", ())] == ["running", "running"]
        ),
        seconds=60,
        what="both tasks at once",
    )
    wait_until(lambda: len(gateway.log_lines(job_id)) == 2, seconds=10, what="both lines of log")
    lines = sorted((line.task_index, line.text) for line in gateway.log_lines(job_id))
    assert lines == [(0, "rank /slipway/gang/0:0"), (1, "rank /slipway/gang/1:0")]
    gateway.cancel(job_id)
    assert [task.state for task in ended_job(gateway, job_id).tasks] == ["killed", "killed"]


WAITING = at_the_start(gang("waiting", "true", 17))


def test_a_waiting_gang_says_why(gateway: IrisGateway, submitted: dict[str, str]) -> None:
    job_id = submitted[WAITING]
    wait_until(
        lambda: "leafgroup" in getattr(gateway.describe(job_id), "pending_reason", ""),
        seconds=20,
        what="a reason that names the group",
    )
    gateway.cancel(job_id)
    assert ended_job(gateway, job_id).state == "killed"


SINGLE = at_the_start(gang("single", "true", 1, gpu_variant="GB200", gpus_per_task=4, memory="900GB"))


def test_a_single_node_is_placed_too(gateway: IrisGateway, submitted: dict[str, str]) -> None:
    assert ended_job(gateway, submitted[SINGLE]).state == "succeeded"


def test_a_name_is_never_used_twice(gateway: IrisGateway) -> None:
    running = gateway.submit(shell("twice", "sleep 60"))
    with pytest.raises(JobNameTaken) as caught:
        gateway.submit(shell("twice", "true"))
    assert caught.value.job_id == running
    gateway.cancel(running)
    assert ended_job(gateway, running).state == "killed"
    with pytest.raises(JobNameTaken):
        gateway.submit(shell("twice", "true"))
    facts = gateway.describe(running)
    assert facts is not None
    assert facts.argv == ("bash", "-c", "sleep 60")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpu_variant": "B300"}, "no scaling group provides device gpu:b300"),
        ({"gpus_per_task": 16}, "gpu"),
        ({"cpu": 500.0}, "enough per-VM capacity"),
    ],
)
def test_what_can_never_run_is_refused(gateway: IrisGateway, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(JobRefused, match=reason) as caught:
        gateway.submit(gang("never", "true", 2, **changes))
    assert len(str(caught.value)) < 400
    assert gateway.describe("/slipway/never") is None


FAILS = at_the_start(shell("fails", "echo first; echo the cause >&2; exit 3"))


def test_a_failing_task_fails_the_job_at_once_and_shows_its_stderr(
    gateway: IrisGateway, submitted: dict[str, str]
) -> None:
    facts = ended_job(gateway, submitted[FAILS])
    assert facts.state == "failed"
    assert facts.error.endswith("Exit code: 3. stderr: the cause")
    (task,) = facts.tasks
    assert (task.state, task.exit_code, task.attempts) == ("failed", 3, 1)
    assert task.error == "Exit code: 3. stderr: the cause"


TORN = at_the_start(gang("torn", '[ "${IRIS_TASK_ID%:*}" = /slipway/torn/1 ] && exit 5; sleep 60', 2))


def test_one_failing_task_ends_its_gang(gateway: IrisGateway, submitted: dict[str, str]) -> None:
    facts = ended_job(gateway, submitted[TORN])
    assert facts.state == "failed"
    assert [(task.state, task.exit_code, task.attempts) for task in facts.tasks] == [
        ("cosched_failed", None, 1),
        ("failed", 5, 1),
    ]


STUBBORN = at_the_start(shell("stubborn", "exit 1", max_task_retries=2))


def test_retries_are_as_many_as_asked_for(gateway: IrisGateway, submitted: dict[str, str]) -> None:
    facts = ended_job(gateway, submitted[STUBBORN])
    assert (facts.state, facts.tasks[0].attempts) == ("failed", 3)


AGAIN = at_the_start(
    gang("again", 'case "$IRIS_TASK_ID" in */1:0) exit 5;; *:0) sleep 60;; esac', 2, max_task_retries=1)
)


def test_a_gang_that_fails_once_is_run_again(gateway: IrisGateway, submitted: dict[str, str]) -> None:
    facts = ended_job(gateway, submitted[AGAIN])
    assert facts.state == "succeeded"
    assert [(task.state, task.exit_code, task.attempts) for task in facts.tasks] == [
        ("succeeded", 0, 2),
        ("succeeded", 0, 2),
    ]


ROOT = str(Path(__file__).parents[3])
PARENT = at_the_start(
    python(
        "parent",
        f"""
        import sys, time
        sys.path.insert(0, {ROOT!r})
        from tools.launcher.iris.gateway import inside_job
        from tools.launcher.iris.jobs import JobNameTaken, JobRequest
        with inside_job() as gateway:
            request = JobRequest(
                name="kid", user="ignored", argv=("bash", "-c", "env; sleep 1"), cpu=1.0, memory="1GB",
                disk="1GB", replicas=2, gpu_variant="H100", gpus_per_task=8, files={{}}, env={{"OWN": "1"}},
                timeout_seconds=60, max_task_retries=0, coscheduled=True)
            kid = gateway.submit(request)
            assert kid == gateway.job_id_of("ignored", "kid"), kid
            try:
                gateway.submit(request)
            except JobNameTaken as error:
                print("taken", error.job_id)
            while gateway.describe(kid).state in ("pending", "running"):
                time.sleep(0.1)
            print("kid", gateway.describe(kid).state)
        """,
        env={"PARENTS": "1"},
    )
)


def test_a_task_submits_a_child_below_its_job(gateway: IrisGateway, submitted: dict[str, str]) -> None:
    parent = submitted[PARENT]
    facts = ended_job(gateway, parent)
    assert facts.state == "succeeded", facts
    (kid,) = gateway.children(parent)
    assert kid.job_id == "/slipway/parent/kid"
    assert [task.state for task in kid.tasks] == ["succeeded", "succeeded"]
    assert gateway.children(kid.job_id) == ()
    assert kid.job_id not in gateway.unfinished_jobs()
    wait_until(
        lambda: gateway.logs(parent)[-2:] == ("taken /slipway/parent/kid", "kid succeeded"),
        seconds=10,
        what="both lines of the parent, and none of the child's",
    )
    wait_until(lambda: "OWN=1" in gateway.logs(kid.job_id), seconds=10, what="the child's environment")
    assert "PARENTS=1" not in gateway.logs(kid.job_id)


LEAVING_PARENT = f"""
    import os, sys, time
    sys.path.insert(0, {ROOT!r})
    from tools.launcher.iris.gateway import inside_job
    from tools.launcher.iris.jobs import JobNameTaken, JobRequest
    with inside_job() as gateway:
        request = JobRequest(
            name="kid", user="x", argv=("sleep", "600"), cpu=1.0, memory="1GB", disk="1GB", replicas=1,
            gpu_variant=None, gpus_per_task=0, files={{}}, env={{}}, timeout_seconds=600, max_task_retries=0,
            coscheduled=False)
        try:
            kid = gateway.submit(request)
        except JobNameTaken as taken:
            print("found it", gateway.describe(taken.job_id).state, flush=True)
            time.sleep(600)
        while [task.state for task in gateway.describe(kid).tasks] != ["running"]:
            time.sleep(0.1)
        sys.exit(7)
"""
RESTARTED = at_the_start(python("restarted", LEAVING_PARENT, max_task_retries=1, children_survive=True))
GIVEN_UP = at_the_start(python("given-up", LEAVING_PARENT, children_survive=True))


def test_a_job_that_is_started_again_finds_its_child_running_and_cancelling_it_ends_both(
    gateway: IrisGateway, submitted: dict[str, str]
) -> None:
    parent = submitted[RESTARTED]
    wait_until(lambda: "found it running" in gateway.logs(parent), seconds=60, what="the second start")
    assert parent in gateway.unfinished_jobs()
    (kid,) = gateway.children(parent)
    assert [(task.state, task.attempts) for task in kid.tasks] == [("running", 1)]
    gateway.cancel(parent)
    assert ended_job(gateway, parent).state == "killed"
    assert ended_job(gateway, kid.job_id).state == "killed"
    gateway.cancel(parent)


def test_a_job_that_fails_for_good_leaves_its_child_and_cancelling_it_ends_that_too(
    gateway: IrisGateway, submitted: dict[str, str]
) -> None:
    parent = submitted[GIVEN_UP]
    assert ended_job(gateway, parent).state == "failed"
    (kid,) = gateway.children(parent)
    assert [task.state for task in kid.tasks] == ["running"]
    gateway.cancel(parent)
    assert ended_job(gateway, kid.job_id).state == "killed"
    assert ended_job(gateway, parent).state == "failed"
    wait_until(
        lambda: not carrying("IRIS_TASK_ID", f"{kid.job_id}/0:0"), seconds=10, what="the end of its process"
    )


SECRETS = {"HF_TOKEN": "never-shown ü", "OTHER": "two\nlines"}
SECRETIVE = at_the_start(
    python(
        "secretive",
        """
        import hashlib, json, os, pathlib, stat
        folder = pathlib.Path(os.environ["RIGGING_SECRETS_DIR"])
        print(json.dumps({
            "sha256": {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()},
            "modes": sorted({stat.filemode(p.stat().st_mode) for p in folder.iterdir()}),
            "folder": str(folder),
            "named": sorted(name for name in os.environ if name in ("HF_TOKEN", "OTHER")),
        }))
        """,
        secrets={name: SecretStr(value) for name, value in SECRETS.items()},
    )
)


def test_secrets_reach_the_task_as_files_and_nobody_reads_them_back(
    gateway: IrisGateway, submitted: dict[str, str]
) -> None:
    job_id = submitted[SECRETIVE]
    facts = ended_job(gateway, job_id)
    assert facts.state == "succeeded", facts
    wait_until(lambda: bool(gateway.logs(job_id)), seconds=10, what="a line of log")
    said = json.loads(gateway.logs(job_id)[-1])
    digests = {name: hashlib.sha256(value.encode()).hexdigest() for name, value in SECRETS.items()}
    assert (said["sha256"], said["modes"], said["named"]) == (digests, ["-r--------"], [])
    assert said["folder"].startswith("/dev/shm/slipway-")
    wait_until(lambda: not Path(said["folder"]).exists(), seconds=10, what="the files' removal")
    # What Iris gives back of the request has the names, so that one sees what was delivered.
    from iris.rpc import controller_pb2

    read = gateway._service.get_job_status(controller_pb2.Controller.GetJobStatusRequest(job_id=job_id))
    assert set(read.request.environment.secrets) == set(SECRETS)
    for text in (str(read), repr(facts)):
        assert "never-shown" not in text and "two\nlines" not in text


def test_whether_a_gang_can_ever_be_placed(gateway: IrisGateway) -> None:
    def ask(variant: str, gpus: int, nodes: int) -> tuple[str, str]:
        answer = placeability(gateway, gpu_variant=variant, gpus_per_node=gpus, num_nodes=nodes)
        return answer.verdict, answer.found

    sizes = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 24, 32"
    assert ask("H100", 8, 2) == ("yes", "the cluster has gangs of 2 h100 nodes")
    assert ask("GB200", 4, 32)[0] == "yes"
    assert ask("H100", 8, 40) == ("no", f"the cluster has gangs of {sizes} h100 nodes, 40 are asked for")
    assert ask("GB200", 8, 1) == ("no", "the cluster has nodes with up to 4 gb200 GPUs, 8 are asked for")
    assert ask("B300", 8, 1) == ("no", "the cluster has no b300 GPUs; it has gb200, h100, h200")
    elsewhere = placeability(
        gateway, gpu_variant="H100", gpus_per_node=8, num_nodes=1, target_cluster="cw-east"
    )
    assert (elsewhere.verdict, elsewhere.found) == (
        "no",
        "the hub hands no jobs to a cluster cw-east; it has none",
    )


def test_a_job_nobody_knows(gateway: IrisGateway) -> None:
    assert gateway.describe("/slipway/nope") is None
    assert gateway.children("/slipway/nope") == ()
    assert gateway.logs("/slipway/nope") == ()
    with pytest.raises(JobRefused, match="no job /slipway/nope"):
        gateway.cancel("/slipway/nope")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
