"""Tests of what is asked of the scheduler, and of the sentences of its errors."""

import subprocess
import sys

import pydantic
import pytest

from tools.launcher.iris import jobs
from tools.launcher.iris.sample_request_for_test import request


def test_a_request_is_frozen() -> None:
    made = jobs.JobRequest(**request())
    with pytest.raises(pydantic.ValidationError):
        made.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "a/b"),
        ("name", "a b"),
        ("name", ""),
        ("user", ""),
        ("argv", ()),
        ("argv", ["python"]),
        ("cpu", 0.0),
        ("replicas", True),
        ("replicas", 0),
        ("timeout_seconds", 0),
        ("max_task_retries", -1),
        ("env", {"A": 1}),
        ("surprise", 1),
    ],
)
def test_a_wrong_request_is_refused(field: str, value: object) -> None:
    with pytest.raises(pydantic.ValidationError, match=field):
        jobs.JobRequest(**request(**{field: value}))


@pytest.mark.parametrize("state", ["succeeded", "failed", "killed", "worker_failed", "unschedulable"])
def test_ended_states(state: str) -> None:
    assert jobs.is_terminal(state)


@pytest.mark.parametrize("state", ["pending", "building", "running", "unspecified"])
def test_states_that_go_on(state: str) -> None:
    assert not jobs.is_terminal(state)


def test_error_sentences() -> None:
    assert str(jobs.JobNameTaken("/slipway/a-1")) == (
        "job /slipway/a-1: Iris already has a job of this name, and a name is never used twice; "
        "look at that job, or ask for a new ordinal"
    )
    assert str(jobs.JobRefused("no GPU")) == "Iris refused the request: no GPU"
    assert str(jobs.IrisUnreachable("http://127.0.0.1:1", 10.0)) == (
        "Iris at http://127.0.0.1:1 did not answer within 10 s (the Iris client's own "
        "default is 30 minutes); nothing was changed there. "
        "Check that the cluster runs and that the address is right, then run the command again"
    )
    assert str(jobs.LoginNeeded("http://127.0.0.1:1", "no token")) == (
        "Iris at http://127.0.0.1:1 wants to know who you are: no token; nothing was changed there. "
        "Log in with `iris --cluster=NAME login`, then run the command again"
    )
    assert str(jobs.ReplyLost("/slipway/a-1")) == (
        "job /slipway/a-1: the request reached Iris but the answer was lost, so the job may exist; "
        "look it up by name before submitting again"
    )


@pytest.mark.parametrize(
    "module",
    ["jobs", "capacity", "delivered_secrets", "gateway", "remote", "local.control", "local.sealing"],
)
def test_importing_does_not_import_iris(module: str) -> None:
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; import tools.launcher.iris.{module}; "
        "print(sorted({'iris', 'grpc', 'google', 'pyarrow', 'finelog'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.strip() == "[]"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
