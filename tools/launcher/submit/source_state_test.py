import os
import shutil
import subprocess
import sys

import pytest

from tools.launcher.submit import source_state
from tools.launcher.submit.source_state import read_source_state

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="this test runs git")


def git(folder, *arguments):
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


@needs_git
def test_a_clean_checkout(checkout):
    state = read_source_state({"BUILD_WORKSPACE_DIRECTORY": str(checkout)})
    head = (checkout / ".git" / "HEAD").read_text().split()[1]
    assert state.source_commit == (checkout / ".git" / head).read_text().strip()
    assert state.dirty is False
    assert state.note == ""
    assert "@" in state.who
    assert state.when.endswith("Z")


@needs_git
@pytest.mark.parametrize("name", ["file", "untracked"])
def test_a_dirty_checkout(checkout, name):
    (checkout / name).write_text("two")
    assert read_source_state({"BUILD_WORKSPACE_DIRECTORY": str(checkout)}).dirty is True


@needs_git
def test_the_checkout_of_a_git_hook_is_another(checkout, tmp_path_factory, monkeypatch):
    """Breaker, issue 4: git sets GIT_DIR for hooks, and a launch from one looked at the wrong checkout."""
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    state = read_source_state({"BUILD_WORKSPACE_DIRECTORY": str(checkout)})
    assert (state.dirty, state.note) == (False, "")


@needs_git
def test_what_differs_is_named_as_it_is(checkout):
    git(checkout, "config", "status.showUntrackedFiles", "no")  # must not hide what a build would read
    (checkout / "file").rename(checkout / "a b\n\u00e4")
    (checkout / "folder").mkdir()
    (checkout / "folder" / "inner").write_text("new")
    (checkout / os.fsdecode(b"\xff")).write_text("no UTF-8")
    state = read_source_state({"BUILD_WORKSPACE_DIRECTORY": str(checkout)})
    assert state.dirty is True
    assert sorted(state.changed) == ["a b\n\u00e4", "file", "folder/", "\ufffd"]


@needs_git
def test_a_folder_without_git(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    state = read_source_state({"BUILD_WORKSPACE_DIRECTORY": str(tmp_path)})
    assert (state.source_commit, state.dirty) == (None, None)
    assert state.note.startswith("source unknown: git says fatal: not a git repository")


def test_outside_bazel_run():
    state = read_source_state({})
    assert (state.source_commit, state.dirty) == (None, None)
    assert state.note == "source unknown: not started by `bazel run` (BUILD_WORKSPACE_DIRECTORY is not set)"


def test_no_git_command(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    state = read_source_state({"BUILD_WORKSPACE_DIRECTORY": str(tmp_path)})
    assert (state.source_commit, state.note) == (None, "source unknown: there is no `git` command")


def test_a_git_that_hangs(tmp_path, monkeypatch):
    def hang(*arguments, timeout, **rest):
        raise subprocess.TimeoutExpired("git", timeout)

    monkeypatch.setattr(source_state.subprocess, "run", hang)
    state = read_source_state({"BUILD_WORKSPACE_DIRECTORY": str(tmp_path)})
    assert state.note == "source unknown: git did not answer within 20 s"


def test_a_user_without_a_name(monkeypatch):
    def nobody():
        raise OSError("No username set in the environment")

    monkeypatch.setattr(source_state.getpass, "getuser", nobody)
    assert read_source_state({}).who.startswith("unknown@")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
