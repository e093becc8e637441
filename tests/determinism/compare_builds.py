#!/usr/bin/env python3
"""Builds all experiments in several ways and compares every output byte.

    tests/determinism/compare_builds.py [--keep]

Ways: a worker of many requests at once or of one, sandboxed or not; one process each, in
linux-sandbox or without; other output bases, another checkout at another path, another hash seed.
Each way has to run every preflight again, by the runner that it says. Then experiments that do what
no build action may are refused in the same words by the worker and by one process.

Run from anywhere inside a checkout; needs about a gigabyte of disk for the time it runs. Ends with
`N passed, N failed`, one comparison each.
"""

import argparse
import dataclasses
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

TARGETS = "//experiments/..."
OUTPUT_GROUPS = "--output_groups=launch,graph,plan,report,digest"
OUTPUTS = ("*.launch.yaml", "*.graph.json", "*.plan.json", "*.report.html", "*.digest")
NO_CACHE = ("--disk_cache=", "--remote_cache=")  # of a personal rc file: it would run nothing
RULE = "tools/launcher/private/preflight.bzl"
MISDEEDS = {
    # There is such a file in the checkout, but no target of the experiment names it.
    "experiments/cat_count/experiment.py": (
        'open("experiments/budget.yaml")',
        " the experiment reads 'experiments/budget.yaml', which is not there. A build action reads the files that its",
    ),
    "experiments/gsm8k_grpo/experiment.py": (
        'import socket; socket.create_connection(("127.0.0.1", 9))',
        " the experiment looks up the address of '127.0.0.1'. A build action has no network.",
    ),
}
"""Experiment -> code that is added to it, and what is said of that."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", action="store_true", help="keep the folders, to look at a difference")
    keep = parser.parse_args().keep
    checkout = Path(__file__).resolve().parents[2]
    folder = Path(tempfile.mkdtemp(prefix="slipway-determinism-"))
    try:
        return compare(checkout, folder)
    finally:
        if keep:
            print(f"kept: {folder}")
        else:
            # Bazel makes its outputs read-only.
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
            shutil.rmtree(folder, ignore_errors=True)


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to build.

    Attributes:
        name: how the output calls it.
        checkout: where.
        base: the output base, None for the one that Bazel chooses.
        flags: of the build.
        runner: what Bazel calls the runner of the preflights.
        worker: the kind of worker that is started, None if one may be there or none is asked for.
        seed: PYTHONHASHSEED of the action.
    """

    name: str
    checkout: Path
    base: Path | None
    flags: tuple[str, ...] = ()
    runner: str = "worker"
    worker: str | None = None
    seed: str = "0"


def compare(checkout: Path, folder: Path) -> int:
    """Build in every way below `folder` and print how each compares with the first."""
    other = folder / "another" / "checkout"
    copy_tracked(checkout, other)
    second, third = folder / "base-2", folder / "base-3"
    one_process, local = ("--strategy=RlPreflight=sandboxed",), ("--strategy=RlPreflight=local",)
    sandboxed = ("--worker_sandboxing", "--experimental_worker_multiplex_sandboxing")
    many = "non-sandboxed RlPreflight multiplex-worker"
    ways = [
        # The first is the checkout's own output base, which has its wheels already.
        Way("worker", checkout, None),
        Way("one process in linux-sandbox", checkout, None, one_process, "linux-sandbox"),
        Way("one process without a sandbox", checkout, None, local, "local"),
        Way("another output base", checkout, second, worker=many),
        Way(
            "worker in Bazel's sandbox",
            checkout,
            second,
            sandboxed,
            worker="sandboxed RlPreflight multiplex-worker",
        ),
        Way(
            "worker of one request at a time",
            checkout,
            second,
            ("--noworker_multiplex",),
            worker="non-sandboxed RlPreflight worker",
        ),
        Way("another checkout", other, third, worker=many),
        Way("PYTHONHASHSEED=1", other, third, worker=many, seed="1"),
        Way("PYTHONHASHSEED=2, one process", other, third, one_process, "linux-sandbox", seed="2"),
    ]
    results: list[bool] = []
    first: dict[str, str] = {}
    try:
        for way in ways:
            digests = build(way)
            if not first:
                first = digests
                print(f"{way.name}: {len(digests)} outputs", flush=True)
                continue
            different = sorted(
                path for path in first.keys() | digests.keys() if first.get(path) != digests.get(path)
            )
            results.append(not different)
            print(
                f"{way.name}: {'equal' if not different else 'DIFFERENT: ' + ', '.join(different)}",
                flush=True,
            )
        misbehave(other)
        for name, flags in (("worker", ()), ("one process", one_process)):
            missing = missing_refusals(other, third, flags)
            results.append(not missing)
            print(
                f"refused by {name}: {'all' if not missing else 'NOT SAID: ' + '; '.join(missing)}",
                flush=True,
            )
    finally:
        for where, base in ((checkout, second), (other, third)):
            bazel(where, base, "shutdown")
    print(f"{sum(results)} passed, {results.count(False)} failed")
    return int(not all(results) or not first)


