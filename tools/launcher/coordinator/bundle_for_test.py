"""For tests: a store with a submitted launch in it, and runtimes made of small scripts."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from tools.launcher.coordinator.attempt import Attempt, make_attempt
from tools.launcher.coordinator.children import Scheduler
from tools.launcher.coordinator.main import Assignment, coordinate
from tools.launcher.coordinator.runtime import Runtime, rehearsal_runtime
from tools.launcher.documents.canonical import canonical_json, digest_of
from tools.launcher.documents.strict_yaml import load_yaml
from tools.launcher.documents.yaml_writer import dump_yaml
from tools.launcher.iris.jobs import JobFacts
from tools.launcher.rehearsal.document_for_test import DATA_FINGERPRINT, MODEL_FINGERPRINT, document
from tools.launcher.store.bundles import BUNDLE_PREFIX, LaunchBundle, pack
from tools.launcher.store.content import put_content
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.objects import FolderObjects, Objects
from tools.launcher.store.records import RunKey

RUN_FINGERPRINT = "a1" * 32
EVALUATE_FINGERPRINT = "b2" * 32
RUN, EVALUATION = "lab/cat-count@2026.11.30", "lab/cat-count-eval@2026.11.30"
RUN_OUTPUT, EVALUATION_OUTPUT = (
    "local://marin/lab/cat-count/2026.11.30",
    "local://marin/lab/cat-count-eval/2026.11.30",
)
MODEL, DATA = "lab/qwen@2026.09.01", "lab/cats@2026.09.01"


def pinned_document(**changes: Any) -> dict[str, Any]:
    """Return the document as it is pinned: with the placeholders of the per-attempt fields."""
    return document(
        run__attempt_id="000000000000", iris__job_name="lab-cat-count-2026.11.30-000000000000", **changes
    )


def graph() -> dict[str, Any]:
    """Return graph.json of two imports, the run and its evaluation."""

    def step(
        address: str, kind: str, stage: str, fingerprint: str, deps: list[str], **config: Any
    ) -> dict[str, Any]:
        name, version = address.split("@")
        return {
            "address": address,
            "name": name,
            "version": version,
            "kind": kind,
            "stage": stage,
            "fingerprint": fingerprint,
            "identity": f"{address}:{fingerprint[:8]}",
            "adopted": False,
            "output_path": f"local://marin/{name}/{version}",
            "temporary_root": None,
            "deps": deps,
            "config": config,
        }

    return {
        "schema": 1,
        "experiment": "//experiments/cat_count:cat_count",
        "experiment_name": "cat_count",
        "stages": {"rl": RUN, "evaluate": EVALUATION},
        "default_stage": "rl",
        "steps": [
            step(
                MODEL,
                "hf_model",
                "import",
                MODEL_FINGERPRINT,
                [],
                model="qwen3-0.6b",
                relative_path="hf/step-32",
            ),
            step(
                DATA,
                "dataset",
                "import",
                DATA_FINGERPRINT,
                [],
                dataset="cats",
                relative_paths=["train.parquet", "validation.parquet"],
                env_class="cat_count",
            ),
            step(RUN, "skyrl", "rl", RUN_FINGERPRINT, [MODEL, DATA], num_nodes=2),
            step(
                EVALUATION,
                "evaluate",
                "evaluate",
                EVALUATE_FINGERPRINT,
                [RUN],
                env_class="cat_count",
                episodes=32,
                seed=5,
            ),
        ],
    }


def submitted(
    store: ObjectStore,
    *,
    stage: str = "rl",
    ordinal: int = 1,
    graph_data: bytes | None = None,
    **changes: Any,
) -> Assignment:
    """Put a bundle into the store and return the coordinator's assignment."""
    launch_yaml = dump_yaml(pinned_document(**changes))
    launch_digest = digest_of(load_yaml(launch_yaml, source="launch.yaml"))
    bundle = LaunchBundle(
        launch_yaml=launch_yaml,
        graph_json=graph_data if graph_data is not None else canonical_json(graph()),
        plan_json=b"{}",
        digest_text=f"recipe sha256:{'c' * 64}\nlaunch sha256:{launch_digest}\n",
    )
    return Assignment(
        key=RunKey(experiment="cat_count", launch_digest=launch_digest, ordinal=ordinal),
        bundle=put_content(store, BUNDLE_PREFIX, pack(bundle)),
        stage=stage,
        runtime="rehearsal",
        job_id="/tester/coordinator",
    )


