"""Measures lint on this machine: tools/bazel run //tests/bench:lint_speed

Times depend on the machine, so each is also told as a ratio: the start against a Python that does
nothing, many documents against one. Exit status: 0 if the limits hold, else 1.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.bench.measuring import ROUNDS, median_of, seconds_of, write_results
from tools.launcher.cli.process_boundary import run_as_process

_ROOT = Path(__file__).parents[2]
_PROGRAM = _ROOT / "tools/launcher/lint"
_EXAMPLES = sorted((_ROOT / "tests/contract/examples").glob("*.yaml"))
_MANY = 1000

LONGEST_START = 0.35
"""Seconds from the start of the process to the first verdict."""
LONGEST_MANY = 15.0
"""Seconds for 1000 documents, after the start."""


def main() -> int:
    """Run the bench and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number:04}.yaml" for number in range(_MANY)]
        for number, path in enumerate(paths):
            shutil.copyfile(_EXAMPLES[number % len(_EXAMPLES)], path)
        _seconds(1, str(_PROGRAM), str(paths[0]))  # The first call compiles the modules.
        bare = _seconds(ROUNDS, sys.executable, "-c", "")
        start = _seconds(ROUNDS, str(_PROGRAM), "--format=json", str(paths[0]))
        many = _seconds(ROUNDS, str(_PROGRAM), "--format=json", *map(str, paths)) - start
    each = many / (_MANY - 1)
    print(f"a Python that does nothing        {bare:.3f} s")
    print(
        f"start and one document            {start:.3f} s   {start / bare:.1f} times that; "
        f"limit {LONGEST_START} s"
    )
    print(f"{_MANY} documents, after the start  {many:.3f} s   limit {LONGEST_MANY} s")
    print(f"each                              {each * 1000:.1f} ms  {each / start:.3f} times a call for one")
    write_results(
        flags.json,
        "lint_speed",
        {
            "rounds": ROUNDS,
            "documents": _MANY,
            "bare_python_seconds": bare,
            "start_seconds": start,
            "start_times_a_bare_python": start / bare,
            "many_seconds": many,
            "each_milliseconds": each * 1000,
        },
    )
    return 0 if start < LONGEST_START and many < LONGEST_MANY else 1


def _seconds(rounds: int, *command: str) -> float:
    # Status 1: a document is refused.
    return median_of([seconds_of(command, statuses=(0, 1)) for _ in range(rounds)])


if __name__ == "__main__":
    sys.exit(run_as_process(main))
