"""Canonical JSON and digests over it.

A digest must not depend on how a document happens to be written: key order, YAML style and
the machine's locale must not move it. So every digest is taken over one encoding with sorted
keys, no white space, UTF-8, ints and floats kept apart, and nothing that lacks a stable
identity (NaN, sets, objects) let in.
"""

import hashlib
import json
import math
from typing import Any

_MAX_BITS = 64  # What other readers of JSON and YAML hold; beyond 4300 digits Python itself writes none.


class CanonicalEncodingError(ValueError):
    """A value has no canonical form. The message names its place and the fix."""


def canonical_json(value: object) -> bytes:
    """Encode `value` as canonical JSON.

    Args:
        value: nested mappings with string keys, lists, tuples, strings, integers, finite
            floats, booleans and None.

    Returns:
        UTF-8 bytes without a final newline. `1` and `1.0` give different bytes.

    Raises:
        CanonicalEncodingError: for any other type, for NaN and infinities, for integers of more
            than 64 bits, for keys which are not strings, and for text that is not valid Unicode.
    """
    if not _is_canonical(value):
        _require_canonical(value, "$")
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        _require_canonical(value, "$")
        raise


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def digest_of(value: object) -> str:
    """Return the SHA-256 (64 hex digits) of the canonical JSON of `value`.

    Raises:
        CanonicalEncodingError: if `value` has no canonical form.
    """
    return sha256_hex(canonical_json(value))


def _is_canonical(value: Any) -> bool:
    """Whether `_require_canonical` accepts a value, text apart; it needs no places, and so a quarter of the time."""
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                return False
            # Most values are text, for which no call is needed.
            if type(item) is not str and not _is_canonical(item):
                return False
        return True
    if kind is str or value is None or kind is bool:
        return True
    if kind is list or kind is tuple:
        return all(map(_is_canonical, value))
    if kind is int:
        return bool(value.bit_length() <= _MAX_BITS)
    return kind is float and math.isfinite(value)


def _require_canonical(value: Any, place: str) -> None:
    # `type(...) is` on purpose: a subclass (an IntEnum, a str with behaviour) would encode as
    # its base and so hide what it is.
    kind = type(value)
    if value is None or kind is bool:
        return
    if kind is str:
        _require_unicode(value, place)
        return
    if kind is int:
        if value.bit_length() > _MAX_BITS:
            raise CanonicalEncodingError(
                f"{place} is an integer of {value.bit_length()} bits. Use at most {_MAX_BITS}"
            )
        return
    if kind is float:
        if not math.isfinite(value):
            raise CanonicalEncodingError(f"{place} is {value!r}, which JSON cannot hold. Use a finite number")
        return
    if kind in (list, tuple):
        for index, item in enumerate(value):
            _require_canonical(item, f"{place}[{index}]")
        return
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise CanonicalEncodingError(
                    f"{place} has the key {key!r} ({type(key).__name__}). Use string keys"
                )
            _require_unicode(key, f"a key of {place}")
            _require_canonical(item, f"{place}.{key}")
        return
    raise CanonicalEncodingError(
        f"{place} is a {kind.__name__}, which has no stable identity. Use text, numbers, lists or mappings"
    )


def _require_unicode(text: str, place: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise CanonicalEncodingError(f"{place} holds a lone surrogate. Use valid Unicode") from None
