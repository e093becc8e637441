#!/usr/bin/env python3
"""Runs every command that the documents show, as a reader would, with a state folder of its own.

    tests/docs/run_commands.py

`tools/bazel test` commands are left to the caller, who runs `tools/bazel test //...`. Tutorials (tutorial.py) are taken
as sessions, and the steps of the workflow for GitHub Actions in a checkout of their own (workflow_run.py). Ends with
`N passed, N failed`.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.docs.markdown import commands, documents  # noqa: E402
from tests.docs.tutorial import steps, take  # noqa: E402
from tests.docs.workflow_run import take_workflow  # noqa: E402

SECONDS = 900


def main() -> int:
    shown = [command for document in documents(ROOT) for command in commands(document)]
    # In order of first appearance: status and verify come after a launch, `local stop` is repeated last.
    unique = [command for command in dict.fromkeys(shown) if not command.startswith("tools/bazel test ")]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="slipway-docs-") as state:
        for told, problem in _results(unique, os.environ | {"XDG_STATE_HOME": state}):
            print(f"{'FAILED' if problem else 'ok'}: {told}", flush=True)
            passed, failed = (passed, failed + 1) if problem else (passed + 1, failed)
            if problem:
                print(problem, flush=True)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0 or passed == 0)


def _results(shown: list[str], environ: dict[str, str]) -> Iterator[tuple[str, str | None]]:
    """Every command with what went wrong, or None: single ones, sessions, what stops the local Iris, the workflow."""
    last = [command for command in shown if command.endswith("local stop")]
    yield from ((command, _problem(command, environ)) for command in shown if command not in last)
    for document in documents(ROOT):
        yield from take(steps(document), ROOT, environ)
    yield from ((command, _problem(command, environ)) for command in last)
    yield from take_workflow(ROOT, environ)


def _problem(command: str, environ: dict[str, str]) -> str | None:
    """The end of what a command prints if it fails."""
    done = subprocess.run(
        shlex.split(command),
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}" if done.returncode else None


if __name__ == "__main__":
    sys.exit(main())
