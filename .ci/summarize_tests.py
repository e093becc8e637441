"""Prints what a `bazel test` run came to; its last line is `N passed, N failed`.

    summarize_tests.py BUILD_EVENTS --bazel-exit-code=N

BUILD_EVENTS is what --build_event_json_file wrote. A test target counts once,
whatever its runs, shards and attempts: as passed where it passed, from the
cache or in a later attempt too; else as failed, also where it could not be
built or was not run. Targets that Bazel skips as incompatible do not count.

Exits 0 only where Bazel did, at least one test ran, none failed and the events
are complete; else with Bazel's exit code, or 1. Standard library only: it runs
on whatever Python 3 a build machine has.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PASSED = ("PASSED", "FLAKY")


def read_events(file: str) -> list[dict[str, Any]]:
    """The events up to the first line that is cut off; none where the file is missing."""
    events = []
    try:
        for line in Path(file).read_text(encoding="utf-8").splitlines():
            if line.strip():
                events.append(json.loads(line))
    except (OSError, ValueError):
        pass  # Bazel did not start, or was killed within a line
    return events


def summarize(events: Iterable[Mapping[str, Any]]) -> tuple[dict[tuple[str, str], str], bool]:
    """What became of each test target.

    Returns ({(label, configuration): status}, whether Bazel finished its run).
    """
    statuses: dict[tuple[str, str], str] = {}
    tests: set[str] = set()
    skipped: set[str] = set()
    finished = False
    for event in events:
        kind, key = next(iter(event["id"].items()))
        label = key.get("label")
        aborted = event.get("aborted", {})
        if kind == "testSummary" and "testSummary" in event:
            status = event["testSummary"].get("overallStatus", "NO_STATUS")
            statuses[label, key["configuration"]["id"]] = status
        elif kind == "targetConfigured" and event.get("configured", {}).get("testSize"):
            tests.add(label)
        elif kind in ("targetConfigured", "targetCompleted") and aborted.get("reason") == "SKIPPED":
            skipped.add(label)
        elif kind == "targetConfigured" and aborted and label.rpartition(":")[2].endswith("_test"):
            tests.add(label)  # its analysis failed, so of its rule only the name is known
        elif kind == "buildFinished":
            finished = True
    for label in tests - skipped - {label for label, _ in statuses}:
        statuses[label, ""] = "NOT_RUN"
    return statuses, finished


def report(
    statuses: Mapping[tuple[str, str], str], finished: bool, bazel_exit_code: int
) -> tuple[list[str], int]:
    """The lines to print, and the exit code."""
    failed = sum(status not in PASSED for status in statuses.values())
    lines = [f"{label}: {status}" for (label, _), status in sorted(statuses.items()) if status != "PASSED"]
    if bazel_exit_code and not failed:
        lines.append(f"bazel exited with {bazel_exit_code}")
    if not finished:
        lines.append("the build events are incomplete")
    if not statuses:
        lines.append("no test ran")
    lines.append(f"{len(statuses) - failed} passed, {failed} failed")
    return lines, bazel_exit_code or int(bool(failed or not finished or not statuses))


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("events", help="what --build_event_json_file wrote")
    parser.add_argument("--bazel-exit-code", type=int, required=True)
    flags = parser.parse_args()
    lines, code = report(*summarize(read_events(flags.events)), flags.bazel_exit_code)
    print("\n".join(lines), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
