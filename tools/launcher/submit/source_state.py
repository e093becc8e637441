"""Who launches, from which source. Read at launch only: none of it may enter a build action."""

import getpass
import socket
import subprocess
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from tools.launcher.store.records import utc_now

# `git status` of a large checkout on a cold cache; a launch must not hang on a dead network file system.
GIT_SECONDS = 20.0


class SourceState(BaseModel):
    """Facts about the launching person and checkout.

    Attributes:
        who: `user@host`.
        when: RFC 3339, UTC.
        source_commit: 40 hex digits, None if unknown.
        dirty: True if the checkout differs from that commit, None if unknown.
        note: why something is unknown; "" if nothing is.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    who: str
    when: str
    source_commit: str | None
    dirty: bool | None
    note: str


def read_source_state(environ: Mapping[str, str]) -> SourceState:
    """Return the state of the checkout that `bazel run` was called in.

    Args:
        environ: the process environment; BUILD_WORKSPACE_DIRECTORY names the checkout.

    Never raises: a launch does not need git, it only says that it does not know.
    """
    commit, dirty, note = _read_checkout(environ)
    return SourceState(who=_who(), when=utc_now(), source_commit=commit, dirty=dirty, note=note)


def _who() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container without an entry for the user
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def _read_checkout(environ: Mapping[str, str]) -> tuple[str | None, bool | None, str]:
    folder = environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not folder:
        return None, None, "source unknown: not started by `bazel run` (BUILD_WORKSPACE_DIRECTORY is not set)"
    try:
        commit = _git(folder, "rev-parse", "--verify", "HEAD").strip()
        dirty = bool(_git(folder, "status", "--porcelain").strip())
    except FileNotFoundError:
        return None, None, "source unknown: there is no `git` command"
    except subprocess.TimeoutExpired:
        return None, None, f"source unknown: git did not answer within {GIT_SECONDS:g} s"
    except (subprocess.CalledProcessError, OSError, UnicodeDecodeError) as error:
        said = getattr(error, "stderr", None) or str(error)
        return (
            None,
            None,
            f"source unknown: git says {said.strip().splitlines()[0] if said.strip() else 'nothing'}",
        )
    return commit, dirty, ""


def _git(folder: str, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "--no-optional-locks", "-C", folder, *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=GIT_SECONDS,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout
