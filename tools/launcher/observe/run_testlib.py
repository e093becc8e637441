"""For tests: a finished two-task rehearsal run, on disk as a real one leaves it, and a scheduler to ask."""

import json
import struct
from pathlib import Path
from typing import Any

from tools.launcher.documents.canonical import digest_of, sha256_hex
from tools.launcher.iris.jobs import IrisUnreachable, JobFacts, TaskFacts
from tools.launcher.store.bundles import BUNDLE_PREFIX, LaunchBundle, pack
from tools.launcher.store.content import put_content
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.records import RunKey, RunRecord, append_event, attempt_id_of, load_record

OUT = "local://lab/cats/2026.11.30"
TMP = "local://lab/tmp/ttl=14d/skyrl/cats/2026.11.30"
MODEL = "local://lab/models/qwen/2026.11.30"
DOCUMENT: dict[str, Any] = {
    "run": {"id": "cats-2026.11.30", "attempt_id": "0" * 12, "seed": 1, "export_hf": True},
    "iris": {"allocation": {"num_nodes": 2, "gpus_per_node": 8, "gpu_variant": "H100"}},
    "artifacts": {
        "checkpoint_root": f"{TMP}/checkpoints",
        "export_root": f"{OUT}/exports",
        "attempts_root": f"{TMP}/attempts",
        "resolved_config_uri": f"{OUT}/resolved-launch.yaml",
        "terminal_manifest_uri": f"{OUT}/terminal.json",
    },
    "inputs": {
        "model": {
            "uri": MODEL,
            "identity": "models/qwen@2026.11.30:0badcafe",
            "local_path": "/tmp/marinskyrl/models/qwen",
            "tokenizer_uri": "Qwen/Qwen3-0.6B",
            "tokenizer_revision": "c" * 40,
        }
    },
    "skyrl": {"trainer": {"max_steps": 3}},
}
EVALUATION = "local://lab/cats-eval/2026.11.30"


def _step(address: str, kind: str, output_path: str, *deps: str) -> dict[str, Any]:
    fingerprint = sha256_hex(address.encode())
    return {
        "address": address,
        "kind": kind,
        "deps": list(deps),
        "fingerprint": fingerprint,
        "output_path": output_path,
    }


GRAPH: dict[str, Any] = {
    "experiment_name": "cats",
    "stages": {"rl": "cats@1"},
    "steps": [_step("qwen@1", "hf_model", MODEL), _step("cats@1", "skyrl", OUT, "qwen@1")],
}
EVALUATED = {**GRAPH, "steps": [*GRAPH["steps"], _step("cats-eval@1", "evaluate", EVALUATION, "cats@1")]}
"""A graph that goes on after the training."""

_MAKES = {"import": 1, "rl": 2, "evaluate": 3}
"""Stage -> how many steps of a graph it makes."""

COORDINATOR_ID = "/slipway/cats-1"
CHILD_ID = "/slipway/cats-1/child"


def safetensors(values: list[float]) -> bytes:
    """Return a safetensors file with one float64 tensor."""
    header = json.dumps(
        {"w": {"dtype": "F64", "shape": [len(values)], "data_offsets": [0, 8 * len(values)]}}
    ).encode()
    return struct.pack("<Q", len(header)) + header + struct.pack(f"<{len(values)}d", *values)


