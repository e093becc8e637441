"""A copy of this checkout with a Bazel of its own, and what its builds cost.

Standard library only: it calls Bazel and so runs outside it, by the machine's Python.
"""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_TICK = os.sysconf("SC_CLK_TCK")
_NOT_EXECUTED = {"total", "internal", "disk cache hit", "remote cache hit"}
_NO_WORK = {"BazelWorkspaceStatusAction"}
"""Runs in every build, inside the server, and starts nothing."""


@dataclasses.dataclass(frozen=True)
class CpuSeconds:
    """CPU seconds of a Bazel server and what it started, from /proc/PID/stat.

    Attributes:
        server: of the server's own threads (fields utime and stime).
        actions: of processes that it started: those that ended (its cutime and cstime), and those alive with
            their ended children, which are the workers and what they forked.
    """

    server: float
    actions: float

    def __sub__(self, earlier: "CpuSeconds") -> "CpuSeconds":
        return CpuSeconds(self.server - earlier.server, self.actions - earlier.actions)


@dataclasses.dataclass(frozen=True)
class Cost:
    """What one Bazel command cost.

    Attributes:
        wall: seconds from the start of tools/bazel to its end.
        cpu: CPU seconds meanwhile.
        actions: mnemonic -> actions that ran or were fetched from a cache; none if they were not counted.
        runners: how they ran -> number: `worker`, `linux-sandbox`, `disk cache hit`.
        analysis: seconds of loading and analysis as Bazel counts them; 0 if nothing was counted.
    """

    wall: float
    cpu: CpuSeconds
    actions: dict[str, int]
    runners: dict[str, int]
    analysis: float

    @property
    def preflights(self) -> int:
        return self.actions.get("RlPreflight", 0)

    @property
    def executed(self) -> int:
        """Processes or requests that ran for actions: cache hits do not count."""
        return sum(count for runner, count in self.runners.items() if runner not in _NOT_EXECUTED)


