"""Where the objects of a document's URIs lie on a machine without object storage."""

import re
from pathlib import Path

from tools.launcher.store.object_store import StoreError

# The object schemes of the launch document's artifact and input URIs, and `local` for local clusters.
SCHEMES = ("gs", "local", "s3")

_URI = re.compile(r"(?P<scheme>[a-z0-9]+)://(?P<rest>.+)\Z", re.DOTALL)


class UriError(StoreError):
    """A URI cannot be mapped to a file. The message names it, the rule and the fix."""


class ObjectRoot:
    """A folder that stands for all buckets: `s3://b/k` is `<root>/s3/b/k`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, uri: str) -> Path:
        """Return the file or folder of `uri`, existing or not.

        Args:
            uri: `s3://`, `gs://` or `local://`, a bucket and optionally a key. One final slash is ignored.

        Raises:
            UriError: another scheme, an empty or dot segment, a backslash or a control character.
        """
        match = _URI.match(uri)
        if match is None:
            raise UriError(f"{uri!r} is not an object URI. Use s3://, gs:// or local://, a bucket and a key")
        scheme, rest = match["scheme"], match["rest"].removesuffix("/")
        if scheme not in SCHEMES:
            raise UriError(f"{uri}: the scheme {scheme}:// is not known here. Use s3://, gs:// or local://")
        segments = rest.split("/")
        for segment in segments:
            if segment in ("", ".", ".."):
                raise UriError(
                    f"{uri}: the path has the segment {segment!r}. Remove empty, '.' and '..' segments"
                )
            if "\\" in segment or not segment.isprintable():
                raise UriError(
                    f"{uri!r}: the segment {segment!r} has a backslash or a control character. Remove it"
                )
        return self.root.joinpath(scheme, *segments)
