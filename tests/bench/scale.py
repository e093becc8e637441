#!/usr/bin/env python3
"""Measures builds of many experiments: cold, nothing to do, one edit, all stale, with and without the worker.

    tests/bench/scale.py                     10, 100 and 1000 experiments; some 25 minutes on two cores
    tests/bench/scale.py --quick             10 and 100 in fewer rounds; some 5 minutes
    tests/bench/scale.py --json=scale.json   write the results
    tests/bench/scale.py --work=/tmp/scale   work there and keep it: the wheels need not be fetched again
    tests/bench/scale.py --full              run all one-shot preflights of 1000, not a sample of 50

Works on copies of this checkout as it is in the working tree, with output bases of their own and no disk cache
but its own. Needs 5 GB of disk. Prints the lines of docs/performance.md that it can judge; exit status 1 if one
does not hold.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.acceptance import told  # noqa: E402
from tests.bench.bazel_bench import BenchCheckout, Cost, copy_working_tree  # noqa: E402
from tests.bench.generated_experiments import FOLDER, GeneratedExperiment, write_experiments  # noqa: E402
from tests.bench.measuring import ROUNDS, write_results  # noqa: E402

ALL = "//experiments/..."
EMPTY = "//experiments/nothing/..."
PREFLIGHTS = f'kind("rl_preflight rule", {ALL})'
PREFLIGHT = "//tools/launcher/cli:preflight"
ONE_SHOT = "--strategy=RlPreflight=sandboxed"
SAMPLE = 50
"""One-shot preflights that stand for a thousand, except with --full."""
WARM_UP = 20
"""Builds before no-ops are measured: the server's code is compiled while it runs, as it is on a day of work."""
MANIFEST = "third_party/marinskyrl/81ae0ef7.yaml"
CARD = "third_party/models/qwen3_8b.yaml"

EDITS: tuple[tuple[str, str], ...] = (
    ("seed=", "seed=1"),
    ("resume_checkpoint_count=2", "resume_checkpoint_count=3"),
    ('"gpu_memory_utilization": 0.7', '"gpu_memory_utilization": 0.75'),
    ('"project_name": "', '"project_name": "again-'),
    ('name="users/lab/sft/', 'name="users/lab/sft/again-'),
)
"""Text of an experiment -> what stands there after the edit. Each changes the launch document."""

Say = Callable[[str], None]