class BenchCheckout:
    """A checkout with an output base of its own."""

    def __init__(self, folder: Path, output_base: Path) -> None:
        self.folder = folder
        self._output_base = output_base

    def build(self, *arguments: str) -> Cost:
        """Build and measure it. Ends the program with Bazel's words if the build fails.

        Only what Bazel says at the end of a build is read, `2 processes: 1 internal, 1 worker`: actions are not
        told by mnemonic.
        """
        wall, cpu, said = self._measured(*arguments)
        return Cost(wall=wall, cpu=cpu, actions={}, runners=_runners(said), analysis=0.0)

    def counted_build(self, *arguments: str) -> Cost:
        """Build, measure it, and count actions by the build event protocol.

        Bazel writes an event for each target, which takes it a third of a build of many in which nothing is to do.
        """
        with tempfile.NamedTemporaryFile(suffix=".json") as events:
            wall, cpu, _ = self._measured(f"--build_event_json_file={events.name}", *arguments)
            metrics = _metrics(Path(events.name))
        summary = metrics.get("actionSummary", {})
        return Cost(
            wall=wall,
            cpu=cpu,
            actions={
                data["mnemonic"]: int(data.get("actionsExecuted", 0))
                for data in summary.get("actionData", [])
                if data["mnemonic"] not in _NO_WORK
            },
            runners={data["name"]: int(data.get("count", 0)) for data in summary.get("runnerCount", [])},
            analysis=int(metrics.get("timingMetrics", {}).get("analysisPhaseTimeInMs", 0)) / 1000,
        )

    def bazel(self, *arguments: str) -> str:
        """Run a Bazel command and return its output. Ends the program with Bazel's words if it fails."""
        return self._bazel(*arguments).stdout

    def _measured(self, *arguments: str) -> tuple[float, CpuSeconds, str]:
        """Wall and CPU seconds of a build, and what Bazel says meanwhile."""
        before = self.cpu()
        began = time.perf_counter()
        # What the user's own bazelrc says about caches is no part of the measurement.
        done = self._bazel("build", "--noshow_progress", "--disk_cache=", *arguments)
        wall = time.perf_counter() - began
        # A server that was just started had used nothing.
        return wall, self.cpu() - before, done.stderr

    def _bazel(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["tools/bazel", f"--output_base={self._output_base}", *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.stderr.write(done.stderr)
            raise SystemExit(f"error: {' '.join(command)} ended with {done.returncode} in {self.folder}")
        return done

    def shutdown(self) -> None:
        """End the server and its workers."""
        self.bazel("shutdown")

    def clean(self) -> None:
        """Remove outputs, action cache and workers; fetched wheels stay."""
        self.bazel("clean")

    def bin_folder(self) -> Path:
        return Path(self.bazel("info", "bazel-bin").strip())

    def cpu(self) -> CpuSeconds:
        """What the server and its processes have used since they were started; nothing if there is no server."""
        server = self._server()
        if server is None:
            return CpuSeconds(0.0, 0.0)
        own, ended = _cpu_of(server)
        below = sum(sum(_cpu_of(process)) for process in _descendants(server))
        return CpuSeconds(own, ended + below)

    def memory(self) -> dict[str, float]:
        """Largest resident memory so far, MB: of the server, and of its preflight workers together."""
        server = self._server()
        if server is None:
            return {"server": 0.0, "workers": 0.0}
        workers = [
            process
            for process in _children_of(server)
            if b"--persistent_worker" in Path(f"/proc/{process}/cmdline").read_bytes()
        ]
        return {"server": _peak_mb(server), "workers": sum(map(_peak_mb, workers))}

    def _server(self) -> int | None:
        """The process of the server, as it writes it into its output base."""
        file = self._output_base / "server/server.pid.txt"
        if not file.exists():
            return None
        process = int(file.read_text())
        return process if Path(f"/proc/{process}").exists() else None


def copy_working_tree(checkout: Path, target: Path) -> None:
    """Copy what git tracks and what is new and not ignored, as it is in the working tree."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, names):
        if (checkout / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkout / name, target / name)


def _runners(said: str) -> dict[str, int]:
    """Runner -> number, from Bazel's line `INFO: 3 processes: 1 internal, 2 worker.`"""
    line = re.search(r"^INFO: \d+ process(?:es)?(?:: (.+))?\.$", said, re.MULTILINE)
    if line is None:
        raise SystemExit(f"error: the build did not say what it ran; is this Bazel 7?\n{said}")
    counts = [part.partition(" ") for part in line[1].split(", ")] if line[1] else []
    return {runner: int(number) for number, _, runner in counts}


def _metrics(events: Path) -> dict[str, Any]:
    for line in events.read_text().splitlines():
        event: dict[str, Any] = json.loads(line)
        if "buildMetrics" in event:
            metrics: dict[str, Any] = event["buildMetrics"]
            return metrics
    raise SystemExit("error: the build wrote no metrics into its build events; is this Bazel 7 or later?")


def _stat(process: int) -> list[str]:
    """The fields of /proc/PID/stat from `state` on; the name before it can hold blanks."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def _cpu_of(process: int) -> tuple[float, float]:
    """Seconds of the process, and of its children that ended. Zero for one that is gone."""
    try:
        fields = _stat(process)
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, 0.0
    user, system, children_user, children_system = (int(field) / _TICK for field in fields[11:15])
    return user + system, children_user + children_system


def _children_of(parent: int) -> Iterator[int]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if int(_stat(int(folder.name))[1]) == parent:
                yield int(folder.name)
        except (FileNotFoundError, ProcessLookupError):
            continue  # It ended meanwhile.


def _descendants(parent: int) -> Iterator[int]:
    for child in _children_of(parent):
        yield child
        yield from _descendants(child)


def _peak_mb(process: int) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0
