"""What every bench here shares: the machine's facts, medians, and results as a file of JSON."""

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

ROUNDS = 5
"""How many rounds a median is taken of."""


def machine_facts() -> dict[str, str | int]:
    """Return what a reader needs to judge seconds by: processor, cores, memory, versions, load.

    The version of Bazel is that of the workspace that `bazel run` was called in; "unknown" without one.
    """
    return {
        "cpu": _cpu_model(),
        # Those this process may use: a container can have fewer than the machine.
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "bazel": _bazel_version(),
        "iris": _version_of("marin-iris"),
        "load": f"{os.getloadavg()[0]:.2f}",
    }


def median_of(rounds: Sequence[float]) -> float:
    """Return the median of what was measured.

    Raises:
        ValueError: nothing was.
    """
    if not rounds:
        raise ValueError("a median needs at least one round")
    return statistics.median(rounds)


def seconds_of(command: Sequence[str], *, statuses: tuple[int, ...] = (0,)) -> float:
    """Run a program to its end and return the seconds that took.

    Its environment is this process's own, without the module path that this process was started with.

    Args:
        command: its path and arguments.
        statuses: with which it may end.

    Raises:
        SystemExit: it ended with another.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    started = time.perf_counter()
    status = subprocess.run(command, stdout=subprocess.DEVNULL, env=env).returncode
    if status not in statuses:
        raise SystemExit(f"{command[0]} ended with status {status}")
    return time.perf_counter() - started


def write_results(path: Path | None, name: str, results: Mapping[str, Any]) -> None:
    """Write a bench's results with the machine's facts, as JSON.

    Args:
        path: where to, relative to the folder that `bazel run` was called in; None writes nothing.
        name: of the bench.
        results: numbers, and lists and dictionaries of them. `name` and `machine` are added.
    """
    if path is None:
        return
    # `bazel run` changes the folder, and says which one the user is in.
    target = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "")) / path
    document = {"name": name, "machine": machine_facts(), **results}
    target.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _bazel_version() -> str:
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if workspace is None:
        return "unknown"
    version_file = Path(workspace) / ".bazelversion"
    if version_file.is_file():
        return version_file.read_text().strip()
    done = subprocess.run(
        ["tools/bazel", "--version"], cwd=workspace, capture_output=True, text=True, check=False
    )
    return done.stdout.strip().removeprefix("bazel ") or "unknown"


def _version_of(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not among this program's packages"
