"""The files of a MarinSkyRL checkout, as text. Nothing in it is imported or run."""

import re
import stat
from pathlib import Path, PurePosixPath

MAX_FILE_BYTES = 1 << 20
"""No file that is read here has a tenth of it."""

_SOURCE_ROOTS = ("", "skyrl-train", "skyrl-gym")
"""Where a checkout keeps its Python packages."""

_COMMIT = re.compile(r"[0-9a-f]{40}")
_MAX_GIT_BYTES = 4 << 20  # packed-refs of a large repository


class ImportProblem(Exception):
    """A checkout cannot be read. `str()` names the file, the problem and the repair."""


class Checkout:
    """Read access to one folder, bounded and without leaving it.

    Attributes:
        root: the folder, absolute and without links.
    """

    def __init__(self, folder: Path) -> None:
        """Take `folder`. Raises ImportProblem if it is none."""
        if not folder.is_dir():
            raise ImportProblem(f"{folder}: there is no such folder. Give the checkout of MarinSkyRL")
        self.root = folder.resolve()

    def find(self, path: str) -> str | None:
        """Return the path of a package's file below the root, None where no source root has it."""
        for root in _SOURCE_ROOTS:
            place = (PurePosixPath(root) / path).as_posix()
            if (self.root / place).exists() or (self.root / place).is_symlink():
                return place
        return None

    def read(self, place: str) -> str:
        """Return the text of the file at `place`, a path below the root.

        Raises:
            ImportProblem: it is no regular file, leads outside the checkout, has more than
                MAX_FILE_BYTES, or is not UTF-8.
        """
        try:
            return self._bytes(place, MAX_FILE_BYTES).decode("utf-8")
        except UnicodeDecodeError as error:
            raise ImportProblem(
                f"{place}: byte {error.start} is not UTF-8 text. Restore the file of the commit"
            ) from None

    def head(self) -> str | None:
        """Return the commit that the checkout's git metadata names, None where they name none.

        `.git/HEAD` and the refs are read as files; git itself is not run.
        """
        metadata = self.root / ".git"
        try:
            if metadata.is_file():  # A linked work tree.
                pointer = _read_bounded(metadata).strip().removeprefix("gitdir: ")
                metadata = (self.root / pointer).resolve()
            named = _read_bounded(metadata / "HEAD").strip()
            if not named.startswith("ref: "):
                return named if _COMMIT.fullmatch(named) else None
            return _resolved(metadata, named.removeprefix("ref: "))
        except (OSError, ValueError, RuntimeError):
            return None

    def _bytes(self, place: str, limit: int) -> bytes:
        path = self.root / place
        try:
            real = path.resolve(strict=True)
            if not real.is_relative_to(self.root):
                raise ImportProblem(
                    f"{place}: the link leads outside the checkout. Put the file in its place"
                )
            status = real.stat()
            if not stat.S_ISREG(status.st_mode):
                raise ImportProblem(f"{place}: this is no regular file. Restore the file of the commit")
            if status.st_size > limit:
                raise ImportProblem(
                    f"{place}: the file has {status.st_size} bytes, the limit is {limit}. "
                    "Restore the file of the commit"
                )
            with real.open("rb") as file:
                return file.read(limit)
        except OSError as error:
            raise ImportProblem(f"{place}: {error.strerror}. Restore the file of the commit") from None
        except RuntimeError:  # Before Python 3.13 a circle of links is no OSError.
            raise ImportProblem(
                f"{place}: links that lead in a circle. Restore the file of the commit"
            ) from None


def _read_bounded(path: Path) -> str:
    if not path.is_file():
        raise ValueError(path)
    with path.open("rb") as file:
        return file.read(_MAX_GIT_BYTES).decode("utf-8")


def _resolved(metadata: Path, ref: str) -> str | None:
    common = metadata / "commondir"
    folders = (
        [metadata, (metadata / _read_bounded(common).strip()).resolve()] if common.is_file() else [metadata]
    )
    for folder in folders:
        loose = (folder / ref).resolve()
        if loose.is_relative_to(folder.resolve()) and loose.is_file():
            commit = _read_bounded(loose).strip()
            return commit if _COMMIT.fullmatch(commit) else None
    for folder in folders:
        packed = folder / "packed-refs"
        for line in _read_bounded(packed).splitlines() if packed.is_file() else ():
            commit, _, name = line.partition(" ")
            if name == ref and _COMMIT.fullmatch(commit):
                return commit
    return None
