"""Small objects at the URIs of a launch document: artifact records, claims, manifests, attempt documents."""

from stat import S_ISREG
from typing import Protocol

from tools.launcher.documents.files import write_atomically, write_once
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import StoreUnavailable


class ObjectReader(Protocol):
    """Reading whole objects, never half of one.

    Every method raises StoreError for a URI that has no place here, and StoreUnavailable if the place
    cannot be reached or refuses.
    """

    def read(self, uri: str) -> bytes | None:
        """Return the object's content, None if there is no object."""
        ...

    def exists(self, uri: str) -> bool:
        """Tell whether there is an object, without fetching it: weights are large."""
        ...


class Objects(ObjectReader, Protocol):
    """Reading and writing whole objects; errors as `ObjectReader`."""

    def write(self, uri: str, data: bytes) -> None:
        """Make or replace the object."""
        ...

    def write_once(self, uri: str, data: bytes) -> bool:
        """Make the object unless there is one. Of several writers exactly one makes it.

        Returns:
            True if this call made it. False says that there is one; after a lost reply it may be this
            call's own, so whoever must know reads it and compares.
        """
        ...


class FolderObjects:
    """Objects as files below an object root."""

    def __init__(self, root: ObjectRoot) -> None:
        self.root = root

    def read(self, uri: str) -> bytes | None:
        """See `Objects`."""
        try:
            return self.root.path(uri).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._unavailable(f"read {uri}", error) from None

    def exists(self, uri: str) -> bool:
        """See `ObjectReader`."""
        try:
            return S_ISREG(self.root.path(uri).stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise self._unavailable(f"look for {uri}", error) from None

    def write(self, uri: str, data: bytes) -> None:
        """See `Objects`."""
        try:
            write_atomically(self.root.path(uri), data)
        except OSError as error:
            raise self._unavailable(f"write {uri}", error) from None

    def write_once(self, uri: str, data: bytes) -> bool:
        """See `Objects`."""
        try:
            return write_once(self.root.path(uri), data)
        except OSError as error:
            raise self._unavailable(f"write {uri}", error) from None

    def _unavailable(self, doing: str, error: OSError) -> StoreUnavailable:
        return StoreUnavailable(f"file://{self.root.root}", doing, error.strerror or str(error))
