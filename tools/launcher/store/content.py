"""Objects addressed by the digest of their bytes, verified when read."""

import re

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.documents.printable import printable
from tools.launcher.store.object_store import ObjectConflict, ObjectStore, StoreError

_DIGEST = re.compile(r"[0-9a-f]{64}")


class NoDigest(StoreError):
    """A text that is to name an object by its digest is none: a record may hold anything."""


class DigestMismatch(StoreError):
    """The bytes under a digest do not have that digest: torn, truncated or changed."""

    def __init__(self, key: str, expected: str, seen: str) -> None:
        self.key, self.expected, self.seen = key, expected, seen
        super().__init__(
            f"object {key} is damaged: its bytes have sha256:{seen}, expected sha256:{expected}. "
            "Delete that object and launch again, which writes it anew"
        )


def put_content(store: ObjectStore, prefix: str, data: bytes) -> str:
    """Store `data` at `<prefix>/<sha256 hex>` if absent and return the digest (64 hex digits).

    Raises:
        DigestMismatch: the object is there, damaged.
        StoreUnavailable: as the store.
    """
    digest = sha256_hex(data)
    key = f"{prefix}/{digest}"
    try:
        store.put_if_absent(key, data)
    except ObjectConflict as conflict:
        # Other bytes under our digest can only be damage.
        raise DigestMismatch(key, digest, conflict.stored_digest) from None
    return digest


def get_content(store: ObjectStore, prefix: str, digest: str) -> bytes:
    """Return the bytes at `<prefix>/<digest>`, after checking that they have that digest.

    Raises:
        NoDigest: it is not 64 hex digits.
        DigestMismatch: they do not.
        ObjectMissing, StoreUnavailable: as the store.
    """
    if not _DIGEST.fullmatch(digest):
        raise NoDigest(
            f"'{printable(digest)}' is no SHA-256 of an object below {prefix}/. The record that names it was not written "
            "by this launcher"
        )
    key = f"{prefix}/{digest}"
    data = store.get(key)
    seen = sha256_hex(data)
    if seen != digest:
        raise DigestMismatch(key, digest, seen)
    return data
