"""Submitting to the embedded Iris: a real controller, real names, real tasks."""

import json
import sys

import pytest

from tools.launcher.documents.canonical import digest_of, sha256_hex
from tools.launcher.iris.gateway import connect
from tools.launcher.iris.jobs import is_terminal
from tools.launcher.iris.local.cluster_for_test import ended_job, plan_in_place, stopped_afterwards
from tools.launcher.iris.local.control import ensure_running
from tools.launcher.store.bundles import LaunchBundle
from tools.launcher.store.deterministic_zip import write_zip
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunState, load_record
from tools.launcher.submit.code_archive import CodeArchive
from tools.launcher.submit.machine import SubmitState, submit_once
from tools.launcher.submit.request import LaunchFacts
from tools.launcher.submit.settle import settle
from tools.launcher.submit.source_state import SourceState

ALLOCATION = {"num_nodes": 1, "gpus_per_node": 8, "gpu_variant": "H100"}
SOURCE = SourceState(
    who="ann@desk", when="2026-11-30T12:00:00Z", source_commit=None, dirty=None, note="a test"
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with (
        stopped_afterwards(tmp_path_factory.mktemp("state")) as state,
        connect(ensure_running(state, plan=plan_in_place()).url) as opened,
    ):
        yield opened


def coordinator_that(source):
    """An archive whose coordinator does just this."""
    files = {"tools/launcher/coordinator/main.py": source.encode()}
    for folder in ("tools", "tools/launcher", "tools/launcher/coordinator"):
        files[f"{folder}/__init__.py"] = b""
    data = write_zip(files)
    return CodeArchive(data=data, sha256=sha256_hex(data))


WAITS = coordinator_that("import time\ntime.sleep(600)\n")


def launch(store, gateway, name, *, code=WAITS, ordinal=1):
    document = {
        "runtime": {"launcher_commit": "c" * 40},
        "iris": {"allocation": ALLOCATION},
        "of": name,
    }
    graph = {
        "experiment_name": name,
        "stages": {"rl": "run@2026.11.30"},
        "steps": [
            {
                "address": "run@2026.11.30",
                "name": f"{name}/run",
                "version": "2026.11.30",
                "kind": "skyrl",
                "fingerprint": sha256_hex(name.encode()),
                "adopted": False,
                "deps": [],
                "config": {"runtime_commit": "c" * 40},
            }
        ],
    }
    bundle = LaunchBundle(
        launch_yaml=json.dumps(document).encode(),
        graph_json=json.dumps(graph).encode(),
        plan_json=b"{}",
        digest_text=f"recipe sha256:{'b' * 64}\nlaunch sha256:{digest_of(document)}\n",
    )
    facts = LaunchFacts(
        experiment_name=name,
        stage="rl",
        default_stage="rl",
        ordinal=ordinal,
        cluster="local",
        store_url=store.url,
        object_root_url="file:///objects",
        coordinator_timeout_hours=1,
    )
    return submit_once(store, gateway, bundle, facts, SOURCE, code, secrets={})


def test_a_coordinator_that_dies_silently_ends_as_a_failed_attempt(tmp_path, gateway):
    store = FileStore(tmp_path)
    first = launch(store, gateway, "dies", code=coordinator_that("raise SystemExit(7)"))
    ended_job(gateway, first.job_id)
    again = launch(store, gateway, "dies")
    assert again.state is SubmitState.FAILED_BEFORE
    assert f"the coordinator {first.job_id} ended as 'failed' without recording a result" in again.message
    assert "task 0 exit code 7" in again.message
    relaunched = launch(store, gateway, "dies", ordinal=2)
    assert relaunched.state is SubmitState.SUBMITTED
    assert relaunched.job_id == first.job_id.removesuffix("-1") + "-2"
    gateway.cancel(relaunched.job_id)


def test_a_cancelled_coordinator_is_settled(tmp_path, gateway):
    store = FileStore(tmp_path)
    outcome = launch(store, gateway, "cancelled")
    assert settle(store, gateway, outcome.record, "ann@desk") == outcome.record
    gateway.cancel(outcome.job_id)
    ended_job(gateway, outcome.job_id)
    settled = settle(store, gateway, outcome.record, "ann@desk")
    assert settled.state is RunState.FAILED
    assert f"the coordinator {outcome.job_id} ended as 'killed' without recording a result" in settled.reason
    assert load_record(store, outcome.key) == settled


def test_a_job_of_our_name_that_is_not_ours_is_left_alone(tmp_path, gateway):
    mine = launch(FileStore(tmp_path / "mine"), gateway, "taken")
    other = launch(FileStore(tmp_path / "other"), gateway, "taken")
    assert other.state is SubmitState.CONFLICT
    assert (
        f"job {mine.job_id} runs this launch and records in the store file://{tmp_path}/mine" in other.message
    )
    assert not is_terminal(gateway.describe(mine.job_id).state)
    gateway.cancel(mine.job_id)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
