"""Questions to git about the workspace's other revisions. Nothing of the repository is changed by them."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tools.launcher.documents.strict_yaml import MAX_BYTES

# A large checkout on a cold cache; a command must not hang on a dead network file system.
GIT_SECONDS = 20.0

# Git sets these for hooks, and with them it answers for the checkout of the hook.
_OF_ANOTHER_CHECKOUT = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
)


class GitProblem(Exception):
    """Git cannot answer. The message says what was asked, why not, and what to do."""


class GitFileTooLarge(GitProblem):
    """A file of a revision has more bytes than a document may have."""


def git(
    folder: Path, *arguments: str, variables: Mapping[str, str] | None = None, seconds: float = GIT_SECONDS
) -> bytes:
    """Run git in `folder` and return what it prints.

    Args:
        folder: where.
        arguments: of git.
        variables: for its environment.
        seconds: how long it may take.

    Raises:
        GitProblem: there is no git, it does not answer, or it refuses; `str()` has its first line.
    """
    environ = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER_CHECKOUT}
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(folder), *arguments],
            check=False,
            capture_output=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            env={**environ, **(variables or {})},
        )
    except FileNotFoundError:
        raise GitProblem(
            "there is no `git` command. Install git, or name files instead of revisions"
        ) from None
    except subprocess.TimeoutExpired:
        raise GitProblem(f"git did not answer within {seconds:g} s. Try again") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["nothing"]
        command = next(word for word in arguments if not word.startswith("-"))
        raise GitProblem(f"git {command} says: {said[0]}")
    return done.stdout


def commit_of(folder: Path, revision: str) -> str | None:
    """Return the commit that `revision` names, None if it names none.

    Raises:
        GitProblem: there is no git.
    """
    return _resolved(folder, f"{revision}^{{commit}}")


def tree_of(folder: Path, revision: str) -> str | None:
    """Return the id of all content below `folder` at `revision`, None if it names no commit."""
    prefix = git(folder, "rev-parse", "--show-prefix").decode().strip()
    return _resolved(folder, f"{revision}^{{commit}}:{prefix}" if prefix else f"{revision}^{{tree}}")


def file_at(folder: Path, revision: str, path: str) -> bytes:
    """Return a file as it was at a revision; `path` is relative to `folder`.

    Raises:
        GitProblem: there is none.
        GitFileTooLarge: it is larger than MAX_BYTES.
    """
    # Not `show`, which prints the names in a folder, too, and a file as its text conversion.
    name = f"{revision}:./{path}"
    size = int(git(folder, "cat-file", "-s", name))
    if size > MAX_BYTES:
        raise GitFileTooLarge(f"{name} has {size} bytes, the limit is {MAX_BYTES}. Name a launch document")
    return git(folder, "cat-file", "blob", name)


def is_clean(folder: Path) -> bool:
    """Whether the files of the checkout are those of HEAD, and no other lies beside them."""
    return not git(
        folder, "status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=none", "--", "."
    )


def _resolved(folder: Path, what: str) -> str | None:
    if what.startswith("-"):
        return None
    try:
        return git(folder, "rev-parse", "--verify", "--quiet", what).decode().strip() or None
    except GitProblem as problem:
        if "says: nothing" in str(problem):
            return None
        raise
