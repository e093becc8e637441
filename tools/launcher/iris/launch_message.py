"""A submission as it goes over the wire: what marin-iris' own client would send for the same job.

`RemoteClusterClient.submit_job` (marin-iris 0.2.227, iris/cluster/client/remote_client.py) makes this message
out of modules that cost a process more than a second to import; a test compares the two, byte for byte.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tools.launcher.documents.longest_run import PREEMPTIONS_PER_RETRY
from tools.launcher.iris.jobs import JobRequest

if TYPE_CHECKING:
    from iris.rpc.controller_pb2 import Controller

GANG_GROUP_BY: Final = "leafgroup"
"""Worker attribute that holds a gang together: the network leaf of the GPU clusters, and an
attribute of every GPU worker of the embedded cluster."""

CLUSTER_KEY: Final = "cluster"
"""Constraint by which a hub hands a job to a peer (iris/cluster/constraints.py)."""

_GPU_MILLICORES_LEAST: Final = 4000
"""A task with a device gets at least that (iris/cluster/types.py, `ResourceSpec`)."""


def launch_message(
    request: JobRequest, job_id: str, inherited: Sequence[str]
) -> "Controller.LaunchJobRequest":
    """Return the message that submits a job.

    Args:
        request: the job; GPU model and count go together.
        job_id: its full id.
        inherited: placement constraints of the submitting task's job, as JSON.

    Raises:
        ValueError: an amount of memory or disk cannot be read.
    """
    from google.protobuf import json_format
    from iris.rpc import controller_pb2, job_pb2
    from iris.version import client_revision_date

    resources = job_pb2.ResourceSpecProto(
        cpu_millicores=int(request.cpu * 1000),
        memory_bytes=_bytes_of(request.memory),
        disk_bytes=_bytes_of(request.disk),
    )
    if request.gpu_variant is not None:
        resources.cpu_millicores = max(resources.cpu_millicores, _GPU_MILLICORES_LEAST)
        resources.device.gpu.variant = request.gpu_variant
        resources.device.gpu.count = request.gpus_per_task
    constraints = [json_format.Parse(text, job_pb2.Constraint()) for text in inherited]
    if request.target_cluster is not None:
        constraints.append(
            job_pb2.Constraint(
                key=CLUSTER_KEY,
                op=job_pb2.CONSTRAINT_OP_EQ,
                value=job_pb2.AttributeValue(string_value=request.target_cluster.strip().lower()),
                mode=job_pb2.CONSTRAINT_MODE_REQUIRED,
            )
        )
    message = controller_pb2.Controller.LaunchJobRequest(
        name=job_id,
        entrypoint=job_pb2.RuntimeEntrypoint(
            run_command=job_pb2.CommandEntrypoint(argv=request.argv),
            workdir_files=request.files,
            setup_commands=_setup_commands(request.setup_scripts),
        ),
        resources=resources,
        environment=job_pb2.EnvironmentConfig(
            env_vars=request.env,
            secrets={name: value.get_secret_value() for name, value in request.secrets.items()},
            setup_scripts=request.setup_scripts,
        ),
        constraints=constraints,
        replicas=request.replicas,
        max_retries_failure=request.max_task_retries,
        max_task_failures=request.max_task_retries,
        max_retries_preemption=request.max_task_retries * PREEMPTIONS_PER_RETRY,
        existing_job_policy=job_pb2.EXISTING_JOB_POLICY_ERROR,
        preemption_policy=(
            job_pb2.JOB_PREEMPTION_POLICY_PRESERVE_CHILDREN
            if request.children_survive
            else job_pb2.JOB_PREEMPTION_POLICY_TERMINATE_CHILDREN
        ),
        priority_band=(
            job_pb2.PRIORITY_BAND_INHERIT
            if request.priority is None
            else job_pb2.PriorityBand.Value(f"PRIORITY_BAND_{request.priority.upper()}")
        ),
        container_profile=job_pb2.CONTAINER_PROFILE_UNSPECIFIED,
        egress_policy=job_pb2.EGRESS_POLICY_UNSPECIFIED,
        # Said although they are empty, as the client does.
        bundle_blob=b"",
        task_image="",
        client_revision_date=client_revision_date(),
    )
    message.timeout.milliseconds = request.timeout_seconds * 1000
    # A single task has nobody to be scheduled together with.
    if request.coscheduled and request.replicas > 1:
        message.coscheduling.group_by = GANG_GROUP_BY
    return message


def _bytes_of(amount: str) -> int:
    """Iris counts in powers of two, however the unit is written."""
    import humanfriendly

    try:
        return int(humanfriendly.parse_size(amount.strip(), binary=True))
    except humanfriendly.InvalidSize as error:
        raise ValueError(str(error)) from None


def _setup_commands(scripts: Sequence[str]) -> list[str]:
    """The scripts, and after them Iris's own, which installs what its profiler needs."""
    own = [script for script in scripts if script.strip()]
    if not own:
        return []
    from iris.cluster.setup_scripts import iris_runtime_setup_script

    return [*own, iris_runtime_setup_script()]
