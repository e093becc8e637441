"""Embedded clusters for tests: nothing a test starts outlives it."""

import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.launcher.iris.gateway import IrisGateway
from tools.launcher.iris.jobs import JobFacts, is_terminal
from tools.launcher.iris.local import processes
from tools.launcher.iris.local.control import stop
from tools.launcher.iris.local.daemon import NONCE_VARIABLE
from tools.launcher.iris.local.runtime import RuntimePlan, plan_runtime
from tools.launcher.iris.local.state import local_paths, read_record


def plan_in_place() -> RuntimePlan:
    """What this test runs on, used where it is: a sandbox can't link, and copying wheels takes long."""
    return dataclasses.replace(plan_runtime(), copied=False, python=Path(sys.executable), python_prefix=None)


@contextlib.contextmanager
def stopped_afterwards(state: Path) -> Iterator[Path]:
    """Kill whatever runs in a state folder at the end, which an orderly stop takes seconds for, and clear up."""
    try:
        yield state
    finally:
        record = read_record(local_paths(state))
        if record is not None:
            processes.kill_carrying(NONCE_VARIABLE, record.nonce, seconds=5.0)
        stop(state)


def wait_until(true: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Wait for something to become true; AssertionError naming `what` if it does not."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def ended_job(gateway: IrisGateway, job_id: str, *, seconds: float = 60.0) -> JobFacts:
    """The facts of a job once it has ended."""
    end = time.monotonic() + seconds
    while True:
        facts = gateway.describe(job_id)
        assert facts is not None, f"no job {job_id}"
        if is_terminal(facts.state):
            return facts
        assert time.monotonic() < end, f"not within {seconds} s: the end of {facts}"
        time.sleep(0.05)
