"""The id that git would give to the files of the workspace as they are, committed or not.

Nothing of the user's repository is changed for it: index and new objects are in a temporary folder.
"""

import shutil
import tempfile
from pathlib import Path

from tools.launcher.cli.diff_git import GitProblem, git


def tree_of_files(folder: Path) -> str | None:
    """Return the id of all content below `folder` that a commit of everything would have, None if git cannot tell.

    Files that git ignores do not count, as they do not for a commit.
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
            (own / "objects").mkdir()
            # With what it knows of the files, so that only those that were edited are read.
            shutil.copy2(index, own / "index")
            git(folder, "add", "--all", "--", ".", variables=variables)
            written = git(
                folder, "write-tree", *([f"--prefix={prefix}"] if prefix else []), variables=variables
            )
    except (GitProblem, OSError):
        return None
    return written.decode().strip()
