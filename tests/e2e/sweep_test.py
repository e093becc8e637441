"""A sweep on a real embedded Iris: interrupted after its first point, it goes on and submits none twice."""

import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.launcher_testlib import ended, here, started
from tools.launcher.cli.sweep_testlib import write_sweep
from tools.launcher.iris.local.cluster_for_test import stopped_afterwards
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import list_records


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    with stopped_afterwards(tmp_path / "slipway") as folder:
        yield folder


def submissions(state: Path) -> list[str]:
    """The experiment of each submission on record."""
    return [
        record.key.experiment
        for record in list_records(FileStore(state / "store"))
        for event in record.events
        if event.kind == "submitted"
    ]


def test_an_interrupted_sweep_goes_on_where_it_stopped(state, tmp_path):
    status, flags = write_sweep(tmp_path, ("1", "2"))
    assert status == 0
    first = started(state, "sweep-launch", *flags, "--at-most=1")
    while not (line := first.stdout.readline()).endswith("(submitted)\n"):
        assert line, first.stderr.read()
    first.send_signal(signal.SIGINT)
    done = ended(first)
    assert done.returncode == 130, done.stdout + done.stderr
    assert re.fullmatch(r"\ninterrupted: \d submitted, \d left or being submitted, .*\n", done.stderr)
    # On a machine that is slow enough the second was submitted meanwhile.
    assert submissions(state)[0] == "seeds_seed_1"

    done = here(state, "sweep-launch", *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^  seed_1 .* (running|succeeded|verified) seeds_seed_1/", done.stdout, re.MULTILINE), (
        done.stdout
    )
    assert done.stdout.splitlines()[-1] == "2 verified"
    assert sorted(submissions(state)) == ["seeds_seed_1", "seeds_seed_2"]

    events = [record.events for record in list_records(FileStore(state / "store"))]
    again = here(state, "sweep-launch", *flags)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "to be launched: 0 of 2 points, 0 GPU-hours at most." in again.stdout.splitlines()
    assert [record.events for record in list_records(FileStore(state / "store"))] == events


def test_a_sweep_of_a_cluster_of_others_is_rehearsed_point_by_point(state, tmp_path):
    status, flags = write_sweep(tmp_path, ("1", "2"), local=False)
    assert status == 0
    some = here(state, "sweep-rehearse", *flags, "--only=seed_2")
    assert some.returncode == 0, some.stdout + some.stderr
    assert some.stdout.splitlines()[-1] == "1 verified"

    done = here(state, "sweep-rehearse", *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("to be rehearsed: 1 of 2 points, ") for line in lines), done.stdout
    assert "seed_1: verified (2/2 over)" in lines and lines[-1] == "2 verified"
    assert submissions(state) == ["seeds_seed_2", "seeds_seed_1"]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
