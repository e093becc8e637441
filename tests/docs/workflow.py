"""The workflow for GitHub Actions, and its steps as GitHub's runner starts them."""

import re
import subprocess
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

FILE = Path("docs/ci/github-actions.yaml")

# `${{ … }}`, which GitHub replaces before anything runs.
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")

# How the runner calls a script whose shell is `bash`.
_SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
_SECONDS = 1800


class Ended(NamedTuple):
    """How a script ended."""

    status: int
    stdout: str
    stderr: str


def step_of(workflow: Mapping[str, Any], job: str, name: str) -> dict[str, Any]:
    """Return the step of a job that has this name."""
    (step,) = (step for step in workflow["jobs"][job]["steps"] if step.get("name") == name)
    return dict(step)


def script_of(text: str, name: str) -> str:
    """Return the script of the step that has this name, out of the workflow's text: without a reader of YAML."""
    step = text.partition(f"- name: {name}\n")[2]
    found = re.search(r"^( *)run:(?: \|\n((?:\1 +.*\n|\n)+)| (.+\n))", step, re.MULTILINE)
    assert found is not None, name
    return textwrap.dedent(found[2] or found[3])


def runner_variables(workspace: Path, temporary: Path) -> dict[str, str]:
    """Return what the runner sets for a pull request, and make the files and folders that it names.

    Args:
        workspace: the checkout.
        temporary: a folder that exists.
    """
    files = {
        name: temporary / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV")
    }
    for file in files.values():
        file.touch()
    (temporary / "runner").mkdir(exist_ok=True)
    return {
        **{name: str(file) for name, file in files.items()},
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_REPOSITORY": "someone/experiments",
        # Whoever may push can name a branch so.
        "GITHUB_BASE_REF": "release/$(touch${IFS}owned)`touch${IFS}owned`;x",
        "GITHUB_HEAD_REF": "fix/$(touch${IFS}owned)`touch${IFS}owned`;x",
        "GITHUB_REF": "refs/pull/7/merge",
        "GITHUB_WORKSPACE": str(workspace),
        "RUNNER_OS": "Linux",
        "RUNNER_TEMP": str(temporary / "runner"),
    }


def own_variables(step: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a step sets, with `values` in the place of GitHub's expressions.

    Raises:
        KeyError: an expression that is not among `values`.
    """
    return {
        name: EXPRESSION.sub(lambda found: values[found[1]], str(value))
        for name, value in step.get("env", {}).items()
    }


def run_script(script: str, workspace: Path, variables: Mapping[str, str]) -> Ended:
    """Run the script of a step as the runner does.

    Args:
        script: what the step has in `run`.
        workspace: where it runs.
        variables: all of the process.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".sh", encoding="utf-8") as file:
        file.write(script)
        file.flush()
        done = subprocess.run(
            [*_SHELL, file.name],
            cwd=workspace,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    return Ended(done.returncode, done.stdout, done.stderr)


def sarif_problems(log: Any, root: Path) -> list[str]:
    """Return what GitHub's code scanning, or SARIF 2.1.0 itself, would not take in a log.

    Args:
        log: the JSON value.
        root: folder that the addresses of files are relative to.
    """
    found: list[str] = []
    if log.get("version") != "2.1.0" or not str(log.get("$schema", "")).endswith("sarif-2.1.0.json"):
        found.append("it does not say version 2.1.0 with its schema")
    if not isinstance(log.get("runs"), list) or len(log["runs"]) != 1:
        return [*found, "it has not one run"]
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    rules = [rule["id"] for rule in driver.get("rules", [])]
    if not driver.get("name") or not rules or len(set(rules)) != len(rules):
        found.append("its driver has no name, no rules, or one rule twice")
    found += [
        f"rule {rule['id']} has no text in {part}"
        for rule in driver.get("rules", [])
        for part in ("shortDescription", "fullDescription", "help")
        if not rule.get(part, {}).get("text")
    ]
    if not isinstance(run.get("results"), list):
        return [*found, "its run has no list of results"]
    for number, result in enumerate(run["results"]):
        if result.get("ruleId") not in rules or rules[result.get("ruleIndex", -1)] != result["ruleId"]:
            found.append(f"result {number} names no rule of the driver")
        if result.get("level") not in ("none", "note", "warning", "error"):
            found.append(f"result {number} has the level {result.get('level')!r}")
        if not result.get("message", {}).get("text"):
            found.append(f"result {number} has no message")
        if not result.get("locations"):
            found.append(f"result {number} has no location")
        for location in result.get("locations", []):
            physical = location["physicalLocation"]
            address = physical["artifactLocation"]["uri"]
            if ":" in address or Path(address).is_absolute() or not (root / unquote(address)).is_file():
                found.append(f"result {number} is at {address}, which is no file below the root")
            if physical.get("region", {}).get("startLine", 1) < 1:
                found.append(f"result {number} starts at line {physical['region']['startLine']}")
    return found
