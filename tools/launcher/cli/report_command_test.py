"""The report's build action, and `:report` on a terminal and off it."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tools.launcher.cli import report_command, report_writer
from tools.launcher.cli.built_experiment_testlib import SOURCE, build
from tools.launcher.render.plan import LaunchPlan


@pytest.fixture(scope="module")
def plan(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    return Path(build(folder, SOURCE.read_text(encoding="utf-8"))["plan"])


def written(plan: Path, folder: Path) -> Path:
    page = folder / "x.report.html"
    assert report_writer.main([f"--plan={plan}", f"--report_out={page}"]) == 0
    return page


def test_the_action_writes_the_same_bytes_each_time(plan, tmp_path):
    page = written(plan, tmp_path)
    first = page.read_bytes()
    assert first.startswith(b"<!DOCTYPE html>") and b"//experiments/gsm8k_grpo:gsm8k_grpo" in first
    assert written(plan, tmp_path).read_bytes() == first


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file or directory. Name the plan.json of an experiment"),
        (b"{}", "this is no plan of this launcher: it does not read as one. Build the experiment again"),
        (b"\xff", "this is no plan of this launcher: it does not read as one. Build the experiment again"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path, capsys, content, says):
    plan = tmp_path / "plan.json"
    if content is not None:
        plan.write_bytes(content)
    assert report_writer.main([f"--plan={plan}", f"--report_out={tmp_path / 'page'}"]) == 2
    assert capsys.readouterr().err == f"error: {plan}: {says}\n"
    assert not (tmp_path / "page").exists()


def test_a_plan_of_an_earlier_launcher_is_refused(plan, tmp_path, capsys):
    old = LaunchPlan.model_validate_json(plan.read_bytes()).model_dump(mode="json", exclude={"detail"})
    path = tmp_path / "plan.json"
    path.write_text(LaunchPlan.model_validate(old, strict=False).model_dump_json())
    assert report_writer.main([f"--plan={path}", f"--report_out={tmp_path / 'page'}"]) == 2
    assert "it has no `detail`: an earlier launcher wrote it. Build" in capsys.readouterr().err


def test_the_path_is_printed(plan, tmp_path, capsys):
    page = written(plan, tmp_path)
    link = tmp_path / "link.html"
    link.symlink_to(page)
    assert report_command.run([f"--report={link}"]) == 0
    assert capsys.readouterr().out == f"{page.resolve()}\n"


def test_the_path_is_the_workspaces_own_where_that_leads_to_it(plan, tmp_path, capsys, monkeypatch):
    (tmp_path / "out").mkdir()
    page = written(plan, tmp_path / "out")
    (tmp_path / "bazel-bin").symlink_to(tmp_path / "out")
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    assert report_command.run([f"--report={page}"]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/bazel-bin/x.report.html\n"


def test_a_copy_goes_where_the_user_stands(plan, tmp_path, capsys, monkeypatch):
    page = written(plan, tmp_path)
    monkeypatch.setenv("BUILD_WORKING_DIRECTORY", str(tmp_path))
    assert report_command.run([f"--report={page}", "--output=copy.html"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'copy.html'}\n"
    assert (tmp_path / "copy.html").read_bytes() == page.read_bytes()


def test_an_impossible_place_is_refused(plan, tmp_path, capsys):
    page = written(plan, tmp_path)
    target = tmp_path / "none" / "copy.html"
    assert report_command.run([f"--report={page}", f"--output={target}"]) == 2
    assert capsys.readouterr().err == (
        f"error: --output={target}: No such file or directory. Name a file in a folder that exists\n"
    )


def test_without_a_page_nothing_opens(tmp_path, capsys):
    assert report_command.run([f"--report={tmp_path / 'none'}"]) == 2
    assert "Build the experiment first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("terminal", "flags", "opens"), [(True, [], True), (True, ["--no-open"], False), (False, [], False)]
)
def test_a_browser_opens_on_a_terminal_only(plan, tmp_path, terminal, flags, opens):
    """A real process, a real terminal, and a program that stands where $BROWSER points."""
    page = written(plan, tmp_path)
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\necho "$1" >"{seen}"\n')
    browser.chmod(0o755)
    controller, follower = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tools.launcher.cli.report_main", f"--report={page}", *flags],
            stdout=follower if terminal else subprocess.PIPE,
            env=os.environ | {"BROWSER": f"{browser} %s", "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
        printed = os.read(controller, 4096).decode() if terminal else done.stdout.decode()
    finally:
        os.close(controller)
        os.close(follower)
    assert done.returncode == 0
    assert printed.strip() == str(page.resolve())
    assert seen.exists() == opens
    if opens:
        assert seen.read_text().strip() == page.resolve().as_uri()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
