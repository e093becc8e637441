"""The steps of the workflow for GitHub Actions that call Bazel, run as GitHub's runner does, with the real Bazel.

The checkout is one that actions/checkout would make for a pull request: the merge of a branch, which changes the
placement of one experiment, into its base, which is what is here, with what is not committed.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.docs.workflow import FILE, Ended, run_script, runner_variables, sarif_problems, script_of

_CATS = "experiments/cat_count/experiment.py"
_BEFORE, _AFTER = "cpu=8,", "cpu=4,"
_ROW = "| //experiments/cat\\_count:cat\\_count | launch |"
# The suite itself is for who calls this; its step is tried with a part of it.
_SUITE, _PART = "//...", "//tests/docs:pages_test"

Expectation = tuple[str, str | None]


def take_workflow(root: Path, environ: Mapping[str, str]) -> Iterator[Expectation]:
    """Yield each step that calls Bazel with what went wrong, or None.

    Args:
        root: of the checkout whose files are tried.
        environ: of the processes. Bazel's prefix is the user's, caches are not.
    """
    folder = Path(tempfile.mkdtemp(prefix="slipway-workflow-"))
    checkout = folder / "checkout"
    home = folder / "home"
    home.mkdir()
    caches = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway"
    variables = {
        "SLIPWAY_BAZEL_PREFIX": str(caches / "bazel"),
        # Else the steps' Bazel would be below their HOME, and download what it has downloaded already.
        "SLIPWAY_OUTPUT_USER_ROOT": str(folder / "output"),
        **environ,
        **runner_variables(checkout, folder),
        "HOME": str(home),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    try:
        _pull_request(root, checkout)
        text = (root / FILE).read_text(encoding="utf-8")
        for name, judge in _STEPS.items():
            script = script_of(text, name)
            if name == "test":
                assert script.count(_SUITE) == 1, script
                script = script.replace(_SUITE, _PART)
            ended = run_script(script, checkout, variables)
            problem = judge(ended, checkout, variables)
            shown = f"{problem}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}" if problem else None
            yield f"{FILE}: {name}", shown
    finally:
        _stop(folder, checkout, variables)
        # Bazel makes its outputs read-only.
        subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _pull_request(root: Path, checkout: Path) -> None:
    """Make a repository of the files of `root`, with a merge of a change checked out."""
    listed = _git(root, "ls-files", "-z", "-co", "--exclude-standard").split("\0")
    for name in filter(None, listed):
        source, target = root / name, checkout / name
        if source.is_symlink() or source.is_file():  # It may have been deleted, and that not be committed.
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    _git(checkout, "init", "-q", "-b", "base")
    _commit(checkout, "base")
    _git(checkout, "checkout", "-q", "-b", "change")
    edited = checkout / _CATS
    content = edited.read_text(encoding="utf-8")
    assert content.count(_BEFORE) == 1, f"{_CATS} has {_BEFORE} no more: change what workflow_run.py edits"
    edited.write_text(content.replace(_BEFORE, _AFTER), encoding="utf-8")
    _commit(checkout, "change")
    _git(checkout, "checkout", "-q", "--detach", "base")
    _git(checkout, *_IDENTITY, "merge", "-q", "--no-ff", "-m", "merge", "change")


_IDENTITY = ("-c", "user.name=slipway", "-c", "user.email=slipway@localhost", "-c", "commit.gpgsign=false")


def _commit(checkout: Path, message: str) -> None:
    _git(checkout, "add", "-A")
    _git(checkout, *_IDENTITY, "commit", "-q", "-m", message)


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def _tested(ended: Ended, checkout: Path, variables: Mapping[str, str]) -> str | None:
    """The tests passed."""
    return f"exit status {ended.status}" if ended.status else None


def _compared(ended: Ended, checkout: Path, variables: Mapping[str, str]) -> str | None:
    """A table with the one experiment, in the log, the summary and the file that the next job gets."""
    if ended.status:
        return f"exit status {ended.status}"
    table = (Path(variables["RUNNER_TEMP"]) / "affected.md").read_text(encoding="utf-8")
    summary = Path(variables["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8")
    if not table == summary == ended.stdout:
        return "the table, the summary and the log are not the same"
    base = _git(checkout, "rev-parse", "--short=12", "base").strip()
    if not table.startswith(f"**{base} to the working tree: 1 launch; "):
        return f"the table begins with {table[:200]!r}"
    rows = [line for line in table.splitlines() if line.startswith("| ") and "//" in line]
    if len(rows) != 1 or not rows[0].startswith(_ROW):
        return f"the rows are {rows}"
    owned = [
        str(place) for place in (checkout / "owned", Path(variables["HOME"]) / "owned") if place.exists()
    ]
    return f"the name of a branch was run: {owned}" if owned else _unchanged(checkout)


def _judged(ended: Ended, checkout: Path, variables: Mapping[str, str]) -> str | None:
    """A log that code scanning takes, about files of the checkout."""
    if ended.status:
        return f"exit status {ended.status}"
    log = json.loads((checkout / "lint.sarif").read_text(encoding="utf-8"))
    return "; ".join(sarif_problems(log, checkout)) or None


def _unchanged(checkout: Path) -> str | None:
    """A file of a step among the sources would be another state of them, whose digests are not kept."""
    left = _git(checkout, "status", "--porcelain")
    return f"the step left in the checkout: {left}" if left else None


_STEPS: dict[str, Callable[[Ended, Path, Mapping[str, str]], str | None]] = {
    "compare": _compared,
    "judge the golden documents": _judged,
    "test": _tested,
}
"""Name of a step -> what must be true after it."""


def _stop(folder: Path, checkout: Path, variables: Mapping[str, str]) -> None:
    """End the Bazel servers of the checkout and of the revision that was built beside it."""
    kept = (folder / "cache" / "slipway" / "revisions").glob("*/output")
    for startup in [[], *([f"--output_base={output}"] for output in kept)]:
        call = [os.fspath(checkout / "tools" / "bazel"), *startup, "shutdown"]
        subprocess.run(call, cwd=checkout, env=dict(variables), capture_output=True, check=False)
