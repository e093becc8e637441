"""Tests of what a process reads of its own task, against Iris's own reading."""

import json
import sys

import pytest
from google.protobuf import json_format
from iris.cluster.client import job_info
from iris.rpc import job_pb2

from tools.launcher.iris.this_task import this_task

CONSTRAINT = {
    "key": "region",
    "op": "CONSTRAINT_OP_EQ",
    "value": {"string_value": "us-east-02a"},
    "mode": "CONSTRAINT_MODE_REQUIRED",
}
TASK = {
    "IRIS_TASK_ID": "/slipway/cat_count-1/child/3:2",
    "IRIS_CONTROLLER_ADDRESS": "http://127.0.0.1:10000",
    "IRIS_TASK_TOKEN": "of-this-task",
    "IRIS_JOB_CONSTRAINTS": json.dumps([CONSTRAINT]),
}


@pytest.mark.parametrize(
    "changes",
    [{}, {"IRIS_TASK_ID": "/slipway/one/0"}, {"IRIS_TASK_TOKEN": ""}, {"IRIS_JOB_CONSTRAINTS": ""}],
)
def test_it_reads_what_iris_reads(monkeypatch: pytest.MonkeyPatch, changes: dict[str, str]) -> None:
    environ = TASK | changes
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    job_info.set_job_info(None)
    theirs, ours = job_info.get_job_info(), this_task(environ)
    job_info.set_job_info(None)
    assert theirs is not None and ours is not None
    assert ours.job_id == theirs.job_id.to_wire()
    assert ours.attempt_id == theirs.task_attempt.to_wire()
    assert ours.controller_url == theirs.controller_address
    assert (ours.token.get_secret_value() if ours.token else None) == (theirs.task_token or None)
    assert [json_format.Parse(text, job_pb2.Constraint()) for text in ours.constraints] == [
        constraint.to_proto() for constraint in theirs.constraints
    ]


@pytest.mark.parametrize("task_id", ["", "nonsense", "/slipway/0", "/slipway/job/x", "/slipway//0", "/ /a/0"])
def test_what_is_no_task_is_none(task_id: str) -> None:
    assert this_task(TASK | {"IRIS_TASK_ID": task_id}) is None


def test_a_task_without_a_controller_is_none() -> None:
    assert this_task({"IRIS_TASK_ID": TASK["IRIS_TASK_ID"]}) is None


def test_the_token_is_not_shown() -> None:
    assert "of-this-task" not in repr(this_task(TASK))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
