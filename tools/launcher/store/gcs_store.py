"""A write-once store in a bucket of Google Cloud Storage, for everybody who launches."""

import base64
import functools
import logging
import os
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.store.keys import InvalidKey, validate_key, validate_prefix
from tools.launcher.store.object_store import (
    ObjectConflict,
    ObjectDamaged,
    ObjectMissing,
    PutOutcome,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from google.api_core.retry import Retry
    from google.cloud.storage import Blob, Client

RETRY_SECONDS: Final = 10.0
"""How long a request is tried again before the store counts as unavailable. The client's own default is
two minutes, in which a person at a terminal has long given up."""

ATTEMPT_SECONDS: Final = 10.0
"""How long one attempt may wait for a connection, and then for each part of the answer."""


class GcsStore:
    """Objects in a bucket below a prefix; see `ObjectStore` for the promises.

    `ifGenerationMatch=0` makes creation the one atomic step and every request safe to repeat. After a
    lost reply the repeated request finds the object there (412): only its bytes tell whether it is
    this writer's own, so it is read back and compared. Nothing is ever overwritten or deleted.

    STORAGE_EMULATOR_HOST points the client at another server, which is then used without credentials.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        *,
        give_up_after_seconds: float = RETRY_SECONDS,
        attempt_seconds: float = ATTEMPT_SECONDS,
    ) -> None:
        """Use `prefix` ("" for all) in `bucket`, both as `open_store.place_of_gs_url` checked them.

        Args:
            bucket: name of the bucket.
            prefix: segments of keys, without a slash at either end.
            give_up_after_seconds: no attempt starts later than this after the first.
            attempt_seconds: see ATTEMPT_SECONDS.
        """
        self._bucket_name = bucket
        self._folder = f"{prefix}/" if prefix else ""
        self._give_up_after_seconds = give_up_after_seconds
        self._attempt_seconds = attempt_seconds

    @property
    def url(self) -> str:
        """`gs://`, the bucket and the prefix."""
        return f"gs://{self._bucket_name}/{self._folder}".removesuffix("/")

    def put_if_absent(self, key: str, data: bytes) -> PutOutcome:
        """See `ObjectStore.put_if_absent`."""
        from google.api_core.exceptions import PreconditionFailed

        validate_key(key)
        doing = f"write {key}"
        checksum = _crc32c(data)

        def upload() -> str | None:
            blob = self._blob(key)
            # The service compares this with what arrived and stores nothing that differs.
            blob.crc32c = checksum
            blob.upload_from_string(
                data,
                content_type="application/octet-stream",
                if_generation_match=0,
                timeout=self._attempt_seconds,
                # The client's own check of a long upload deletes what it finds wrong. Never here.
                checksum=None,
                retry=None,
            )
            return str(blob.crc32c)

        try:
            stored = self._run(doing, self._retried(upload), passing=PreconditionFailed)
        except PreconditionFailed:
            return self._compare(key, data)
        if stored != checksum:
            raise ObjectDamaged(
                key, self.url, f"its checksum there is crc32c {stored}, that of the bytes sent {checksum}"
            )
        return PutOutcome.CREATED

    def get(self, key: str) -> bytes:
        """See `ObjectStore.get`."""
        from google.api_core.exceptions import NotFound

        validate_key(key)

        def download() -> tuple[bytes, str | None]:
            blob = self._blob(key)
            # Whole and as stored: a resumed or unpacked download cannot be compared with a checksum.
            data = blob.download_as_bytes(
                raw_download=True, timeout=self._attempt_seconds, checksum=None, retry=None
            )
            return data, blob.crc32c

        # Once more before it is believed: bytes that were lost on the way are there the next time.
        for _ in range(2):
            try:
                data, stored = self._run(f"read {key}", self._retried(download), passing=NotFound)
            except NotFound:
                raise ObjectMissing(key, self.url) from None
            seen = _crc32c(data)
            if seen == stored:
                return data
        raise ObjectDamaged(
            key,
            self.url,
            f"the {len(data)} bytes that arrived have the checksum crc32c {seen}, stored is {stored}",
        )

    def exists(self, key: str) -> bool:
        """See `ObjectStore.exists`."""
        from google.api_core.exceptions import NotFound

        validate_key(key)

        def look() -> None:
            self._blob(key).reload(timeout=self._attempt_seconds, retry=None)

        try:
            self._run(f"look for {key}", self._retried(look), passing=NotFound)
        except NotFound:
            return False
        return True

    def list(self, prefix: str) -> tuple[str, ...]:
        """See `ObjectStore.list`. Objects whose names are no keys were not written here and are left out."""
        validate_prefix(prefix)

        def names() -> list[str]:
            pages = self._client.list_blobs(
                self._bucket_name,
                prefix=self._folder + prefix,
                fields="items(name),nextPageToken",
                timeout=self._attempt_seconds,
                retry=self._policy(),  # of each page
            )
            return [blob.name for blob in pages]

        found = self._run(f"list {prefix or 'all keys'}", names)
        keys = (name.removeprefix(self._folder) for name in found)
        return tuple(sorted(key for key in keys if _is_key(key)))

    def _compare(self, key: str, data: bytes) -> PutOutcome:
        """Tell what is under a key that is taken."""
        try:
            stored = self.get(key)
        except ObjectMissing:
            raise StoreUnavailable(
                self.url,
                f"write {key}",
                "the service says that it exists and then that it does not",
                "Objects of this store must not be deleted: check the bucket's lifecycle rules, then run "
                "the command again",
            ) from None
        if stored == data:
            return PutOutcome.EQUAL
        raise ObjectConflict(key, sha256_hex(stored), sha256_hex(data))

    @functools.cached_property
    def _client(self) -> "Client":
        # Without this the client asks in the background, and for minutes, what the bucket is like: a
        # permission more, for measurements that nobody here takes. It is read at every request.
        os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        from google.auth.exceptions import DefaultCredentialsError
        from google.cloud.storage import Client

        # What it would say about projects and quotas, and before each of its own retries, is noise.
        for name in ("google.auth", "urllib3.connectionpool"):
            logging.getLogger(name).setLevel(logging.ERROR)
        try:
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                return Client(project=None)  # Only making a bucket needs one.
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            # All of these have been seen for a credentials file that is JSON of another kind.
            reason = f"the credentials file cannot be used ({error})"
            raise DefaultCredentialsError(reason) from None  # type: ignore[no-untyped-call]  # google-auth

    def _blob(self, key: str) -> "Blob":
        return self._client.bucket(self._bucket_name).blob(self._folder + key)

    def _policy(self) -> "Retry":
        from google.api_core.retry import Retry

        from tools.launcher.store.gcs_errors import is_transient

        return Retry(
            predicate=is_transient,
            initial=0.1,
            maximum=2.0,
            multiplier=2.0,
            timeout=self._give_up_after_seconds,
        )

    def _retried[T](self, attempt: Callable[[], T]) -> Callable[[], T]:
        retried: Callable[[], T] = self._policy()(attempt)
        return retried

    def _run[T](self, doing: str, operation: Callable[[], T], *, passing: type[Exception] | None = None) -> T:
        """Return what `operation` returns, with the client's errors made into ours.

        Args:
            doing: for the message, such as `read <key>`.
            operation: what to do, with its retries.
            passing: the error that means something to the caller and is left as it is.

        Raises:
            StoreUnavailable: anything else the client raises.
        """
        from google.api_core.exceptions import RetryError

        from tools.launcher.store.gcs_errors import expected_failures, explain, says_no_bucket

        try:
            return operation()
        except expected_failures() as error:
            if passing and isinstance(error, passing) and not says_no_bucket(error):
                raise
            reason, fix = explain(error, server=_server())
            if isinstance(error, RetryError):
                reason += f"; tried for {self._give_up_after_seconds:g} seconds"
            raise StoreUnavailable(self.url, doing, reason, fix) from None


def _server() -> str:
    """Return the address the client uses, for messages."""
    return os.environ.get("STORAGE_EMULATOR_HOST") or "https://storage.googleapis.com"


def _crc32c(data: bytes) -> str:
    """Return the checksum of `data` as the service writes it: big-endian, base64."""
    import google_crc32c

    return base64.b64encode(google_crc32c.value(data).to_bytes(4, "big")).decode()


def _is_key(name: str) -> bool:
    try:
        validate_key(name)
    except InvalidKey:
        return False
    return True
