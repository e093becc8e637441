"""Measures lint on this machine: tools/bazel run -c opt //tests/bench:lint_speed

Times depend on the machine, so each is also told as a ratio: the start against a Python that does
nothing, many documents against one. Exit status: 0 if the limits hold, else 1.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.launcher.cli.process_boundary import run_as_process

_ROOT = Path(__file__).parents[2]
_PROGRAM = _ROOT / "tools/launcher/lint"
_EXAMPLES = sorted((_ROOT / "tests/contract/examples").glob("*.yaml"))
_ROUNDS = 7
_MANY = 200

LONGEST_START = 0.6
"""Seconds from the start of the process to the first verdict."""
LONGEST_MANY = 3.0
"""Seconds for 200 documents, after the start."""


def main() -> int:
    """Run the bench and print its table."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number:03}.yaml" for number in range(_MANY)]
        for number, path in enumerate(paths):
            shutil.copyfile(_EXAMPLES[number % len(_EXAMPLES)], path)
        _seconds([str(_PROGRAM), str(paths[0])])  # The first call compiles the modules.
        bare = _seconds([sys.executable, "-c", ""], env={})
        start = _seconds([str(_PROGRAM), "--format=json", str(paths[0])])
        many = _seconds([str(_PROGRAM), "--format=json", *map(str, paths)]) - start
    each = many / (_MANY - 1)
    print(f"a Python that does nothing       {bare:.3f} s")
    print(
        f"start and one document           {start:.3f} s   {start / bare:.1f} times that; limit {LONGEST_START} s"
    )
    print(f"{_MANY} documents, after the start  {many:.3f} s   limit {LONGEST_MANY} s")
    print(f"each                             {each * 1000:.1f} ms  {each / start:.3f} times a call for one")
    return 0 if start < LONGEST_START and many < LONGEST_MANY else 1


def _seconds(command: list[str], env: dict[str, str] | None = None) -> float:
    """Return the shortest of several rounds: the others waited for something else."""
    return min(_one(command, env) for _ in range(_ROUNDS))


def _one(command: list[str], env: dict[str, str] | None) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, env=env)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command[0]} ended with status {done.returncode}")
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(run_as_process(main))
