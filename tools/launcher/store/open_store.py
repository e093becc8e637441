"""From a store's address to the store."""

import re
from pathlib import Path
from urllib.parse import urlsplit

from tools.launcher.store.file_store import FileStore
from tools.launcher.store.gcs_store import GcsStore
from tools.launcher.store.keys import InvalidKey, validate_key
from tools.launcher.store.object_store import ObjectStore, StoreError

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]+[a-z0-9]")
_IP_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+")

# A name in a bucket has at most 1024 bytes, and a key up to MAX_KEY_CHARACTERS of them.
MAX_PREFIX_CHARACTERS = 120


class StoreAddressError(StoreError):
    """The address of a store cannot be used. The message names it and the fix."""


def open_store(url: str) -> ObjectStore:
    """Return the store at `url`. Nothing is read or written yet, and no server is asked.

    Args:
        url: `file:///absolute/folder`, or `gs://bucket` with optionally `/prefix`.

    Raises:
        StoreAddressError: any other address.
    """
    if url.startswith("gs:"):
        bucket, prefix = place_of_gs_url(url)
        return GcsStore(bucket, prefix)
    if not url.startswith("file:"):
        raise StoreAddressError(
            f"store {url!r}: the address must start with file:/// or gs://. Use file:///absolute/folder or "
            "gs://bucket/prefix"
        )
    return FileStore(path_of_file_url(url, what="store"))


def place_of_gs_url(url: str) -> tuple[str, str]:
    """Return bucket and prefix ("" for none) of a `gs://bucket/prefix` address. One final slash is ignored.

    Raises:
        StoreAddressError: a name that cannot be a bucket's (cloud.google.com/storage/docs/buckets#naming),
            or a prefix that is not made of segments of keys: so no query, fragment, percent escape or dots.
    """
    if not url.startswith("gs://"):
        raise StoreAddressError(f"store {url!r}: the address has no bucket. Use gs://bucket/prefix")
    bucket, _, prefix = url.removeprefix("gs://").partition("/")
    if not _is_bucket_name(bucket):
        raise StoreAddressError(
            f"store {url!r}: {bucket!r} cannot be the name of a bucket. Use 3 to 63 lower-case letters, "
            "digits, '-', '_' and '.' that start and end with a letter or digit: gs://bucket/prefix"
        )
    if not prefix:
        return bucket, ""
    prefix = prefix.removesuffix("/")
    try:
        validate_key(prefix)
    except InvalidKey:
        raise StoreAddressError(
            f"store {url!r}: the prefix {prefix!r} is not allowed. Use segments of letters, digits and "
            "._=+@~- that do not start with a dot, joined by single slashes"
        ) from None
    if len(prefix) > MAX_PREFIX_CHARACTERS:
        raise StoreAddressError(
            f"store {url[:60]!r}…: the prefix has {len(prefix)} characters, the limit is "
            f"{MAX_PREFIX_CHARACTERS}. Use a shorter one"
        )
    return bucket, prefix


def _is_bucket_name(name: str) -> bool:
    return (
        _BUCKET.fullmatch(name) is not None
        and not name.startswith("goog")
        and "google" not in name
        and not _IP_ADDRESS.fullmatch(name)
        and all(0 < len(part) <= 63 for part in name.split("."))
        and len(name) <= (222 if "." in name else 63)
    )


def path_of_file_url(url: str, *, what: str) -> Path:
    """Return the absolute folder a `file:///…` address names.

    Args:
        url: the address.
        what: how messages call the thing, such as "store".

    Raises:
        StoreAddressError: another scheme, a host, a relative path, a query or a percent escape.
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # half an IPv6 address
        raise StoreAddressError(f"{what} {url!r}: this is no address. Use file:///absolute/folder") from None
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
