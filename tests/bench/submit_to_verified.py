"""Measures a launch on the embedded Iris: tools/bazel run //tests/bench:submit_to_verified

In each round, on one warm cluster (it runs, and its model and data are imported): the same two Iris jobs with
nothing of ours in them, submitted by marin-iris' own client and by the RPC stubs below it (`bare_jobs`), and a
fresh launch of cat_count from the start of its process to the line `verified: yes`. The overhead is what the launch
takes beyond the bare jobs and its training itself, the seconds from the loaded model to the written results, which
are read from the files of the run. The limit is for the stricter one, against the stubs: importing Iris's client costs
more than all that a launch does besides. Exit status: 0 if it holds, else 1.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.measuring import ROUNDS, machine_facts, median_of, write_results
from tools.launcher.catalog.load import (
    load_cluster_card,
    load_dataset_card,
    load_model_card,
    load_runtime_manifest,
)
from tools.launcher.cli.experiment_module import load_experiment
from tools.launcher.cli.plan_experiment import plan_experiment
from tools.launcher.cli.process_boundary import run_as_process
from tools.launcher.graph.ledger import VersionLedger
from tools.launcher.iris.local.control import status
from tools.launcher.rl import BuildInputs

LIMIT_SECONDS = 3.0
"""How much longer than the bare jobs and its training a launch may take."""

_ROOT = Path(__file__).parents[2]
_THIRD_PARTY = _ROOT / "third_party"
_CLUSTER = _THIRD_PARTY / "clusters/local.yaml"
_BARE = Path(__file__).with_name("bare_jobs.py")
_ARTIFACT = "slipway/cat-count-rl"
_MEASURED = ("bare", "bare_lean", "launch", "training", "launch_process")
_WORDS = {
    "bare": "the two Iris jobs, bare, by Iris's client",
    "bare_lean": "the same by the RPC stubs alone",
    "launch": "launch to `verified: yes`",
    "training": "of that the training itself",
    "launch_process": "launch to the end of its process",
}


def main() -> int:
    """Run the bench and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="submit-to-verified-") as folder:
        bench = _Bench(Path(folder))
        try:
            bench.round("warm")
            rounds = [bench.round(f"r{number}") for number in range(options.rounds)]
        finally:
            bench.stop()
    return _told(rounds, options.json)


def _told(rounds: list[dict[str, float]], path: Path | None) -> int:
    medians = {name: median_of([one[name] for one in rounds]) for name in _MEASURED}
    overhead, beyond_stubs = (
        median_of([one["launch"] - one[bare] - one["training"] for one in rounds])
        for bare in ("bare", "bare_lean")
    )
    for name, seconds in medians.items():
        print(f"{_WORDS[name]:<44}{seconds:7.2f} s")
    print(f"{'overhead, against the client':<44}{overhead:7.2f} s")
    print(f"{'overhead, against the RPC stubs alone':<44}{beyond_stubs:7.2f} s   limit {LIMIT_SECONDS} s")
    facts = machine_facts()
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    write_results(
        path,
        "submit_to_verified",
        {
            "rounds": rounds,
            "medians": medians,
            "overhead_seconds": overhead,
            "overhead_against_stubs_seconds": beyond_stubs,
            "limit": LIMIT_SECONDS,
        },
    )
    return 0 if max(overhead, beyond_stubs) < LIMIT_SECONDS else 1


class _Bench:
    """One state folder with its embedded Iris."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._state = folder / "slipway"
        self._environ = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "XDG_STATE_HOME": str(folder),
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        }
        self._inputs = _inputs()

    def round(self, name: str) -> dict[str, float]:
        """Measure everything once, each with jobs of its own; seconds by name."""
        flags = self._experiment(name)
        launched, ended = self._seconds_to("verified: yes", _launcher("launch", *flags))
        bare, _ = self._seconds_to("done", self._bare("plain", name))
        lean, _ = self._seconds_to("done", self._bare("lean", name))
        return {
            "bare": bare,
            "bare_lean": lean,
            "launch": launched,
            "training": self._training_seconds(name),
            "launch_process": ended,
        }

    def stop(self) -> None:
        """End the embedded Iris."""
        subprocess.run(_launcher("local", "stop"), env=self._environ, stdout=subprocess.DEVNULL, check=True)

    def _bare(self, client: str, name: str) -> list[str]:
        return [sys.executable, str(_BARE), client, "outer", f"{client}-{name}"]

    def _seconds_to(self, line: str, command: list[str]) -> tuple[float, float]:
        """Run a command; seconds until it printed `line`, and until it had ended."""
        environ = self._environ | {"IRIS_CONTROLLER_ADDRESS": status(self._state).url}
        said, begin, seen = [], time.perf_counter(), None
        with subprocess.Popen(
            command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            for text in process.stdout:
                said.append(text)
                if text.rstrip() == line:
                    seen = time.perf_counter() - begin
        if process.returncode != 0 or seen is None:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{''.join(said)}")
        return seen, time.perf_counter() - begin

    def _experiment(self, name: str) -> list[str]:
        """Build cat_count under a version of its own; the flags that name its outputs."""
        folder = self._folder / "experiments" / name
        folder.mkdir(parents=True)
        source = (_ROOT / "experiments/cat_count/experiment.py").read_text(encoding="utf-8")
        main_file = folder / "experiment.py"
        main_file.write_text(source.replace(f'name="{_ARTIFACT}"', f'name="{_artifact(name)}"'))
        options = {"scale": "smoke"}
        planned = plan_experiment(
            load_experiment(main_file).build(self._inputs, options),
            self._inputs,
            label="//experiments/cat_count:cat_count",
            options=options,
            stage="rl",
            smoke=None,
            ledger=VersionLedger(),
        )
        outputs: dict[str, Any] = {
            "launch": planned.launch,
            "digest": planned.digest,
            "graph": planned.graph,
            "plan": planned.plan,
        }
        for output, data in outputs.items():
            (folder / output).write_bytes(data)
        return [*(f"--{output}={folder / output}" for output in outputs), f"--cluster={_CLUSTER}"]

    def _training_seconds(self, name: str) -> float:
        """From the loaded model to the written outcome, by the times of the files of the run."""
        pattern = f"**/{_artifact(name)}/*/attempts/*/model_load/0.json"
        (loaded,) = (self._state / "objects").glob(pattern)
        outcome = loaded.parents[1] / "outcome.json"
        return outcome.stat().st_mtime - loaded.stat().st_mtime


def _artifact(name: str) -> str:
    return f"{_ARTIFACT}-{name}"


def _launcher(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tools.launcher.cli.launcher_main", *arguments]


def _inputs() -> BuildInputs:
    model = load_model_card(_read("models/qwen3_0_6b.yaml"), source="model card")
    data = load_dataset_card(_read("datasets/cat_count.yaml"), source="dataset card")
    return BuildInputs(
        version="2026.11.30",
        runtime=load_runtime_manifest(_read("marinskyrl/81ae0ef7.yaml"), source="manifest"),
        cluster=load_cluster_card(_read("clusters/local.yaml"), source="cluster card"),
        models={model.name: model},
        datasets={data.name: data},
    )


def _read(path: str) -> bytes:
    return (_THIRD_PARTY / path).read_bytes()


if __name__ == "__main__":
    sys.exit(run_as_process(main))
