"""From a store's address to the store."""

from pathlib import Path
from urllib.parse import urlsplit

from tools.launcher.store.file_store import FileStore
from tools.launcher.store.object_store import ObjectStore, StoreError


class StoreAddressError(StoreError):
    """The address of a store cannot be used. The message names it and the fix."""


def open_store(url: str) -> ObjectStore:
    """Return the store at `url`.

    Args:
        url: `file:///absolute/folder`.

    Raises:
        StoreAddressError: any other address.
    """
    return FileStore(path_of_file_url(url, what="store"))


def path_of_file_url(url: str, *, what: str) -> Path:
    """Return the absolute folder a `file:///…` address names.

    Args:
        url: the address.
        what: how messages call the thing, such as "store".

    Raises:
        StoreAddressError: another scheme, a host, a relative path, a query or a percent escape.
    """
    parts = urlsplit(url)
    if parts.scheme == "gs":
        raise StoreAddressError(
            f"{what} {url}: Google Cloud Storage is not supported yet. Use file:///absolute/folder"
        )
    if parts.scheme != "file":
        raise StoreAddressError(
            f"{what} {url!r}: the address must start with file:///. Use file:///absolute/folder"
        )
    if parts.netloc or not parts.path.startswith("/"):
        raise StoreAddressError(
            f"{what} {url}: the address names the host {parts.netloc!r}. Use three slashes: "
            "file:///absolute/folder"
        )
    if parts.query or parts.fragment or "%" in parts.path or ".." in parts.path.split("/"):
        raise StoreAddressError(
            f"{what} {url}: the folder has '?', '#', '%' or '..'. Use the plain absolute path of a folder "
            "without them"
        )
    return Path(parts.path)
