"""The two Iris jobs of a launch with nothing of ours in them, for comparing.

    python bare_jobs.py CLIENT outer NAME     a user: submits the parent, waits for it, says so
    python bare_jobs.py CLIENT parent NAME    the parent, inside its job: submits the gang, waits for it

CLIENT is `plain`, marin-iris' own client as its users import it, or `lean`, only the RPC stubs below it. The gang's
tasks end at once. It asks for the end every tenth of a second, the shortest that Iris's client offers.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

PARENT = {"cpu": 4.0, "memory_gib": 16, "disk_gib": 64, "replicas": 1, "gpus": 0}
GANG = {"cpu": 4.0, "memory_gib": 0.5, "disk_gib": 1, "replicas": 2, "gpus": 8}
"""The sizes of a launch of cat_count: its coordinator, and its stand-in's gang on H100 nodes."""

SECONDS = 120.0
POLL_SECONDS = 0.1

_PARENT_COMMAND = (
    "import os, runpy, sys; "
    "runpy.run_path(os.path.join(os.environ['IRIS_WORKDIR'], 'bare_jobs.py'), run_name='__main__')"
)


class Plain:
    """By marin-iris' own client."""

    def __init__(self, url: str) -> None:
        from iris.cluster.client.remote_client import RemoteClusterClient

        self._client = RemoteClusterClient(url)

    def run(self, job_id: str, command: list[str], files: dict[str, bytes], size: dict[str, Any]) -> bool:
        """Run a job to its end; True if it succeeded."""
        from iris.cluster.types import CoschedulingConfig, Entrypoint, JobName, ResourceSpec, gpu_device
        from iris.rpc import job_pb2

        gang = size["replicas"] > 1
        name = JobName.from_wire(job_id)
        self._client.submit_job(
            job_id=name,
            entrypoint=Entrypoint(command=command, workdir_files=files),
            resources=ResourceSpec(
                cpu=size["cpu"],
                memory=int(size["memory_gib"] * 2**30),
                disk=int(size["disk_gib"] * 2**30),
                device=gpu_device("H100", size["gpus"]) if size["gpus"] else None,
            ).to_proto(),
            environment=job_pb2.EnvironmentConfig(),
            coscheduling=CoschedulingConfig(group_by="leafgroup").to_proto() if gang else None,
            replicas=size["replicas"],
        )
        status = self._client.wait_for_job(name, timeout=SECONDS, poll_interval=POLL_SECONDS)
        return bool(status.state == job_pb2.JOB_STATE_SUCCEEDED)


class Lean:
    """By the stubs of the controller's RPCs."""

    def __init__(self, url: str) -> None:
        from iris.rpc.controller_connect import ControllerServiceClientSync

        self._service = ControllerServiceClientSync(address=url)

    def run(self, job_id: str, command: list[str], files: dict[str, bytes], size: dict[str, Any]) -> bool:
        """Run a job to its end; True if it succeeded."""
        from iris.rpc import job_pb2
        from iris.rpc.controller_pb2 import Controller

        message = Controller.LaunchJobRequest(
            name=job_id,
            entrypoint=job_pb2.RuntimeEntrypoint(
                run_command=job_pb2.CommandEntrypoint(argv=command), workdir_files=files
            ),
            resources=job_pb2.ResourceSpecProto(
                cpu_millicores=int(size["cpu"] * 1000),
                memory_bytes=int(size["memory_gib"] * 2**30),
                disk_bytes=int(size["disk_gib"] * 2**30),
            ),
            replicas=size["replicas"],
        )
        if size["gpus"]:
            message.resources.device.gpu.variant = "H100"
            message.resources.device.gpu.count = size["gpus"]
        if size["replicas"] > 1:
            message.coscheduling.group_by = "leafgroup"
        self._service.launch_job(message)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            states = self._service.get_job_state(Controller.GetJobStateRequest(job_ids=[job_id])).states
            if states[job_id] not in (job_pb2.JOB_STATE_PENDING, job_pb2.JOB_STATE_RUNNING):
                return bool(states[job_id] == job_pb2.JOB_STATE_SUCCEEDED)
            time.sleep(POLL_SECONDS)
        return False


def main(client: str, role: str, name: str) -> int:
    """Play one of the two roles; exit status 0 if the job that was submitted succeeded."""
    make = Plain if client == "plain" else Lean
    controller = make(os.environ["IRIS_CONTROLLER_ADDRESS"])
    if role == "outer":
        command = ["python", "-c", _PARENT_COMMAND, client, "parent", name]
        files = {"bare_jobs.py": Path(__file__).read_bytes()}
        done = controller.run(f"/slipway/{name}", command, files, PARENT)
    else:
        done = controller.run(f"/slipway/{name}/gang", ["python", "-c", ""], {}, GANG)
    print("done" if done else "failed", flush=True)
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
