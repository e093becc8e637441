"""Launching to a cluster of others: an embedded Iris reached by its address, and a bucket over HTTP."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import marinskyrl_for_test
from tests.e2e.launcher_testlib import here
from tools.launcher.cli import exit_codes, pin_command
from tools.launcher.cli.built_experiment_testlib import CLUSTER, build, source_of
from tools.launcher.cli.commands import run as run_command
from tools.launcher.iris.gateway import connect
from tools.launcher.iris.local.cluster_for_test import plan_in_place, stopped_afterwards
from tools.launcher.iris.local.control import ensure_running
from tools.launcher.store.artifact_record import ArtifactRecord, artifact_record_bytes
from tools.launcher.store.testing.fake_gcs_for_test import BUCKET, FakeGcs

KEY = "hidden-6f1d0b9e8c"
NO_HUB = {
    "target_cluster=inputs.cluster.name": "target_cluster=None",
    'parent_cluster_config="lib/iris/config/marin.yaml"': "parent_cluster_config=None",
}
"""The embedded Iris here is nobody's hub."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of an Iris that stands for a cluster of others; its tasks find the stand-in for the runtime."""
    home = tmp_path_factory.mktemp("cluster")
    with stopped_afterwards(home / "slipway") as state:
        environ = {**os.environ, "PATH": marinskyrl_for_test.install(home)}
        yield ensure_running(state, plan=plan_in_place(), environ=environ).url