def rehearsal_in_processes(object_root: Path, environ_json: str = "{}") -> Runtime:
    """Return the rehearsal with its gang as plain processes of this machine."""
    code = (
        "import sys, json\n"
        f"sys.path[:] = {[entry for entry in sys.path if entry]!r}\n"
        "from tools.launcher.rehearsal.process_launch_for_test import main\n"
        f"sys.exit(main(sys.argv[1:], json.loads({environ_json!r})))\n"
    )
    return rehearsal_runtime((sys.executable, "-c", code), f"file://{object_root}")


def scripted(launch_script: str, *, adopts: bool = True) -> Runtime:
    """Return a runtime whose launcher is a Python script and which makes nothing else."""

    def launch(path: Path) -> tuple[str, ...]:
        # -I -S: the script needs nothing, and so starts at once.
        return (sys.executable, "-I", "-S", "-c", launch_script, str(path))

    def nothing(*_: object) -> tuple[str, ...]:
        return (sys.executable, "-c", "raise SystemExit('made by nobody')")

    return Runtime(
        launch=launch,
        adopts=adopts,
        takes_values=True,
        import_artifact=nothing,
        evaluate=nothing,
    )


def finishing(attempt: Attempt, root: Path, **manifest: Any) -> str:
    """Return the script of a launcher that finishes the attempt: it writes the manifest and answers."""
    path = str(ObjectRoot(root).path(attempt.terminal_manifest_uri))
    content = {"attempt_id": attempt.attempt_id, "rehearsal": True, "global_step": 8, **manifest}
    calls = str(root / "launcher-calls")
    answer = answer_line(attempt, iris_job_id=f"/tester/coordinator/{attempt.job_name}")
    return (
        f"import os\nopen({calls!r}, 'a').write('x')\nos.makedirs(os.path.dirname({path!r}), exist_ok=True)\n"
        f"open({path!r}, 'w').write({json.dumps(content)!r})\nprint({answer!r})\n"
    )


def attempt_of(assignment: Assignment, **changes: Any) -> Attempt:
    """Return the attempt of a launch submitted with these changes."""
    return make_attempt(dump_yaml(pinned_document(**changes)), assignment.key)


class FakeIris:
    """A scheduler with at most one child; its states come one for each question, the last one stays."""

    def __init__(self, *states: str, error: str = "") -> None:
        self.states, self.error = list(states), error
        self.cancelled: list[str] = []

    def job_id_of(self, user: str, name: str) -> str:
        return f"/tester/coordinator/{name}"

    def describe(self, job_id: str) -> JobFacts | None:
        if self.cancelled:
            self.states = ["killed"]
        if not self.states:
            return None
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return JobFacts(
            job_id=job_id,
            name=job_id.rsplit("/", 1)[-1],
            state=state,
            error=self.error,
            pending_reason="",
            argv=(),
            env={},
            tasks=(),
        )

    def cancel(self, job_id: str) -> None:
        self.cancelled.append(job_id)

    def fail_this_task(self, reason: str) -> None:
        raise AssertionError("only main() does this")


def run_coordinator(
    assignment: Assignment,
    store: ObjectStore,
    objects: Objects | Path,
    runtime: Runtime,
    iris: Scheduler | Callable[[], Scheduler] | None = None,
    credentials: dict[str, str] | None = None,
) -> int:
    """Run a coordinator in this process and return its exit code."""
    scheduler = iris or FakeIris()
    return coordinate(
        assignment,
        store,
        FolderObjects(ObjectRoot(objects)) if isinstance(objects, Path) else objects,
        lambda _: runtime,
        scheduler if callable(scheduler) else lambda: scheduler,
        environ={},
        credentials={name: SecretStr(value) for name, value in (credentials or {}).items()},
    ).exit_code


def answer_line(attempt: Any, **changes: Any) -> str:
    """Return a succeeded answer for an attempt, changed as told."""
    answer = {
        "run_id": attempt.run_id,
        "attempt_id": attempt.attempt_id,
        "state": "succeeded",
        "iris_job_id": "/tester/coordinator/child",
        "iris_job_state": "succeeded",
        "launcher_commit": attempt.launcher_commit,
        "runtime_profile": attempt.runtime_profile,
        "model": "lab/qwen@2026.09.01:1512cff8",
        "failure": None,
        **changes,
    }
    return json.dumps(answer)