class Run:
    """One run in a folder: store, objects and record. Attributes are what a test changes and reads."""

    def __init__(
        self, folder: Path, document: dict[str, Any] = DOCUMENT, stage: str = "rl", **intent: Any
    ) -> None:
        self.store = FileStore(folder / "store")
        self.root = ObjectRoot(folder / "objects")
        self.key = RunKey(experiment="cats", launch_digest=digest_of(document), ordinal=1)
        self.attempt = attempt_id_of(self.key)
        bundle = LaunchBundle(
            launch_yaml=json.dumps(document).encode(),
            graph_json=json.dumps(EVALUATED if stage == "evaluate" else GRAPH).encode(),
            plan_json=b"{}",
            digest_text=f"recipe sha256:{'b' * 64}\nlaunch sha256:{self.key.launch_digest}\n",
        )
        digest = put_content(self.store, BUNDLE_PREFIX, pack(bundle))
        artifacts = [step["address"] for step in EVALUATED["steps"]][: _MAKES.get(stage, 2)]
        self.event("intent", job_name="cats-1", bundle=digest, stage=stage, artifacts=artifacts, **intent)

    def event(self, kind: Any, **facts: Any) -> None:
        """Append an event."""
        append_event(self.store, self.key, kind, "ann@desk", facts)

    def record(self) -> RunRecord:
        """Return the record as it is."""
        record = load_record(self.store, self.key)
        assert record is not None
        return record

    def path(self, uri: str) -> Path:
        """Return the file of a URI."""
        return self.root.path(uri)

    def write(self, uri: str, content: Any) -> None:
        """Write bytes as they are, anything else as JSON."""
        path = self.path(uri)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())

    def change(self, uri: str, **fields: Any) -> None:
        """Replace fields of a JSON file."""
        self.write(uri, {**json.loads(self.path(uri).read_bytes()), **fields})

    @property
    def attempt_uri(self) -> str:
        """Folder of the attempt."""
        return f"{TMP}/attempts/{self.attempt}"

    def submit(self) -> None:
        """Record submission, start and child."""
        self.event("submitted", job_id=COORDINATOR_ID)
        self.event("coordinator_started", job_id=COORDINATOR_ID)
        self.event("step_started", step="cats@1")
        self.event("child_submitted", job_id=CHILD_ID, step="cats@1", attempt_id=self.attempt)

    def train(self) -> None:
        """Leave what a good rehearsal leaves."""
        loaded, trained = safetensors([0.0, 0.0]), safetensors([1.0, 2.0])
        model = DOCUMENT["inputs"]["model"]
        self.write(f"{MODEL}/model.safetensors", loaded)
        for rank in range(2):
            self.write(
                f"{self.attempt_uri}/joined/{rank}.json", {"rank": rank, "world_size": 2, "at_step": 0}
            )
            self.write(
                f"{self.attempt_uri}/model_load/{rank}.json",
                {
                    "rank": rank,
                    "declared_path": model["local_path"],
                    "source_uri": MODEL,
                    "identity": model["identity"],
                    "weights_sha256": sha256_hex(loaded),
                    "tokenizer_revision": model["tokenizer_revision"],
                },
            )
        lines = [
            {"step": step, "reward_mean": step / 4, "loss": 0.1, "tokens": 64, "optimizer_updates": step}
            for step in (1, 2, 3)
        ]
        self.write(
            f"{self.attempt_uri}/metrics.jsonl", b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        )
        checkpoint, export = f"{TMP}/checkpoints/global_step_3", f"{OUT}/exports/global_step_3"
        self.write(f"{checkpoint}/policy.safetensors", trained)
        self.write(f"{checkpoint}/optimizer.safetensors", loaded)
        self.write(
            f"{checkpoint}/trainer_state.json",
            {
                "global_step": 3,
                "policy_sha256": sha256_hex(trained),
                "optimizer_sha256": sha256_hex(loaded),
            },
        )
        self.write(f"{TMP}/checkpoints/latest_ckpt_global_step.txt", b"3\n")
        self.write(f"{export}/config.json", {"slipway_rehearsal": True})
        self.write(f"{export}/model.safetensors", trained)
        self.write(f"{export}/tokenizer_config.json", {})
        self.write(
            f"{OUT}/resolved-launch.yaml", {"run": {"id": "cats-2026.11.30", "attempt_id": self.attempt}}
        )
        self.write(f"{self.attempt_uri}.json", {"state": "succeeded"})
        self.write(
            f"{OUT}/terminal.json",
            {
                "run_id": "cats-2026.11.30",
                "attempt_id": self.attempt,
                "global_step": 3,
                "checkpoint": checkpoint,
                "export": export,
                "task_count": 2,
                "rehearsal": True,
            },
        )

    def make(self, address: str, files: dict[str, bytes], **fields: Any) -> None:
        """Leave what a good import or evaluation leaves.

        Args:
            address: of the step.
            files: name -> content.
            fields: of the artifact record, those that are to be others.
        """
        step = next(step for step in EVALUATED["steps"] if step["address"] == address)
        name, _, version = address.partition("@")
        for path, content in files.items():
            self.write(f"{step['output_path']}/{path}", content)
        record = {
            "name": name,
            "version": version,
            "kind": step["kind"],
            "fingerprint": step["fingerprint"],
            "rehearsal": True,
            "files": {path: sha256_hex(content) for path, content in files.items()},
        }
        self.write(f"{step['output_path']}/.artifact.json", record | fields)

    def finish(self) -> None:
        """Record the end."""
        self.event("step_finished", step="cats@1")
        self.event("succeeded")


def finished_run(folder: Path, document: dict[str, Any] = DOCUMENT) -> Run:
    """Return a run that went well."""
    run = Run(folder, document)
    run.submit()
    run.train()
    run.finish()
    return run


class FakeIris:
    """A scheduler with fixed answers; `describe` may be scripted by replacing `jobs`."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobFacts | None] = {}
        self.reachable = True
        self.asked: list[str] = []

    def put(
        self, job_id: str, state: str, *, tasks: int = 1, pending_reason: str = "", error: str = ""
    ) -> None:
        """Give a job this state."""
        exit_code = None if state in ("pending", "running") else 1
        self.jobs[job_id] = JobFacts(
            job_id=job_id,
            name=job_id.rsplit("/", 1)[-1],
            state=state,
            error=error,
            pending_reason=pending_reason,
            argv=(),
            env={},
            tasks=tuple(
                TaskFacts(index=index, state=state, exit_code=exit_code, error="", attempts=1)
                for index in range(tasks)
            ),
        )

    def describe(self, job_id: str) -> JobFacts | None:
        """Return the job's facts."""
        self.asked.append(job_id)
        if not self.reachable:
            raise IrisUnreachable("http://127.0.0.1:1", 10.0)
        return self.jobs.get(job_id)
