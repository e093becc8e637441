"""Another revision of the workspace, checked out beside it and built by a Bazel server of its own.

The checkout has an index of its own, so neither branches, index nor list of worktrees of the user's
repository change. It is kept, so that the next revision costs only what differs: files, analysis, actions.
"""

import contextlib
import fcntl
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.launcher.cli.affected_bazel import Workspace
from tools.launcher.cli.diff_git import git

# Options that are personal, such as a shared cache; read by Bazel from the root of a workspace.
USER_OPTIONS = "user.bazelrc"

# Seconds after which the server of the checkout ends by itself.
_IDLE_SECONDS = 1800


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return where this user's caches are, those of tools/bazel too."""
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME") or "~").expanduser() / ".cache")
    return Path(base) / "slipway"


@contextlib.contextmanager
def checkout_of(workspace: Path, commit: str, environ: Mapping[str, str]) -> Iterator[Workspace]:
    """Yield a workspace with the files of `commit`; nobody else changes it meanwhile.

    Args:
        workspace: the user's, inside a git repository.
        commit: its id.
        environ: the process environment, for the cache folder.

    Raises:
        GitProblem: the revision cannot be checked out.
        OSError: the cache folder cannot be written.
    """
    name = hashlib.sha256(str(workspace.resolve()).encode()).hexdigest()[:12]
    home = cache_folder(environ) / "revisions" / name
    files = home / "checkout"
    files.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        root = Path(git(workspace, "rev-parse", "--show-toplevel").decode().strip())
        own = {"GIT_INDEX_FILE": str(home / "index"), "GIT_WORK_TREE": str(files)}
        git_folder = git(workspace, "rev-parse", "--absolute-git-dir").decode().strip()
        git(files, f"--git-dir={git_folder}", "read-tree", "--reset", "-u", commit, variables=own)
        inner = files / workspace.resolve().relative_to(root.resolve())
        options = workspace / USER_OPTIONS
        if options.is_file():
            shutil.copy2(options, inner / USER_OPTIONS)
        else:
            (inner / USER_OPTIONS).unlink(missing_ok=True)
        startup = (f"--output_base={home / 'output'}", f"--max_idle_secs={_IDLE_SECONDS}")
        yield Workspace(folder=inner, startup=startup)


def user_options(workspace: Path) -> bytes:
    """Return the user's own options of Bazel, b"" if there are none."""
    try:
        return (workspace / USER_OPTIONS).read_bytes()
    except FileNotFoundError:
        return b""
