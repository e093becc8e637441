"""Faults at every step of a launch: whatever happens, one more launch brings it to its one right end."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults import (
    coordinator_cases_testlib,
    launcher_cases_testlib,
    restart_cases_testlib,
    rival_cases_testlib,
    store_cases_testlib,
)
from tests.faults.cases_testlib import Runs
from tests.faults.task_zygote_testlib import task_zygote
from tests.faults.world_testlib import world
from tests.faults.zygote_testlib import Zygote
from tools.launcher.store.testing.fake_gcs_for_test import FakeGcs

CASES = {
    case.name: case
    for module in (
        restart_cases_testlib,
        launcher_cases_testlib,
        store_cases_testlib,
        rival_cases_testlib,
        coordinator_cases_testlib,
    )
    for case in module.catalogue.cases
}
LEAST_CASES = 60
AT_ONCE = 4
"""Cases at a time. Two cores have enough to do with the start of each process."""


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    chosen = [item.callspec.params["name"] for item in request.session.items if hasattr(item, "callspec")]
    cases = [CASES[name] for name in chosen]
    folder = Path(os.environ.get("TEST_TMPDIR") or tmp_path_factory.mktemp("faults"))
    with ExitStack() as stack:
        zygote = stack.enter_context(Zygote(folder / "out"))
        gcs = stack.enter_context(FakeGcs())
        tasks = stack.enter_context(
            task_zygote(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-", dir="/tmp"))))
        )
        runs = Runs()
        restarting = [case for case in cases if case.restarts]
        groups = (
            ("shared", [case for case in cases if not case.restarts], AT_ONCE),
            # A restart is seen by every case of its world. They wait for Iris more than they work.
            ("apart", restarting[::2], 1),
            ("apart-too", restarting[1::2], 1),
        )
        for name, some, at_once in groups:
            if some:
                there = stack.enter_context(world(folder / name, gcs, zygote, tasks))
                runs.start(some, there, folder / "experiments", at_once=at_once)
                stack.callback(runs.close)
        yield runs


@pytest.mark.parametrize("name", CASES)
def test_one_more_launch_converges(name: str, results: Runs) -> None:
    results.result(name)


def test_the_count_of_cases_and_jobs(results: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    done = results.done()
    coordinators = sum(len(case.coordinators) for case in done)
    children = sum(len(case.children) for case in done)
    with capsys.disabled():
        print(f"\nfault suite: {len(done)} cases, {coordinators} coordinator jobs, {children} child jobs")
    assert len(CASES) >= LEAST_CASES


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
