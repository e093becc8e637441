"""The objects of a run on a real cluster: in buckets, reached with the cluster's own credentials.

Reading and writing go through marin-rigging's conditional objects (rigging/filesystem/conditional_object.py),
which every scheme gives a real precondition: S3 `If-None-Match` and `If-Match`, Google Cloud Storage
generations, a lock on a file. Endpoint and credentials of S3-compatible stores come from the environment of
the task, where Iris puts them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tools.launcher.store.locations import UriError
from tools.launcher.store.object_store import StoreUnavailable

if TYPE_CHECKING:
    from rigging.filesystem.conditional_object import ConditionalObject

# Another writer changed the object between reading and replacing it: twice is chance, more is a fight.
_REPLACE_ATTEMPTS = 5


class BucketObjects:
    """Objects in buckets (`store.objects.Objects`). Opens connections when first used."""

    def read(self, uri: str) -> bytes | None:
        """See `Objects`."""

        def read() -> bytes | None:
            found = _object_at(uri).read()
            return None if found is None else found.data

        return _reached(uri, "read", read)

    def exists(self, uri: str) -> bool:
        """See `Objects`."""
        return _reached(uri, "look for", lambda: _object_at(uri).version() is not None)

    def write(self, uri: str, data: bytes) -> None:
        """See `Objects`."""
        from rigging.filesystem.conditional_object import ConditionalWriteError

        def write() -> bool:
            target = _object_at(uri)
            try:
                target.write(data, expected_version=target.version())
            except ConditionalWriteError:
                return False
            return True

        for _ in range(_REPLACE_ATTEMPTS):
            if _reached(uri, "write", write):
                return
        raise StoreUnavailable(_bucket(uri), f"write {uri}", "others keep changing it")

    def write_once(self, uri: str, data: bytes) -> bool:
        """See `Objects`."""
        from rigging.filesystem.conditional_object import ConditionalWriteError

        def write() -> bool:
            try:
                _object_at(uri).write(data, expected_version=None)
            except ConditionalWriteError:
                return False
            return True

        return _reached(uri, "write", write)


def _object_at(uri: str) -> "ConditionalObject":
    from rigging.filesystem.conditional_object import UnsupportedConditionalWrite, conditional_object

    try:
        return conditional_object(uri)
    except UnsupportedConditionalWrite:
        raise UriError(f"{uri}: no bucket of a cluster. Use s3:// or gs://") from None


def _reached[Result](uri: str, doing: str, action: Callable[[], Result]) -> Result:
    from botocore.exceptions import BotoCoreError, ClientError
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError

    try:
        return action()
    except (BotoCoreError, ClientError, GoogleAPIError, GoogleAuthError, OSError) as error:
        said = " ".join(str(error).split())[:300]
        raise StoreUnavailable(_bucket(uri), f"{doing} {uri}", f"{type(error).__name__}: {said}") from None


def _bucket(uri: str) -> str:
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"