def main() -> int:
    """Run the bench and print what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--work", type=Path, help="folder to work in and keep; default: a temporary one")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="10 and 100 experiments, fewer rounds")
    length.add_argument("--full", action="store_true", help="no sample of one-shot preflights")
    parser.add_argument(
        "--builds",
        type=int,
        default=0,
        metavar="N",
        help="how often all experiments are built in each way; default: as often as anything else is done",
    )
    options = parser.parse_args()
    sizes, rounds = ((10, 100), 3) if options.quick else ((10, 100, 1000), ROUNDS)
    # Facts of the machine are asked of the checkout.
    os.environ["BUILD_WORKSPACE_DIRECTORY"] = str(ROOT)
    folder = options.work or Path(tempfile.mkdtemp(prefix="slipway-scale-"))
    bench = ScaleBench(
        folder.absolute(), rounds, options.builds or rounds, sample=10**9 if options.full else SAMPLE
    )
    try:
        results = bench.run(sizes)
    finally:
        bench.close()
        if options.work is None:
            # Bazel makes its outputs read-only.
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
            shutil.rmtree(folder, ignore_errors=True)
    write_results(options.json and options.json.absolute(), "scale", results)
    print(json.dumps(results, indent=1))
    text, holds = told({"scale": results})
    print(text)
    return 0 if holds else 1


class ScaleBench:
    """Two copies of the checkout, and all that is measured on them."""

    def __init__(self, folder: Path, rounds: int, builds: int, *, sample: int) -> None:
        self._folder, self._rounds, self._builds, self._sample = folder, rounds, builds, sample
        self._began = time.perf_counter()
        self._first = self._copy("first")
        self._second = self._copy("second")
        self._changes = 0

    def run(self, sizes: tuple[int, ...]) -> dict[str, Any]:
        """Measure these numbers of experiments, smallest first, and return the results as JSON has them."""
        self._say("fetching the wheels, for both copies")
        for copy in (self._first, self._second):
            copy.build(f"{ALL[:-3]}cat_count/...")
            copy.shutdown()
        self._say("nothing to do, in a server that knows nothing but an empty package")
        of_nothing = self._no_ops(self._first, EMPTY)
        return {
            "rounds": self._rounds,
            "builds": self._builds,
            "no_op_of_nothing": of_nothing,
            "sizes": {str(size): self._size(size) for size in sizes},
        }

    def close(self) -> None:
        """End the servers."""
        for copy in (self._first, self._second):
            copy.shutdown()

    def _size(self, size: int) -> dict[str, Any]:
        experiments = self._write(size)
        say = self._saying(f"{size} experiments: ")
        measured: dict[str, Any] = {
            "cold": _series([self._cold(say, number) for number in range(self._builds)]),
            "stale": _series([self._stale(say, number) for number in range(self._builds)]),
            "repin": _series([self._repin(say, number) for number in range(self._builds)]),
        }
        say("nothing to do")
        measured["no_op"] = self._no_ops(self._first, ALL)
        measured["no_op_empty"] = self._no_ops(self._first, EMPTY)
        say("edits")
        measured |= self._edits(experiments)
        measured["memory_mb"] = self._first.memory()
        measured["one_shot"] = self._one_shot(say, experiments)
        say("loading and analysis alone")
        measured["analysis"] = self._analysis(size)
        measured["second_checkout"] = self._second_checkout(say, size)
        self._check(measured, size)
        return measured

    def _cold(self, say: Say, number: int) -> Cost:
        say(f"cold, {number + 1} of {self._builds}")
        self._first.clean()
        self._first.shutdown()
        return self._first.counted_build(ALL)

    def _stale(self, say: Say, number: int) -> Cost:
        say(f"all stale, the server just started, {number + 1} of {self._builds}")
        self._first.shutdown()
        self._touch(MANIFEST)
        return self._first.counted_build(ALL)

    def _repin(self, say: Say, number: int) -> Cost:
        say(f"another runtime commit, {number + 1} of {self._builds}")
        self._changes += 1
        manifest = self._first.folder / MANIFEST
        text = manifest.read_text(encoding="utf-8")
        commit = f"{self._changes:032x}"
        manifest.write_text(re.sub(r"(?m)^(commit: \w{8})\w{32}$", rf"\g<1>{commit}", text), encoding="utf-8")
        return self._first.counted_build(ALL)

    def _no_ops(self, copy: BenchCheckout, pattern: str) -> dict[str, Any]:
        for _ in range(WARM_UP):
            copy.build(pattern)
        counted = copy.counted_build(pattern)
        measured = [copy.build(pattern) for _ in range(self._rounds)]
        return _series(measured) | {"actions": counted.actions, "executed": counted.executed}

    def _edits(self, experiments: list[GeneratedExperiment]) -> dict[str, Any]:
        """Edits of experiments, then of a card; after each real one a process for the same experiment alone."""
        built, alone, packed = [], [], []
        for experiment in experiments[-WARM_UP:]:
            self._touch(f"{FOLDER}/{experiment.name}/experiment.py")
            self._first.build(experiment.label)
        binary = [str(self._preflight_binary())]
        for experiment, edit in zip(experiments, EDITS, strict=False):
            built.append(self._edit(experiment, edit, experiment.label))
            program, lines = self._action(experiment)
            alone.append(self._process(experiment, binary, lines))
            packed.append(self._process(experiment, program, lines))
        among_all = [
            self._edit(experiment, edit, ALL)
            for experiment, edit in zip(experiments[len(EDITS) :], EDITS, strict=False)
        ]
        comments = []
        for experiment in experiments[: self._rounds]:
            self._touch(f"{FOLDER}/{experiment.name}/experiment.py")
            comments.append(self._first.counted_build(ALL))
        folder, _, card = CARD.removesuffix(".yaml").rpartition("/")
        users = len(self._preflights(f'attr(models, "//{folder}:{card}", {PREFLIGHTS})'))
        self._touch(CARD)
        return {
            "edit": _series(built),
            "edit_among_all": _series(among_all),
            "comment": _series(comments),
            "card": _series([self._first.counted_build(ALL)]) | {"users": users},
            "process": _processes(alone),
            "packed_process": _processes(packed),
            "edit_to_process": statistics.median(
                cost.wall / wall for cost, (wall, _) in zip(built, alone, strict=True)
            ),
        }

    def _edit(self, experiment: GeneratedExperiment, edit: tuple[str, str], pattern: str) -> Cost:
        folder = f"{FOLDER}/{experiment.name}"
        source = self._first.folder / folder / "experiment.py"
        document = self._first.bin_folder() / folder / f"{experiment.name}.launch.yaml"
        text, before = source.read_text(encoding="utf-8"), document.read_bytes()
        source.write_text(text.replace(*edit, 1), encoding="utf-8")
        cost = self._first.build(pattern)
        if document.read_bytes() == before or cost.executed != 1:
            raise SystemExit(
                f"error: the edit {edit} of {experiment.label} ran {cost.executed} preflights, and its document "
                f"{'did not change' if document.read_bytes() == before else 'changed'}. Mend EDITS in scale.py"
            )
        return cost

    def _preflight_binary(self) -> Path:
        """Make the program with its runfiles, so that it can be started without Bazel."""
        self._first.bazel("run", "--noshow_progress", PREFLIGHT, "--", "--help")
        return self._first.bin_folder() / PREFLIGHT.removeprefix("//").replace(":", "/")

    def _action(self, experiment: GeneratedExperiment) -> tuple[list[str], list[str]]:
        """The program of the preflight action with its options, and the lines of its parameter file."""
        query = f'mnemonic("RlPreflight", {experiment.label}:{experiment.name})'
        (action,) = json.loads(self._first.bazel("aquery", "--output=jsonproto", query))["actions"]
        arguments: list[str] = action["arguments"]
        first = next(at for at, argument in enumerate(arguments) if argument.startswith("--"))
        return arguments[:first], arguments[first:]

    def _process(
        self, experiment: GeneratedExperiment, program: list[str], lines: list[str]
    ) -> tuple[float, float]:
        """Run a program with the action's arguments, without Bazel. Returns wall and CPU seconds."""
        with tempfile.TemporaryDirectory(dir=self._folder) as outputs:
            parameters = Path(outputs) / "parameters"
            # Bazel's outputs cannot be written over.
            own = [re.sub(r"^(--\w+_out=).*/", rf"\g<1>{outputs}/", line) for line in lines]
            parameters.write_text("\n".join(own) + "\n", encoding="utf-8")
            began = time.perf_counter()
            process = subprocess.Popen(
                [*program, f"@{parameters}"],
                cwd=self._first.folder,
                # Bytecode beside the experiment would be a further source of its package.
                env={
                    "PATH": os.environ["PATH"],
                    "PYDANTIC_DISABLE_PLUGINS": "__all__",
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "PYTHONHASHSEED": "0",
                },
                stdout=subprocess.DEVNULL,
            )
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"error: {program} for {experiment.label} ended with {process.returncode}")
        return wall, usage.ru_utime + usage.ru_stime

    def _one_shot(self, say: Say, experiments: list[GeneratedExperiment]) -> dict[str, Any]:
        """All stale once more, each preflight as a process in a sandbox; of many, some stand for all."""
        some = experiments[:: max(1, -(-len(experiments) // self._sample))]
        say(f"without the worker, {len(some)} of {len(experiments)}")
        self._touch(MANIFEST)
        cost = self._first.counted_build(
            ONE_SHOT, *(f"{experiment.label}:{experiment.name}" for experiment in some)
        )
        share = len(experiments) / len(some)
        return _series([cost]) | {
            "measured": len(some),
            "wall_of_all": cost.wall * share,
            "action_cpu_of_all": cost.cpu.actions * share,
        }

    def _analysis(self, size: int) -> dict[str, Any]:
        """What loading and analysis take in a server that was just started, by experiment."""
        walls: dict[str, float] = {}
        for name, pattern in {"one": "//experiments/cat_count/...", "all": ALL}.items():
            costs = []
            for _ in range(min(3, self._rounds)):
                self._first.shutdown()
                costs.append(self._first.build("--nobuild", pattern).wall)
            walls[name] = statistics.median(costs)
        return {**walls, "ms_each": (walls["all"] - walls["one"]) / size * 1000}

    def _second_checkout(self, say: Say, size: int) -> dict[str, Any]:
        """Fill a disk cache from the first copy, then build the second, which has built nothing, with it."""
        cache_folder = self._folder / "disk"
        shutil.rmtree(cache_folder, ignore_errors=True)
        cache = f"--disk_cache={cache_folder}"
        say("filling a disk cache")
        self._first.clean()
        filled = self._first.counted_build(cache, ALL)
        say("a second checkout with that disk cache")
        for name in (FOLDER, MANIFEST, CARD):
            _copy_over(self._first.folder / name, self._second.folder / name)
        self._second.clean()
        self._second.shutdown()
        cost = self._second.counted_build(cache, ALL)
        self._second.shutdown()
        return _series([cost]) | {
            "filling_wall": filled.wall,
            "hits": cost.runners.get("disk cache hit", 0),
        }

    def _check(self, measured: dict[str, Any], size: int) -> None:
        """See to it that what was measured is what was meant: else a number means nothing."""
        # Those of the repository are below //experiments too.
        everything = len(self._preflights(PREFLIGHTS))
        wanted = dict.fromkeys(("cold", "stale", "repin"), everything) | {"no_op": 0, "comment": 1}
        wanted |= {"one_shot": measured["one_shot"]["measured"], "card": measured["card"]["users"]}
        for name, count in wanted.items():
            ran = measured[name]["actions"].get("RlPreflight", 0)
            if ran != count:
                raise SystemExit(
                    f"error: {name} of {size} experiments ran {ran} preflights instead of {count}"
                )

    def _write(self, size: int) -> list[GeneratedExperiment]:
        return write_experiments(self._first.folder, range(size))

    def _preflights(self, query: str) -> list[str]:
        return self._first.bazel("query", query).splitlines()

    def _touch(self, name: str) -> None:
        """Change bytes of a YAML or Python file, and nothing that they say."""
        self._changes += 1
        with (self._first.folder / name).open("a", encoding="utf-8") as file:
            file.write(f"# change {self._changes}\n")

    def _copy(self, name: str) -> BenchCheckout:
        folder = self._folder / name
        if folder.exists():
            shutil.rmtree(folder)
        copy_working_tree(ROOT, folder)
        (folder / "experiments/nothing").mkdir()
        (folder / "experiments/nothing/BUILD.bazel").write_text("")
        # A version that is pinned refuses another runtime, and that is what is measured.
        for ledger in folder.glob("experiments/*/versions.lock.yaml"):
            ledger.unlink()
        return BenchCheckout(folder, self._folder / f"{name}-output")

    def _saying(self, prefix: str) -> Say:
        return lambda text: self._say(prefix + text)

    def _say(self, text: str) -> None:
        sys.stderr.write(f"[{time.perf_counter() - self._began:5.0f} s] {text}\n")
        sys.stderr.flush()


def _copy_over(source: Path, target: Path) -> None:
    """Make a file or folder the same as another."""
    if source.is_file():
        shutil.copy2(source, target)
        return
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def _processes(measured: list[tuple[float, float]]) -> dict[str, Any]:
    """Wall and CPU seconds of processes, as the results have them."""
    return {
        "wall": statistics.median(wall for wall, _ in measured),
        "cpu": statistics.median(cpu for _, cpu in measured),
        "walls": [round(wall, 4) for wall, _ in measured],
    }


def _series(costs: list[Cost]) -> dict[str, Any]:
    """Medians, and the rounds they are of; counts are of the last round."""
    return {
        "wall": statistics.median(cost.wall for cost in costs),
        "server_cpu": statistics.median(cost.cpu.server for cost in costs),
        "action_cpu": statistics.median(cost.cpu.actions for cost in costs),
        "analysis": statistics.median(cost.analysis for cost in costs),
        "walls": [round(cost.wall, 4) for cost in costs],
        "actions": costs[-1].actions,
        "runners": costs[-1].runners,
        "executed": costs[-1].executed,
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