def build(way: Way) -> dict[str, str]:
    """Build all experiments and return path below bazel-bin -> SHA-256 of every output."""
    set_hash_seed(way.checkout, way.seed)
    bin_folder = Path(succeed(way, "info", *way.flags, "bazel-bin").stdout.strip())
    # A way to run an action is no part of its key: without this, Bazel would find everything built.
    for path in outputs(bin_folder):
        path.unlink()
    with tempfile.NamedTemporaryFile(suffix=".json") as spawns:
        flags = (*way.flags, f"--execution_log_json_file={spawns.name}")
        log = succeed(
            way, "build", "--noshow_progress", "--worker_verbose", *NO_CACHE, OUTPUT_GROUPS, *flags, TARGETS
        )
        runners = runners_of(Path(spawns.name).read_text(encoding="utf-8"))
    digests = {
        path.relative_to(bin_folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in outputs(bin_folder)
    }
    experiments = [path for path in digests if path.endswith(".digest")]
    if not experiments or runners != [way.runner] * len(experiments):
        sys.exit(f"{way.name}: {len(experiments)} experiments, preflights were run by {runners}")
    if way.worker is not None and f"Created new {way.worker} " not in log.stderr:
        sys.exit(f"{way.name}: no {way.worker} was started:\n{log.stderr}")
    return digests


def runners_of(log: str) -> list[str]:
    """Who ran the preflights: of an execution log, which is one JSON object after the other."""
    runners, decoder = [], json.JSONDecoder()
    while log := log.lstrip():
        spawn, end = decoder.raw_decode(log)
        log = log[end:]
        if spawn["mnemonic"] == "RlPreflight":
            runners.append(spawn["runner"])
    return runners


def outputs(bin_folder: Path) -> list[Path]:
    """The outputs of preflights that are there."""
    return [
        path
        for pattern in OUTPUTS
        for path in (bin_folder / "experiments").rglob(pattern)
        # Links that `bazel run` left.
        if not any(part.endswith(".runfiles") for part in path.parts)
    ]


def set_hash_seed(checkout: Path, seed: str) -> None:
    """Give the actions of a copied checkout another seed, which their rule fixes at 0."""
    rule = checkout / RULE
    text = rule.read_text()
    changed, count = re.subn(r'"PYTHONHASHSEED": "\d+"', f'"PYTHONHASHSEED": "{seed}"', text)
    if not count:
        sys.exit(f"{RULE} does not fix PYTHONHASHSEED")
    if changed != text:
        rule.write_text(changed)


def misbehave(checkout: Path) -> None:
    """Make the experiments of a copied checkout do what no build action may."""
    for experiment, (code, _) in MISDEEDS.items():
        with (checkout / experiment).open("a") as source:
            source.write(f"\n{code}\n")


def missing_refusals(where: Path, base: Path, flags: Sequence[str]) -> list[str]:
    """Build the experiments that misbehave, and return what is not said of them."""
    log = bazel(where, base, "build", "--noshow_progress", *NO_CACHE, "--keep_going", *flags, TARGETS)
    sentences = [f"{experiment}:{sentence}" for experiment, (_, sentence) in MISDEEDS.items()]
    found = [re.sub(r":\d+:", ":", line) for line in log.stderr.splitlines()]
    return [sentence for sentence in sentences if not any(sentence in line for line in found)]


def bazel(where: Path, base: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Bazel.

    Args:
        where: the checkout.
        base: the output base, None for the one that Bazel chooses.
        arguments: command and what follows.
    """
    call = ["tools/bazel", *([] if base is None else [f"--output_base={base}"]), *arguments]
    return subprocess.run(call, cwd=where, capture_output=True, text=True, check=False)


def succeed(way: Way, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Bazel, or end with what it says."""
    done = bazel(way.checkout, way.base, *arguments)
    if done.returncode:
        sys.exit(f"{way.name}: bazel {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    return done


def copy_tracked(checkout: Path, target: Path) -> None:
    """Copy the files that git tracks, as they are in the working tree."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=checkout, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, names):
        if (checkout / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkout / name, target / name)


if __name__ == "__main__":
    sys.exit(main())
