"""A write-once store in a folder. One host or a shared file system with hard links."""

import contextlib
import os
import time
from pathlib import Path
from typing import Final

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.documents.files import write_once
from tools.launcher.store.keys import validate_key, validate_prefix
from tools.launcher.store.object_store import ObjectConflict, ObjectMissing, PutOutcome, StoreUnavailable

OLD_SECONDS: Final = 24 * 60 * 60.0
"""Age at which a temporary file counts as left behind: no write takes that long, and no clocks of machines
that share a file system differ so much."""


class FileStore:
    """Objects as files below `root`; see `ObjectStore` for the promises.

    A hard link from a synced temporary file is the one atomic step, so of many writers exactly one
    creates the object and a reader never sees half of it. Temporary files start with a dot,
    which no key can: those a crash leaves behind are invisible, and a writer that creates an object
    beside one removes it when it is OLD_SECONDS old.
    """

    def __init__(self, root: Path) -> None:
        """Use the folder `root` (absolute), made at the first write.

        Raises:
            StoreUnavailable: if `root` is relative.
        """
        if not root.is_absolute():
            raise StoreUnavailable(
                f"file://{root}", "open it", "the path is relative; give file:///absolute/folder"
            )
        self._root = root

    @property
    def url(self) -> str:
        """`file://` and the absolute folder."""
        return f"file://{self._root}"

    def put_if_absent(self, key: str, data: bytes) -> PutOutcome:
        """See `ObjectStore.put_if_absent`."""
        path = self._root / validate_key(key)
        try:
            # An object that exists is the common case of a repeated launch: spare it the writes.
            if not path.exists():
                _make_folders(path.parent)
                if write_once(path, data):
                    _remove_old_temporaries(path.parent)
                    return PutOutcome.CREATED
            stored = path.read_bytes()
            # Whoever wrote it may have been killed before the name was on the disk for good.
            _sync(path.parent)
        except OSError as error:
            raise self._unavailable(f"write {key}", error) from None
        if stored == data:
            return PutOutcome.EQUAL
        raise ObjectConflict(key, sha256_hex(stored), sha256_hex(data))

    def get(self, key: str) -> bytes:
        """See `ObjectStore.get`."""
        path = self._root / validate_key(key)
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise ObjectMissing(key, self.url) from None
        except OSError as error:
            raise self._unavailable(f"read {key}", error) from None

    def exists(self, key: str) -> bool:
        """See `ObjectStore.exists`."""
        try:
            return (self._root / validate_key(key)).is_file()
        except OSError as error:
            raise self._unavailable(f"look for {key}", error) from None

    def list(self, prefix: str) -> tuple[str, ...]:
        """See `ObjectStore.list`."""
        validate_prefix(prefix)
        folder, _, _ = prefix.rpartition("/")
        keys = []

        def stop(error: OSError) -> None:
            # A folder that is not there holds no keys; any other failure must not look like "none".
            if not isinstance(error, FileNotFoundError | NotADirectoryError):
                raise error

        try:
            for place, folders, files in os.walk(self._root / folder, onerror=stop):
                folders[:] = [name for name in folders if not name.startswith(".")]
                inside = Path(place).relative_to(self._root)
                keys += [(inside / name).as_posix() for name in files if not name.startswith(".")]
        except OSError as error:
            raise self._unavailable(f"list {prefix or 'all keys'}", error) from None
        return tuple(sorted(key for key in keys if key.startswith(prefix)))

    def _unavailable(self, doing: str, error: OSError) -> StoreUnavailable:
        return StoreUnavailable(self.url, doing, error.strerror or str(error))


def _make_folders(folder: Path) -> None:
    """Make `folder` so that a crash after an object's write cannot lose the folders above it."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        new.mkdir(exist_ok=True)
        _sync(new.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_old_temporaries(folder: Path) -> None:
    """Remove what writers left that did not come to their end, however that was.

    A writer so slow that its file is taken away fails at the link and says so; nothing is lost.
    """
    oldest = time.time() - OLD_SECONDS
    for path in folder.glob(".*.tmp"):
        # Another writer may clean up at the same time, and what cannot be removed does no harm.
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()
