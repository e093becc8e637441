"""The workflow that people copy: what GitHub asks of it, and its scripts in a real shell.

The steps that call Bazel are run by run_commands.py, with the real one.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.workflow import (
    EXPRESSION,
    FILE,
    own_variables,
    run_script,
    runner_variables,
    sarif_problems,
    script_of,
    step_of,
)
from tools.launcher.cli.affected_states import Question
from tools.launcher.cli.commands import run as launcher
from tools.launcher.cli.completion_words import command_words
from tools.launcher.documents.strict_yaml import load_yaml_mapping

TEXT = FILE.read_text(encoding="utf-8")
WORKFLOW: dict[str, Any] = load_yaml_mapping(TEXT.encode(), source=str(FILE))
JOBS: dict[str, Any] = WORKFLOW["jobs"]
STEPS = [(job, step) for job, content in JOBS.items() for step in content["steps"]]
SCRIPTS = [(job, step) for job, step in STEPS if "run" in step]
VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")
COMMENT = step_of(WORKFLOW, "comment", "write the comment, or write it anew")
MARK = "<!-- slipway: affected -->"

# What the runner sets in every job, of what scripts use.
OF_THE_RUNNER = {"GITHUB_OUTPUT", "GITHUB_REPOSITORY", "GITHUB_STEP_SUMMARY", "HOME", "RUNNER_TEMP"}

# Keys that GitHub's syntax has: it refuses a workflow with another one. Those that this one uses, and their kin.
TOP = {"name", "run-name", "on", "permissions", "env", "defaults", "concurrency", "jobs"}
JOB = {
    "name",
    "permissions",
    "needs",
    "if",
    "runs-on",
    "env",
    "defaults",
    "steps",
    "timeout-minutes",
    "outputs",
}
STEP = {"id", "if", "name", "uses", "run", "working-directory", "shell", "with", "env", "timeout-minutes"}

# Action -> what its token must be allowed, as its own documentation says.
NEEDS = {
    "actions/checkout": {("contents", "read")},
    "actions/cache": set[tuple[str, str]](),
    "actions/upload-artifact": set[tuple[str, str]](),
    "actions/download-artifact": set[tuple[str, str]](),
    "github/codeql-action/upload-sarif": {
        ("security-events", "write"),
        ("contents", "read"),
        ("actions", "read"),
    },
}


def permissions(job: str) -> set[tuple[str, str]]:
    """What a job's token may do: its own list replaces the workflow's."""
    return set(JOBS[job].get("permissions", WORKFLOW["permissions"]).items())


def action(step: dict[str, Any]) -> str:
    return step.get("uses", "").partition("@")[0]


def test_it_has_only_keys_that_github_knows():
    assert set(WORKFLOW) <= TOP
    assert set(WORKFLOW["on"]) == {"pull_request", "push"}
    for name, job in JOBS.items():
        assert set(job) <= JOB, name
        assert isinstance(job["runs-on"], str) and job["timeout-minutes"] > 0, name
        assert {job["needs"]} <= set(JOBS) if "needs" in job else True, name
    for job, step in STEPS:
        assert set(step) <= STEP and ("run" in step) != ("uses" in step), (job, step)
        assert "with" not in step or "uses" in step, (job, step)


def test_actions_are_pinned_by_commit_and_say_their_version():
    pins: dict[str, set[str]] = {}
    for line in TEXT.splitlines():
        if "uses:" in line:
            found = re.fullmatch(r" +- uses: ([\w-]+/[\w/-]+)@([0-9a-f]{40})  # (v\d+\.\d+\.\d+)", line)
            assert found is not None, line
            pins.setdefault(found[1], set()).add(f"{found[2]} {found[3]}")
    assert all(len(versions) == 1 for versions in pins.values()), pins
    assert set(pins) == set(NEEDS)


def test_each_job_may_do_what_its_actions_need():
    for job, step in STEPS:
        # A public repository's contents may be read by anyone; a private one's only so.
        assert NEEDS.get(action(step), set()) <= permissions(job), (job, step)
    assert ("pull-requests", "write") in permissions("comment")


def test_only_the_jobs_that_must_may_write():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert {job: {what for what, may in permissions(job) if may == "write"} for job in JOBS} == {
        "test": set(),
        "affected": set(),
        "comment": {"pull-requests"},
        "lint": {"security-events"},
    }


def test_a_job_that_may_comment_runs_nothing_from_the_pull_request():
    for job in JOBS:
        if ("pull-requests", "write") in permissions(job):
            assert not any(action(step) == "actions/checkout" for name, step in STEPS if name == job), job


def test_checkouts_leave_no_token_and_have_the_revisions_that_are_asked_about():
    for job, step in STEPS:
        if action(step) == "actions/checkout":
            assert step["with"]["persist-credentials"] is False, job
    asks = {job for job, step in SCRIPTS if re.search(r"HEAD\^|--base", step["run"])}
    depths = {
        job: step["with"].get("fetch-depth") for job, step in STEPS if action(step) == "actions/checkout"
    }
    assert asks == {"affected"} and all(depths[job] == 0 for job in asks)


def test_what_needs_a_right_that_a_fork_has_not_is_left_out_for_forks():
    own = "github.event.pull_request.head.repo.full_name == github.repository"
    (upload,) = (step for _, step in STEPS if action(step).endswith("upload-sarif"))
    assert own in upload["if"] and "github.event_name == 'push'" in upload["if"]
    assert JOBS["comment"]["if"] == own


def test_files_that_one_step_hands_to_another_have_one_name():
    (judge,) = (step["run"] for job, step in SCRIPTS if job == "lint")
    (upload,) = (step for _, step in STEPS if action(step).endswith("upload-sarif"))
    assert f"> {upload['with']['sarif_file']} " in judge
    names = {step["with"]["name"] for _, step in STEPS if action(step).endswith("load-artifact")}
    assert names == {"affected"}
    (kept,) = (step["with"]["path"] for _, step in STEPS if action(step) == "actions/upload-artifact")
    assert EXPRESSION.sub("RUNNER_TEMP", kept) == "RUNNER_TEMP/affected.md"
    assert '> "$RUNNER_TEMP/affected.md"' in step_of(WORKFLOW, "affected", "compare")["run"]
    assert "cat affected.md" in COMMENT["run"]


@pytest.mark.parametrize(("job", "step"), SCRIPTS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_script_is_one_for_bash_and_takes_the_event_by_variables_alone(job, step):
    # A title or branch name that GitHub puts into a script is a command of whoever wrote it.
    assert EXPRESSION.search(step["run"]) is None
    assert WORKFLOW["defaults"]["run"]["shell"] == "bash"
    subprocess.run(["bash", "-n", "-c", step["run"]], check=True)
    set_here = set(re.findall(r"(?m)^\s*(\w+)=", step["run"])) | set(step.get("env", {}))
    assert set(VARIABLE.findall(step["run"])) <= set_here | OF_THE_RUNNER, job


@pytest.mark.parametrize(("job", "step"), SCRIPTS, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_run_without_a_reader_of_yaml_is_the_same(job, step):
    assert script_of(TEXT, step["name"]).rstrip() == step["run"].rstrip(), job


def test_scripts_call_what_there_is():
    text = "\n".join(step["run"] for _, step in SCRIPTS)
    assert re.findall(r"tools/bazel (\w+)[^\n]*?(//[\w/.:]+)", text) == [
        ("test", "//..."),
        ("run", "//tools/launcher"),
        ("run", "//tools/launcher:lint"),
    ]
    (flags,) = re.findall(r"//tools/launcher:lint -- ([^\n>]+)", text)
    (lint,) = (command for command in command_words() if command.name == "lint")
    assert set(re.findall(r"(?<!\S)(--[\w-]+)", flags)) <= {word.name for word in lint.flags}
    assert "common:ci " in Path(".bazelrc").read_text(encoding="utf-8")


BASE = step_of(WORKFLOW, "affected", "find the base")


def test_the_base_is_the_first_parent_of_the_merge(tmp_path):
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"]
        call = ["git", "-C", str(checkout), *identity, *arguments]
        return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()

    checkout = tmp_path / "checkout"
    checkout.mkdir()
    git("init", "-q", "-b", "base")
    git("commit", "-q", "--allow-empty", "-m", "old base")
    git("checkout", "-q", "-b", "change")
    git("commit", "-q", "--allow-empty", "-m", "change")
    git("checkout", "-q", "base")
    git("commit", "-q", "--allow-empty", "-m", "base as it is now")
    base = git("rev-parse", "HEAD")
    git("checkout", "-q", "--detach")
    git("merge", "-q", "--no-ff", "-m", "merge", "change")
    variables = runner_variables(checkout, tmp_path) | {"PATH": os.environ["PATH"]}
    assert run_script(BASE["run"], checkout, variables).status == 0
    output = Path(variables["GITHUB_OUTPUT"])
    assert output.read_text() == f"commit={base}\n"
    # Without a parent, as in a shallow checkout, there is no key: one that names no base would be every base's.
    git("checkout", "-q", "--orphan", "alone")
    git("commit", "-q", "--allow-empty", "-m", "no parent")
    assert run_script(BASE["run"], checkout, variables).status != 0
    assert output.read_text() == f"commit={base}\n"


def test_digests_are_kept_for_one_base_and_no_more_with_each_push():
    of_job = [step for job, step in STEPS if job == "affected"]
    (cache,) = (step["with"] for step in of_job if action(step) == "actions/cache")
    # What is restored for another key is saved again under the new one, and never gets less.
    assert set(cache) == {"path", "key"}
    assert EXPRESSION.findall(cache["key"]) == [f"steps.{BASE['id']}.outputs.commit"]
    kept = Question(Path(), "", (), {"HOME": "/home/x"}).cache_file("tree").parent
    assert cache["path"].replace("~", "/home/x") == str(kept)
    order = [step.get("name") or action(step) for step in of_job]
    assert order.index("find the base") < order.index("actions/cache") < order.index("compare")


GH = """#!{python}
import json, os, subprocess, sys

