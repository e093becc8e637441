"""Writing files so that a crash leaves either the old content or the new, never half."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data`: temporary file beside it, fsync, rename, fsync of the folder.

    Parent folders are made. Raises OSError as the operating system gives it.
    """
    with _written_beside(path, data) as temporary:
        Path(temporary).replace(path)
    _sync_folder(path.parent)


def write_once(path: Path, data: bytes) -> bool:
    """Create `path` with `data` unless something has that name already.

    A hard link is the atomic step: exactly one of several writers gets True, and a reader
    never sees a part of the content.

    Returns:
        True if this call created the file, False if it existed.
    """
    with _written_beside(path, data) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
    _sync_folder(path.parent)
    return True


@contextlib.contextmanager
def _written_beside(path: Path, data: bytes) -> Iterator[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        yield temporary
    finally:
        Path(temporary).unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
