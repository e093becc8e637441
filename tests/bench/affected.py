#!/usr/bin/env python3
"""Measures `launcher affected` among a thousand experiments: tests/bench/affected.py

Copies the checkout with generated experiments into a repository of its own, with caches of its own, and asks what
commits change: a line of the runtime manifest, for which all have to be planned again, one experiment, and what was
asked before. Exit status: 0 if the limit of tests/bench/acceptance.py holds, else 1.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.acceptance import told  # noqa: E402
from tests.bench.bazel_bench import copy_working_tree  # noqa: E402
from tests.bench.generated_experiments import FOLDER, write_experiments  # noqa: E402
from tests.bench.measuring import median_of, write_results  # noqa: E402

MANIFEST = "third_party/marinskyrl/81ae0ef7.yaml"


def main() -> int:
    """Run the bench and print its table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--experiments", type=int, default=1000, metavar="N")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="slipway-bench-affected-"))
    # The caches of the user are not for benches; the Bazel that is installed already is.
    prefix = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway" / "bazel"
    environ = {
        "SLIPWAY_BAZEL_PREFIX": str(prefix),
        **os.environ,
        "XDG_CACHE_HOME": str(folder / "cache"),
        "SLIPWAY_OUTPUT_USER_ROOT": str(folder / "user"),
    }
    repository = Repository(folder / "checkout", environ)
    try:
        seconds = measured(repository, options.experiments, options.rounds)
    finally:
        repository.close()
        # Bazel makes its outputs read-only.
        subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    for name, value in seconds.items():
        print(f"{name:<24} {value:6.2f} s")
    results = {"experiments": options.experiments, "rounds": options.rounds, "seconds": seconds}
    write_results(options.json, "affected", results)
    text, holds = told({"affected": results})
    print(text)
    return int(not holds)


class Repository:
    """A git repository in which `affected` is called."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.folder = folder
        self._environ = environ

    def commit(self) -> None:
        """Commit every file."""
        self._run("git", "add", "--all")
        identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
        self._run("git", *identity, "commit", "--quiet", "--message=bench")

    def affected(self, *arguments: str) -> tuple[float, dict[str, str]]:
        """Ask, and return the seconds from its start to its end, and label -> effect."""
        began = time.perf_counter()
        said = self._run(
            "tools/bazel",
            "run",
            "--noshow_progress",
            "//tools/launcher",
            "--",
            "affected",
            *arguments,
            "--format=json",
        )
        seconds = time.perf_counter() - began
        return seconds, {item["label"]: item["effect"] for item in json.loads(said)["affected"]}

    def prepare(self) -> None:
        """Make the repository and build the launcher, which no call is to wait for."""
        self._run("git", "init", "--quiet")
        self.commit()
        self._run("tools/bazel", "build", "--noshow_progress", "//tools/launcher")

    def close(self) -> None:
        """End the servers."""
        revisions = Path(self._environ["XDG_CACHE_HOME"]) / "slipway" / "revisions"
        servers = [(each / "checkout", (f"--output_base={each / 'output'}",)) for each in revisions.glob("*")]
        for where, startup in ((self.folder, ()), *servers):
            call = ["tools/bazel", *startup, "shutdown"]
            subprocess.run(call, cwd=where, env=dict(self._environ), check=False, capture_output=True)

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=dict(self._environ), capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.stderr.write(done.stderr)
            raise SystemExit(f"error: {' '.join(command)} ended with {done.returncode}")
        return done.stdout


def measured(repository: Repository, experiments: int, rounds: int) -> dict[str, float]:
    """What was asked -> seconds, medians but for the first.

    Raises:
        SystemExit: an answer is wrong.
    """
    copy_working_tree(ROOT, repository.folder)
    # A version that is pinned refuses another runtime, and that is what is measured.
    for ledger in repository.folder.glob("experiments/*/versions.lock.yaml"):
        ledger.unlink()
    made = write_experiments(repository.folder, range(experiments))
    repository.prepare()
    one = made[len(made) // 2]
    source = repository.folder / FOLDER / one.name / "experiment.py"
    changed = {f"{one.label}:{one.name}": "recipe"}
    revisions = ("--base=HEAD~1", "--head=HEAD")

    def asked(name: str, wanted: Mapping[str, str], *arguments: str) -> float:
        seconds, found = repository.affected(*arguments)
        sys.stderr.write(f"{name}: {seconds:.2f} s\n")
        if found != wanted:
            raise SystemExit(f"error: {name}: {found} was told, {dict(wanted)} is right")
        return seconds

    def change_all(number: int) -> None:
        with (repository.folder / MANIFEST).open("a", encoding="utf-8") as manifest:
            manifest.write(f"# line {number}\n")

    def change_one(number: int) -> None:
        before, seed, after = source.read_text(encoding="utf-8").partition("seed=")
        source.write_text(f"{before}{seed}{1000 + number}{after.lstrip('0123456789')}", encoding="utf-8")

    change_all(0)
    repository.commit()
    first = asked("first call, neither known", {}, *revisions)
    stale, edited, known, tree = [], [], [], []
    for number in range(1, rounds + 1):
        change_all(number)
        repository.commit()
        stale.append(asked("all stale", {}, *revisions))
        change_one(number)
        repository.commit()
        edited.append(asked("one edit", changed, *revisions))
        known.append(asked("asked before", changed, *revisions))
        change_one(rounds + number)
        tree.append(asked("one edit, not committed", changed, "--base=HEAD"))
        change_one(number)
    return {
        "first_call": first,
        "all_stale": median_of(stale),
        "one_edit": median_of(edited),
        "one_edit_not_committed": median_of(tree),
        "asked_before": median_of(known),
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
