"""Another revision of the workspace, checked out beside it and built by a Bazel server of its own.

The checkout has an index of its own, so neither branches, index nor list of worktrees of the user's
repository change. It is kept, so that the next revision costs only what differs: files, analysis, actions.
"""

import contextlib
import fcntl
import hashlib
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from tools.launcher.cli.affected_bazel import ANY_VISIBILITY, Workspace
from tools.launcher.cli.affected_tree import UNDISTURBED
from tools.launcher.cli.diff_git import GitProblem, git

# Options that are personal, such as a shared cache; read by Bazel from the root of a workspace.
USER_OPTIONS = "user.bazelrc"

# Settings of a repository that are about its own checkout: which files there are, and what watches them.
_SETTINGS = ("core.sparseCheckout=false", *UNDISTURBED)

# All files of a large repository, the first time.
CHECKOUT_SECONDS = 600.0

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
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        _take(lock)
        root = Path(git(workspace, "rev-parse", "--show-toplevel").decode().strip())
        git_folder = git(workspace, "rev-parse", "--absolute-git-dir").decode().strip()
        files = _files_of(commit, home, git_folder)
        inner = files / workspace.resolve().relative_to(root.resolve())
        if not inner.is_dir():
            raise GitProblem(
                f"{commit[:12]} has no folder {inner.relative_to(files)}, where the workspace is now"
            )
        options = workspace / USER_OPTIONS
        if options.is_file():
            shutil.copy2(options, inner / USER_OPTIONS)
        else:
            (inner / USER_OPTIONS).unlink(missing_ok=True)
        startup = (f"--output_base={home / 'output'}", f"--max_idle_secs={_IDLE_SECONDS}")
        yield Workspace(folder=inner, startup=startup, flags=(ANY_VISIBILITY,))


def _take(lock: IO[str]) -> None:
    """Wait until nobody else builds a revision of this workspace, and say so."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.stderr.write("waiting: another command builds a revision of this workspace\n")
        fcntl.flock(lock, fcntl.LOCK_EX)


def _files_of(commit: str, home: Path, git_folder: str) -> Path:
    """Check `commit` out below `home`, whose lock is held, and return where."""
    files, index, unfinished = home / "checkout", home / "index", home / "unfinished"
    if unfinished.exists() or not files.is_dir():
        # What was cut off may have left files that no index knows, and a build would take them in.
        shutil.rmtree(files, ignore_errors=True)
        index.unlink(missing_ok=True)
    (home / "index.lock").unlink(missing_ok=True)  # Of a git that was ended.
    files.mkdir(exist_ok=True)
    unfinished.touch()
    git(
        files,
        f"--git-dir={git_folder}",
        "read-tree",
        "--reset",
        "-u",
        commit,
        variables={"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(files), **_all_files()},
        seconds=CHECKOUT_SECONDS,
    )
    unfinished.unlink()
    return files


def _all_files() -> dict[str, str]:
    """Variables that switch settings off; git before 2.31 passes them over."""
    variables = {"GIT_CONFIG_COUNT": str(len(_SETTINGS))}
    for number, setting in enumerate(_SETTINGS):
        key, _, value = setting.partition("=")
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def user_options(workspace: Path) -> bytes:
    """Return the user's own options of Bazel, b"" if there are none."""
    try:
        return (workspace / USER_OPTIONS).read_bytes()
    except FileNotFoundError:
        return b""
