"""Measures what commands cost before they work: tools/bazel run //tests/bench:startup

Each program is called by its path, as `tools/bazel run` and scripts do. Times depend on the machine, so each is
also told as a ratio to a Python that does nothing. Exit status: 0 if the limits hold, else 1.
"""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

from tests.bench.measuring import ROUNDS, median_of, seconds_of, write_results
from tools.launcher.cli.process_boundary import run_as_process

_ROOT = Path(__file__).parents[2]
_LAUNCHER = str(_ROOT / "tools/launcher/launcher")
_LINT = str(_ROOT / "tools/launcher/lint")
_DOCUMENT = str(_ROOT / "tests/contract/examples/smoke-fsdp.yaml")


class Start(NamedTuple):
    """A start-up that is measured."""

    command: tuple[str, ...]
    longest: float | None = None
    """Seconds; None where only the number is of interest."""


STARTS: dict[str, Start] = {
    "launcher --help": Start((_LAUNCHER, "--help"), 0.25),
    "lint, one document": Start((_LINT, "--format=json", _DOCUMENT), 0.35),
    "lint --help": Start((_LINT, "--help")),
    "launcher launch --help": Start((_LAUNCHER, "launch", "--help")),
    "launcher status --help": Start((_LAUNCHER, "status", "--help")),
    "launcher verify --help": Start((_LAUNCHER, "verify", "--help")),
    "launcher pin --help": Start((_LAUNCHER, "pin", "--help")),
    "preflight --help": Start((str(_ROOT / "tools/launcher/cli/preflight"), "--help")),
}


def main() -> int:
    """Run the bench and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    flags = parser.parse_args()
    commands = {"a Python that does nothing": [sys.executable, "-c", ""]}
    commands |= {name: list(start.command) for name, start in STARTS.items()}
    for command in commands.values():
        seconds_of(command)  # The first call compiles the modules.
    rounds: dict[str, list[float]] = {name: [] for name in commands}
    # In turns, so that a busy moment of the machine is in all of them.
    for _ in range(ROUNDS):
        for name, command in commands.items():
            rounds[name].append(seconds_of(command))
    medians = {name: median_of(seconds) for name, seconds in rounds.items()}
    bare = medians["a Python that does nothing"]
    missed = False
    for name, seconds in medians.items():
        longest = STARTS[name].longest if name in STARTS else None
        limit = "" if longest is None else f"  limit {longest} s"
        missed |= longest is not None and seconds >= longest
        print(f"{name:<28} {seconds:.3f} s  {seconds / bare:5.1f} times nothing{limit}")
    write_results(
        flags.json,
        "startup",
        {
            "rounds": ROUNDS,
            "seconds": medians,
            "times_a_bare_python": {name: seconds / bare for name, seconds in medians.items()},
        },
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(run_as_process(main))
