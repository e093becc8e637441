"""Object keys: one spelling that is safe as a file path and as a bucket object name."""

import re

_SEGMENT = re.compile(r"[A-Za-z0-9_=+@~-][A-Za-z0-9._=+@~-]*\Z")

# ext4 and most others allow 255 bytes a name; the temporary file beside an object adds a suffix.
MAX_SEGMENT_CHARACTERS = 200
# Google Cloud Storage allows 1024 bytes for an object name.
MAX_KEY_CHARACTERS = 900


class InvalidKey(ValueError):
    """A key or prefix is not allowed. The message names it, the rule and the fix."""


def validate_key(key: str) -> str:
    """Return `key` unchanged if it is a legal object key.

    A key is one or more segments joined by single slashes. A segment has letters, digits and
    `. _ = + @ ~ -`, does not start with a dot (so `..` and hidden temporary files are never keys)
    and is at most MAX_SEGMENT_CHARACTERS long.

    Raises:
        InvalidKey: if it is not.
    """
    if not key:
        raise InvalidKey("object key '' is empty. Give a name such as bundles/sha256/<digest>")
    if key.startswith("/"):
        raise InvalidKey(
            f"object key {key!r} starts with '/'. Keys are relative to the store: drop the slash"
        )
    if len(key) > MAX_KEY_CHARACTERS:
        raise InvalidKey(
            f"object key {key[:40]!r}… has {len(key)} characters, the limit is {MAX_KEY_CHARACTERS}. "
            "Shorten the experiment's name"
        )
    for segment in key.split("/"):
        if len(segment) > MAX_SEGMENT_CHARACTERS:
            raise InvalidKey(
                f"object key {key[:40]!r}… has a segment of {len(segment)} characters, "
                f"the limit is {MAX_SEGMENT_CHARACTERS}. Shorten the experiment's name"
            )
        if not _SEGMENT.match(segment):
            raise InvalidKey(
                f"object key {key!r} has the segment {segment!r}. Use letters, digits and ._=+@~- only, "
                "not starting with a dot, and no empty segment"
            )
    return key


def validate_prefix(prefix: str) -> str:
    """Return `prefix` unchanged if it can begin a key: empty, a key, or a key and one slash.

    Raises:
        InvalidKey: if it cannot.
    """
    if prefix:
        validate_key(prefix.removesuffix("/"))
    return prefix
