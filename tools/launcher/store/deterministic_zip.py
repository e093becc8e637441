"""Zip archives whose bytes depend only on the names and contents of their members."""

import io
import zipfile
from collections.abc import Mapping

# The earliest time the zip format can hold; any fixed one would do.
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)


def write_zip(members: Mapping[str, bytes]) -> bytes:
    """Return a zip of `members` (name to content), sorted by name.

    Stored, not deflated: compressed bytes differ between versions of zlib.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, _FIXED_TIME)
            info.create_system = 3  # Unix on every platform
            info.external_attr = 0o100644 << 16
            archive.writestr(info, members[name])
    return buffer.getvalue()
