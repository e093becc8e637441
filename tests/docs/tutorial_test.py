"""Tutorials: what a session is, what the researcher's page shows, and that nothing of it stays."""

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.docs import tutorial
from tests.docs.tutorial import PACKAGE, Step, missing, steps, take
from tools.launcher.cli.commands import run
from tools.launcher.cli.new_scaffold import LIST_FILES
from tools.launcher.cli.preflight_action import OUTPUTS, main

PAGE = Path("docs/researcher.md")
SESSION = steps(PAGE)
PYTHON = shlex.quote(sys.executable)


def test_a_session_is_read(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\nnot this\n```\n```console\n$ one --flag\nseen\n…\n    and this\n$ two # exit status 3\n```\n"
        "text\n```console\n$ three # why\n```\n"
    )
    assert steps(page) == [
        Step("one --flag", 0, ("seen", "    and this")),
        Step("two", 3, ()),
        Step("three", 0, ()),
    ]


def test_lines_are_looked_for_in_their_order():
    assert missing(("a", "c"), "a\nb\nc\n") is None
    assert missing(("c", "a"), "a\nb\nc\n") == "a"
    assert missing(("a", "d"), "a\nb\nc\n") == "d"


@pytest.fixture
def checkout(tmp_path):
    """The lists that a new experiment is added to."""
    for file in (*LIST_FILES, "tools/launcher/defs.bzl"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, tmp_path / file)
    (tmp_path / "MODULE.bazel").touch()
    return tmp_path


def test_a_session_ends_at_its_first_surprise_and_leaves_nothing(checkout):
    before = {file: (checkout / file).read_bytes() for file in LIST_FILES}
    code = (
        f"import pathlib; pathlib.Path('{PACKAGE}').mkdir(); pathlib.Path('{LIST_FILES[0]}').write_text('')"
    )
    session = [
        Step(f'{PYTHON} -c "{code}"', 0, ()),
        Step(f'{PYTHON} -c "print(1); raise SystemExit(3)"', 3, ("1",)),
        Step(f'{PYTHON} -c "print(1)"', 0, ("2",)),
        Step(f'{PYTHON} -c "print(2)"', 0, ()),
    ]
    results = list(take(session, checkout, os.environ))
    assert [problem is None for _, problem in results] == [True, True, False]
    assert "the document shows a line that is not there: 2" in str(results[-1][1])
    assert {file: (checkout / file).read_bytes() for file in LIST_FILES} == before
    assert not (checkout / PACKAGE).exists()


def test_another_exit_status_is_a_surprise(checkout):
    ((_, problem),) = take([Step("true", 3, ())], checkout, os.environ)
    assert problem is not None and problem.startswith("exit status 0, the document says 3")


def test_a_package_that_is_there_is_left_alone(checkout):
    mine = checkout / PACKAGE / "mine"
    mine.parent.mkdir()
    mine.touch()
    with pytest.raises(SystemExit, match="exists, and the tutorial makes it"):
        list(take([Step("true", 0, ())], checkout, os.environ))
    assert mine.exists()


def preflight(package: Path) -> int:
    return main(
        [
            f"--label=//{PACKAGE}:my_first",
            f"--main={package / 'experiment.py'}",
            "--version=2026.12.01",
            "--stage=rl",
            "--option=scale=smoke",
            "--runtime=third_party/marinskyrl/81ae0ef7.yaml",
            "--cluster=third_party/clusters/local.yaml",
            "--model=third_party/models/qwen3_0_6b.yaml",
            "--dataset=third_party/datasets/cat_count.yaml",
            *(f"--{name}_out={package / name}" for name in OUTPUTS),
        ]
    )


def edited(package: Path, step: Step) -> None:
    """Do what a `sed` of the page does to its file, and see that it does something."""
    _, _, expression, file = shlex.split(step.command)
    _, old, new, _ = expression.split("/")
    path = package / Path(file).name
    text = path.read_text()
    assert old.replace(".*", "") in text, step.command
    path.write_text(text.replace(old, new))


def test_the_page_shows_what_is_made_refused_and_accepted(checkout, monkeypatch, capsys):
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(checkout))
    package = checkout / PACKAGE
    verdicts = []
    for step in SESSION:
        if " -- new " in step.command:
            assert run(shlex.split(step.command.partition(" -- ")[2])) == 0
            assert missing(step.shown, capsys.readouterr().out) is None
        elif step.command.startswith("sed ") and "experiment.py" in step.command:
            edited(package, step)
        elif step.command.startswith("tools/bazel build "):
            status = preflight(package)
            verdicts.append(status)
            assert status == step.status
            assert missing(step.shown, capsys.readouterr().err) is None
    assert verdicts == [0, 1, 0]


def test_every_command_of_the_page_is_the_launchers_or_an_edit():
    for step in SESSION:
        assert step.command.startswith(("tools/bazel ", "sed -i ")), step
    assert tutorial.PACKAGE == "experiments/my_first"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
