"""Tests of the message of a submission against the one that Iris's own client sends."""

import json
import sys
from typing import Any

import pytest
from google.protobuf import json_format
from iris.cluster.client.remote_client import RemoteClusterClient
from iris.cluster.constraints import CLUSTER_CONSTRAINT_KEY, Constraint, ConstraintOp
from iris.cluster.types import CoschedulingConfig, Entrypoint, JobName, ResourceSpec, gpu_device
from iris.rpc import controller_pb2, job_pb2
from iris.rpc.controller_pb2 import Controller
from pydantic import SecretStr
from rigging.timing import Duration

from tools.launcher.iris.jobs import JobRequest
from tools.launcher.iris.launch_message import CLUSTER_KEY, GANG_GROUP_BY, launch_message
from tools.launcher.iris.sample_request_for_test import request

REGION = Constraint.create(key="region", op=ConstraintOp.EQ, value="us-east-02a")


class _Keeps:
    """Interceptor that keeps what is submitted, and answers in the controller's place."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def intercept_unary_sync(self, _: Any, sent: Any, __: Any) -> Any:
        self.sent.append(sent)
        return controller_pb2.Controller.LaunchJobResponse(job_id=sent.name)


def sent_by_iris(
    job: JobRequest, job_id: str, inherited: tuple[Constraint, ...]
) -> Controller.LaunchJobRequest:
    """What `RemoteClusterClient` sends for a job."""
    keeps = _Keeps()
    client = RemoteClusterClient("http://127.0.0.1:1", interceptors=[keeps])
    constraints = list(inherited)
    if job.target_cluster is not None:
        constraints.append(
            Constraint.create(key=CLUSTER_CONSTRAINT_KEY, op=ConstraintOp.EQ, value=job.target_cluster)
        )
    survive, end = (
        job_pb2.JOB_PREEMPTION_POLICY_PRESERVE_CHILDREN,
        job_pb2.JOB_PREEMPTION_POLICY_TERMINATE_CHILDREN,
    )
    client.submit_job(
        job_id=JobName.from_wire(job_id),
        entrypoint=Entrypoint(command=list(job.argv), workdir_files=dict(job.files)),
        resources=ResourceSpec(
            cpu=job.cpu,
            memory=job.memory,
            disk=job.disk,
            device=gpu_device(job.gpu_variant, job.gpus_per_task) if job.gpu_variant else None,
        ).to_proto(),
        environment=job_pb2.EnvironmentConfig(
            env_vars=job.env,
            secrets={name: value.get_secret_value() for name, value in job.secrets.items()},
            setup_scripts=job.setup_scripts,
        ),
        constraints=[constraint.to_proto() for constraint in constraints],
        coscheduling=(
            CoschedulingConfig(group_by=GANG_GROUP_BY).to_proto()
            if job.coscheduled and job.replicas > 1
            else None
        ),
        replicas=job.replicas,
        max_retries_failure=job.max_task_retries,
        max_task_failures=job.max_task_retries,
        max_retries_preemption=job.max_task_retries * 2,
        timeout=Duration.from_seconds(job.timeout_seconds),
        existing_job_policy=job_pb2.EXISTING_JOB_POLICY_ERROR,
        preemption_policy=survive if job.children_survive else end,
        priority_band=(
            job_pb2.PRIORITY_BAND_INHERIT
            if job.priority is None
            else job_pb2.PriorityBand.Value(f"PRIORITY_BAND_{job.priority.upper()}")
        ),
    )
    client.shutdown()
    (sent,) = keeps.sent
    assert isinstance(sent, controller_pb2.Controller.LaunchJobRequest)
    return sent


GANG = {"replicas": 2, "gpu_variant": "H100", "gpus_per_task": 8, "coscheduled": True, "cpu": 0.5}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        GANG,
        {"replicas": 1, "coscheduled": True},
        {"memory": "1.5 TB", "disk": "512m", "cpu": 4.0},
        {"secrets": {"HF_TOKEN": SecretStr("hidden")}, "env": {"A": "b", "C": "d"}},
        {"setup_scripts": ("set -e\nuv venv\n", "  ")},
        {"priority": "production", "children_survive": True, "max_task_retries": 3},
        {"target_cluster": " CW-Us-East "},
        {"files": {"in/a.bin": b"\x00\xff", "b": b""}},
    ],
)
def test_it_is_what_the_client_of_iris_sends(changes: dict[str, Any]) -> None:
    job = JobRequest(**request(**changes))
    expected = sent_by_iris(job, "/slipway/one", (REGION,))
    # So Iris tells a task of its job's (iris/cluster/runtime/env.py).
    inherited = json.dumps(json_format.MessageToDict(REGION.to_proto(), preserving_proto_field_name=True))
    made = launch_message(job, "/slipway/one", (inherited,))
    assert made == expected
    assert made.SerializeToString(deterministic=True) == expected.SerializeToString(deterministic=True)


def test_the_names_are_those_of_iris() -> None:
    assert CLUSTER_KEY == CLUSTER_CONSTRAINT_KEY


def test_an_amount_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ValueError, match="much"):
        launch_message(JobRequest(**request(memory="much")), "/slipway/one", ())


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
