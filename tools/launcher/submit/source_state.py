"""Who launches, from which source. Read at launch only: none of it may enter a build action."""

import getpass
import os
import socket
import subprocess
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from tools.launcher.store.records import utc_now

# `git status` of a large checkout on a cold cache; a launch must not hang on a dead network file system.
GIT_SECONDS = 20.0

# Git sets these for hooks, and with them it answers for the checkout of the hook.
_OF_ANOTHER_CHECKOUT = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"}
)


class SourceState(BaseModel):
    """Facts about the launching person and checkout.

    Attributes:
        who: `user@host`.
        when: RFC 3339, UTC.
        source_commit: 40 hex digits, None if unknown.
        dirty: True if the checkout differs from that commit, None if unknown.
        note: why something is unknown; "" if nothing is.
        changed: what differs, relative to the checkout; a folder that git does not know ends with a slash.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    who: str
    when: str
    source_commit: str | None
    dirty: bool | None
    note: str
    changed: tuple[str, ...] = ()


def read_source_state(environ: Mapping[str, str]) -> SourceState:
    """Return the state of the checkout that `bazel run` was called in.

    Args:
        environ: the process environment; BUILD_WORKSPACE_DIRECTORY names the checkout.

    Never raises: a launch does not need git, it only says that it does not know.
    """
    commit, changed, note = _read_checkout(environ)
    return SourceState(
        who=_who(),
        when=utc_now(),
        source_commit=commit,
        dirty=None if changed is None else bool(changed),
        note=note,
        changed=changed or (),
    )


def _who() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container without an entry for the user
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def _read_checkout(environ: Mapping[str, str]) -> tuple[str | None, tuple[str, ...] | None, str]:
    """Commit, what differs from it (None is unknown), and why something is unknown."""
    folder = environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not folder:
        return None, None, "source unknown: not started by `bazel run` (BUILD_WORKSPACE_DIRECTORY is not set)"
    try:
        commit = _git(folder, "rev-parse", "--verify", "HEAD").strip()
        # With -z each entry is two letters, a space and the path as it is. A user's settings must not hide any.
        entries = _git(
            folder,
            "status",
            "--porcelain",
            "-z",
            "--no-renames",
            "--untracked-files=normal",
            "--ignore-submodules=none",
        ).split("\0")
    except FileNotFoundError:
        return None, None, "source unknown: there is no `git` command"
    except subprocess.TimeoutExpired:
        return None, None, f"source unknown: git did not answer within {GIT_SECONDS:g} s"
    except (subprocess.CalledProcessError, OSError) as error:
        said = getattr(error, "stderr", None) or str(error)
        return (
            None,
            None,
            f"source unknown: git says {said.strip().splitlines()[0] if said.strip() else 'nothing'}",
        )
    return commit, tuple(entry[3:] for entry in entries if entry), ""


def _git(folder: str, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "--no-optional-locks", "-C", folder, *arguments],
        check=True,
        capture_output=True,
        text=True,
        errors="replace",  # a file name need not be UTF-8
        timeout=GIT_SECONDS,
        stdin=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if name not in _OF_ANOTHER_CHECKOUT},
    )
    return done.stdout