@pytest.fixture(scope="module")
def unfederated(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """gsm8k_grpo, handed to its cluster without a hub: the embedded Iris here is nobody's hub."""
    ledger = Path("experiments/gsm8k_grpo/versions.lock.yaml")
    files = build(tmp_path_factory.mktemp("unfederated"), source_of(edits=NO_HUB), ledger=ledger)
    return [*(f"--{flag}={path}" for flag, path in files.items()), "--budget=experiments/budget.yaml"]


def test_a_cluster_of_others_gets_one_job_and_the_store_everything(cluster, tmp_path, unfederated):
    """The embedded Iris stands for the cluster: reached by its address, as one behind a tunnel would be."""
    elsewhere = tmp_path / "slipway"
    with FakeGcs() as bucket:
        # The launcher writes the first two events; the third is the coordinator's, which is held.
        coordinator = bucket.hold(method="insert", key=r"/events/0003\.json$", when="before", count=3)
        arguments = [
            *unfederated,
            f"--controller={cluster}",
            f"--store={bucket.store_url('team')}",
            "--allow-dirty",
            "--detach",
        ]
        variables = {"STORAGE_EMULATOR_HOST": bucket.url, "WANDB_API_KEY": KEY}
        asked = here(elsewhere, "launch", *arguments, **variables)
        assert asked.returncode == 3, asked.stdout + asked.stderr
        assert "there is no terminal to ask at; nothing was submitted. To agree beforehand: " in asked.stderr
        assert " //experiments/gsm8k_grpo:launch -- --store=" in asked.stderr and " --yes\n" in asked.stderr
        assert bucket.objects == {}

        first = here(elsewhere, "launch", *arguments, "--yes", **variables)
        assert first.returncode == 0, first.stdout + first.stderr
        (job_id,) = re.findall(r"^coordinator: (\S+) \(submitted\)$", first.stdout, re.MULTILINE)
        follow = f"/1 --store={bucket.store_url('team')} --controller={cluster}`"
        assert " -- watch gsm8k_grpo/" in first.stdout and follow in first.stdout
        again = here(elsewhere, "launch", *arguments, "--yes", **variables)
        assert again.returncode == 0, again.stdout + again.stderr
        assert f"coordinator: {job_id} (already submitted: following it)" in again.stdout.splitlines()
        with connect(cluster) as gateway:
            ours = [job for job in gateway.unfinished_jobs() if "gsm8k_grpo" in job]
            assert ours == [job_id]
            job = gateway.describe(job_id)
            assert job is not None and "--credential=WANDB_API_KEY" in job.argv
            assert "--runtime=marinskyrl" in job.argv and not any("object-root" in word for word in job.argv)
            gateway.cancel(job_id)
        coordinator.cut()
        kept = {**bucket.objects}
    names = [re.sub(r"[0-9a-f]{64}", "…", name) for name in kept]
    version = "team/versions/users/lab/tests/qwen06-gsm8k-rl/2026.09.21"
    assert [name for name in names if "/000" not in name or "/0001" in name or "/0002" in name] == [
        "team/bundles/sha256/…",
        f"{version}/claims/0001.json",
        f"{version}/turns/0001.json",
        "team/runs/gsm8k_grpo/…/1/events/0001.json",
        "team/runs/gsm8k_grpo/…/1/events/0002.json",
        "team/runs/gsm8k_grpo/…/1/provenance.json",
    ]
    intent = json.loads(next(data for name, data in kept.items() if name.endswith("events/0001.json")))[
        "facts"
    ]
    assert (intent["object_root"], intent["runtime"]) == (None, "marinskyrl")
    assert intent["route"]["controller"] == cluster
    assert intent["overrides"].keys() == {"clean-tree"}
    said = [done.stdout + done.stderr for done in (asked, first, again)]
    assert not any(KEY in text for text in [*said, *(str(data) for data in kept.values())])
    assert not (elsewhere / "store").exists()


SMOKE = "//experiments/gsm8k_grpo:gsm8k_smoke"
STORAGE = {"s3://marin-us-east-02a": f"gs://{BUCKET}", "s3://marin-us-east-08a": f"gs://{BUCKET}"}


def on_this_storage(card: Path, folder: Path) -> Path:
    """A copy of a card, with the one bucket that there is here."""
    text = card.read_text()
    for real, ours in STORAGE.items():
        text = text.replace(real, ours)
    folder.mkdir(exist_ok=True)
    copy = folder / card.name
    copy.write_text(text)
    return copy


def built(folder: Path, nodes: int, **target: str) -> list[str]:
    """The files of the experiment with that many nodes, pinned, with everything in that bucket."""
    cards = folder.parent / "cards"
    model, dataset = (
        on_this_storage(Path(f"third_party/{kind}"), cards)
        for kind in ("models/qwen3_0_6b.yaml", "datasets/gsm8k.yaml")
    )
    wanted: dict[str, Any] = {
        "cluster": on_this_storage(CLUSTER, cards),
        "model": model,
        "dataset": dataset,
        **target,
    }
    source, ledger = source_of(nodes, edits=NO_HUB), folder.parent / f"{folder.name}.lock.yaml"
    files = build(folder, source, **wanted)
    flags = [f"--{name}={files[name]}" for name in ("launch", "digest", "graph")]
    assert run_command(["pin", *flags, f"--ledger={ledger}"]) == exit_codes.OK
    files = build(folder, source, ledger=ledger, **wanted)
    return [*(f"--{flag}={path}" for flag, path in files.items()), "--budget=experiments/budget.yaml"]


def put_inputs(bucket: FakeGcs, graph: Path) -> None:
    """Put the records of the artifacts that an experiment adopts where they would be."""
    for step in json.loads(graph.read_bytes())["steps"]:
        if step["adopted"]:
            fields = {name: step[name] for name in ("name", "version", "kind", "fingerprint")}
            record = artifact_record_bytes(ArtifactRecord(**fields, rehearsal=False))
            bucket.put(f"{step['output_path'].removeprefix(f'gs://{BUCKET}/')}/.artifact.json", record)


def test_a_real_run_is_verified_and_vouches_for_a_large_one(cluster, tmp_path, monkeypatch):
    """Two nodes train, four may then be asked for."""
    monkeypatch.setenv(pin_command.WORKSPACE, str(tmp_path))
    smoke = built(tmp_path / "smoke", 2, label=SMOKE)
    large = built(tmp_path / "large", 4, smoke=SMOKE, version="2026.09.22")
    with FakeGcs() as bucket:
        put_inputs(bucket, tmp_path / "smoke" / "graph")
        store = f"--store={bucket.store_url('team')}"
        variables = {"STORAGE_EMULATOR_HOST": bucket.url, "WANDB_API_KEY": KEY}
        arguments = [store, f"--controller={cluster}", "--allow-dirty"]
        done = here(tmp_path / "ann" / "slipway", "launch", *smoke, *arguments, "--yes", **variables)
        assert done.returncode == exit_codes.OK, done.stdout + done.stderr
        assert "verified: yes" in done.stdout.splitlines()
        for fact in (
            "tasks_joined: 2 of 2 tasks succeeded",
            "model_loaded_as_declared: the trainer's policy is tests/qwen06-sft@2026.09.01:1512cff8 from ",
            "optimizer_steps_advanced: step 8 of 8 planned",
            "terminal_artifacts_exist: all of them, at step 8",
        ):
            assert f"  yes  {fact}" in done.stdout, done.stdout
        kept = set(bucket.objects)
        # Anybody with a way to the bucket asks; nothing new is found and so nothing is written.
        for command in ("verify", "status"):
            asked = here(tmp_path / "bob" / "slipway", command, "gsm8k_smoke", store, **variables)
            assert asked.returncode == exit_codes.OK and "verified: yes" in asked.stdout, asked.stderr
        assert "steps: 8/8" in asked.stdout and "note: " not in asked.stdout
        assert set(bucket.objects) == kept
        more = here(tmp_path / "ann" / "slipway", "launch", *large, *arguments, **variables)
        assert more.returncode == exit_codes.REFUSED
        assert "there is no terminal to ask at; nothing was submitted." in more.stderr, more.stdout
        assert re.search(r"^ *smoke +passed +gsm8k_smoke/[0-9a-f]{8}/1 of \S+ is verified", more.stdout, re.M)
        assert not any(KEY.encode() in data for data in bucket.objects.values())


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
