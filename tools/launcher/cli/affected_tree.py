"""The id that git would give to the files of the workspace as they are, committed or not.

Nothing of the user's repository is changed for it: index and new objects are in a temporary folder.
"""

import os
import shutil
import tempfile
from pathlib import Path

from tools.launcher.cli.diff_git import GitProblem, git

UNDISTURBED = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.splitIndex=false")
"""Settings for an index of our own: the user's hooks and watchers are about the user's, and are not run for it."""

# Objects are deleted again at once: to compress them would be work for nothing.
_SETTINGS = (*UNDISTURBED, "core.looseCompression=0")

# A commit of a repository inside this one, whose files git does not look at.
_REPOSITORY = b"160000 "

# Of files that were edited or never added. All of them are copied, before the build and after it.
_MOST_BYTES = 64_000_000


def tree_of_files(folder: Path) -> str | None:
    """Return the id of all content below `folder` that a commit of everything would have.

    Files that git ignores do not count, as they do not for a commit.

    Returns:
        None if git cannot tell, or if it would not look at all files: there is a repository inside this one, or
        files that it was told to take as unchanged. None also if it would have to copy very large files.
    """
    try:
        index = folder / git(folder, "rev-parse", "--git-path", "index").decode().strip()
        objects = folder / git(folder, "rev-parse", "--git-path", "objects").decode().strip()
        prefix = git(folder, "rev-parse", "--show-prefix").decode().strip()
        with tempfile.TemporaryDirectory(prefix="slipway-tree-") as scratch:
            own = Path(scratch)
            variables = {
                "GIT_INDEX_FILE": str(own / "index"),
                "GIT_OBJECT_DIRECTORY": str(own / "objects"),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
            }
            settings = [word for setting in _SETTINGS for word in ("-c", setting)]

            def ask(*arguments: str) -> bytes:
                return git(folder, *settings, *arguments, variables=variables)

            (own / "objects").mkdir()
            # With what it knows of the files, so that only those that were edited are read.
            shutil.copy2(index, own / "index")
            tags = [entry[:1] for entry in _entries(ask("ls-files", "-z", "-v"))]
            if any(tag == b"S" or tag.islower() for tag in tags):
                return None
            named = _entries(ask("ls-files", "-z", "--others", "--modified", "--exclude-standard"))
            if _bytes_of(folder, named) > _MOST_BYTES:
                return None
            ask("add", "--all", "--", ".")
            if any(entry.startswith(_REPOSITORY) for entry in _entries(ask("ls-files", "-z", "--stage"))):
                return None
            written = ask("write-tree", *([f"--prefix={prefix}"] if prefix else []))
    except (GitProblem, OSError):
        return None
    return written.decode().strip()


def _entries(listed: bytes) -> list[bytes]:
    """What `ls-files -z` printed."""
    return [entry for entry in listed.split(b"\0") if entry]


def _bytes_of(folder: Path, names: list[bytes]) -> int:
    """How many bytes these files have; one that is gone has none."""
    total = 0
    for name in set(names):
        try:
            total += (folder / os.fsdecode(name)).lstat().st_size
        except FileNotFoundError:
            continue
    return total