arguments = sys.argv[1:]
with open(os.environ["GH_LOG"], "a") as log:
    log.write(json.dumps(arguments) + "\\n")
if os.environ.get("GH_FAILS"):
    sys.exit("gh: Resource not accessible by integration (HTTP 403)")
if "--jq" in arguments:
    assert "--paginate" in arguments and os.environ["GH_TOKEN"] == "token"
    wanted = arguments[arguments.index("--jq") + 1]
    # gh gives its filter one page after the other.
    for page in json.loads(os.environ["GH_PAGES"]):
        if os.environ["GH_FILTERS_WITH"] == "jq":
            subprocess.run(["jq", "-r", wanted], input=json.dumps(page), text=True, check=True)
            continue
        # Said in Python, and so for this one filter alone.
        assert " ".join(wanted.split()) == os.environ["GH_FILTERS_WITH"], wanted
        for item in page:
            if item["user"]["login"] == "github-actions[bot]":
                if item["body"].startswith("<!-- slipway: affected -->"):
                    print(item["id"])
"""

# The filter that GH says in Python: where jq is not installed, and beside it where it is.
IN_PYTHON = (
    '.[] | select(.user.login == "github-actions[bot]") '
    '| select(.body | startswith("<!-- slipway: affected -->")) | .id'
)


@pytest.fixture(
    params=[
        pytest.param(IN_PYTHON, id="in_python"),
        pytest.param(
            "jq",
            marks=pytest.mark.skipif(
                shutil.which("jq") is None,
                reason="jq, whose language gh --jq has, is not installed: the filter is tried in Python alone",
            ),
        ),
    ]
)
def filters_with(request):
    """What the stand-in for gh filters comments with."""
    return request.param


def comment(
    folder: Path, pages: list[Any], filters_with: str, **variables: str
) -> tuple[int, list[list[str]], str]:
    """Run the step that comments: how it ended, the calls of gh, and the comment."""
    programs = folder / "programs"
    programs.mkdir()
    (programs / "gh").write_text(GH.replace("{python}", sys.executable))
    (programs / "gh").chmod(0o755)
    (folder / "affected.md").write_text("**table**\n")
    log = folder / "gh.log"
    ended = run_script(
        COMMENT["run"],
        folder,
        {
            **runner_variables(folder, folder),
            **own_variables(COMMENT, {"github.token": "token", "github.event.pull_request.number": "7"}),
            **variables,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "GH_LOG": str(log),
            "GH_PAGES": json.dumps(pages),
            "GH_FILTERS_WITH": filters_with,
        },
    )
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    return ended.status, calls, (folder / "comment.md").read_text()


def a_comment(number: int, body: str, who: str = "github-actions[bot]") -> dict[str, Any]:
    return {"id": number, "user": {"login": who}, "body": body}


COMMENTS = "repos/someone/experiments/issues/7/comments"


def test_the_first_comment_is_written(tmp_path, filters_with):
    pages = [[a_comment(1, "hello", "someone"), a_comment(2, f"{MARK}\nnot ours", "someone")]]
    status, calls, text = comment(tmp_path, pages, filters_with)
    assert (status, text) == (0, f"{MARK}\n**table**\n")
    assert calls[1:] == [["api", "--method", "POST", COMMENTS, "-F", "body=@comment.md"]]


def test_an_earlier_comment_of_ours_is_written_anew_wherever_it_is(tmp_path, filters_with):
    pages = [
        [a_comment(2, f"{MARK}\nnot ours", "someone"), a_comment(3, f"I quote {MARK}")],
        [a_comment(4, f"{MARK}\nold"), a_comment(5, f"{MARK}\nold too")],
    ]
    status, calls, _ = comment(tmp_path, pages, filters_with)
    assert status == 0
    patch = [
        "api",
        "--method",
        "PATCH",
        "repos/someone/experiments/issues/comments/4",
        "-F",
        "body=@comment.md",
    ]
    assert calls[1:] == [patch]


def test_nothing_is_written_where_the_comments_cannot_be_read(tmp_path):
    status, calls, _ = comment(tmp_path, [], IN_PYTHON, GH_FAILS="yes")
    assert status != 0 and len(calls) == 1


def test_findings_in_sarif_are_what_code_scanning_takes(tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    bad = tmp_path / "experiments/with space/golden"
    bad.mkdir(parents=True)
    text = Path(__file__).resolve().parents[2] / "docs/examples/five_faults.yaml"
    shutil.copy(text, bad / "launch.yaml")
    assert launcher(["lint", "--format=sarif", "experiments/with space/golden/launch.yaml"]) == 1
    log = json.loads(capfdbinary.readouterr().out)
    assert len(log["runs"][0]["results"]) >= 4
    assert sarif_problems(log, tmp_path) == []
    assert sarif_problems(log, tmp_path / "elsewhere") != []


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-rs", *sys.argv[1:]]))
