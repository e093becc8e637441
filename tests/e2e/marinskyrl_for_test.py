"""For tests: stands in for `uv` where a coordinator runs, and does what the MarinSkyRL launcher would do.

It checks how it was called, submits the document's gang as a child job of tasks that do nothing, waits for
it, and writes to the document's buckets what the runtime leaves of a run that went well.
"""

import json
import os
import sys
import time
from pathlib import Path

from tools.launcher.coordinator.bucket_objects import BucketObjects
from tools.launcher.documents.strict_yaml import load_yaml
from tools.launcher.iris.gateway import inside_job
from tools.launcher.iris.jobs import JobRequest, is_terminal
from tools.launcher.observe.marinskyrl_leavings_for_test import leavings, result_of

POLL_SECONDS = 0.2


def install(folder: Path) -> str:
    """Put it into `folder` as `uv` and return a PATH on which it is the first."""
    program = folder / "uv"
    # The coordinator withholds PYTHONPATH from the launcher, whose libraries are not its own.
    program.write_text(
        f"#!/bin/sh\nPYTHONPATH='{os.pathsep.join(sys.path)}' exec '{sys.executable}' -m {__name__} \"$@\"\n"
    )
    program.chmod(0o755)
    return os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])


def main(argv: list[str]) -> int:
    """Launch the document of `uv run … marinskyrl iris launch --config FILE`."""
    *before, file = argv
    document = load_yaml(Path(file).read_bytes(), source=file)
    commit = document["runtime"]["launcher_commit"]
    assert before[:3] == ["run", "--isolated", "--no-project"], before
    assert before[-4:] == ["marinskyrl", "iris", "launch", "--config"], before
    assert before[-5].endswith(f"MarinSkyRL.git@{commit}"), before
    assert os.environ["WANDB_API_KEY"], "a declared credential did not reach the launcher"
    assert (document["iris"]["target_cluster"], document["iris"]["parent_cluster_config"]) == (None, None)
    allocation = document["iris"]["allocation"]
    iris = inside_job()
    job_id = iris.submit(
        JobRequest(
            name=document["iris"]["job_name"],
            user="child",
            argv=("python", "-c", "pass"),
            cpu=0.1,
            memory="64MB",
            disk="64MB",
            replicas=allocation["num_nodes"],
            gpu_variant=allocation["gpu_variant"],
            gpus_per_task=allocation["gpus_per_node"],
            files={},
            env={},
            timeout_seconds=60,
            max_task_retries=0,
            coscheduled=allocation["num_nodes"] > 1,
        )
    )
    print(f"submitted {job_id}", file=sys.stderr, flush=True)
    while (job := iris.describe(job_id)) is None or not is_terminal(job.state):
        time.sleep(POLL_SECONDS)
    assert job.state == "succeeded", job
    objects, step = BucketObjects(), document["skyrl"]["trainer"]["max_steps"]
    for uri, content in leavings(document, step=step, job_id=job_id).items():
        objects.write(uri, content)
    print(json.dumps(result_of(document, step=step, job_id=job_id), sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
