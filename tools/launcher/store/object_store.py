"""What every store promises: objects are written once, whole, and never change."""

import enum
from typing import Protocol


class PutOutcome(enum.Enum):
    """What `put_if_absent` found.

    CREATED: this call wrote the object. EQUAL: it was there with the same bytes, which is also
    what a writer sees whose earlier success was never answered.
    """

    CREATED = "created"
    EQUAL = "equal"


class StoreError(Exception):
    """Base of everything a store raises. The message is meant for the user."""


class ObjectConflict(StoreError):
    """An object of that key exists with other bytes.

    Attributes:
        key: the key.
        stored_digest, offered_digest: SHA-256 (hex) of the two contents.
    """

    def __init__(self, key: str, stored_digest: str, offered_digest: str) -> None:
        self.key, self.stored_digest, self.offered_digest = key, stored_digest, offered_digest
        super().__init__(
            f"object {key} exists with other content: stored sha256:{stored_digest}, "
            f"offered sha256:{offered_digest}. Objects are written once; use another key"
        )


class ObjectMissing(StoreError):
    """There is no object of that key."""

    def __init__(self, key: str, store: str) -> None:
        self.key, self.store = key, store
        super().__init__(f"object {key} is not in the store {store}. Check the key and the store's address")


class ObjectDamaged(StoreError):
    """An object's bytes are not those that were written: torn, cut short or changed."""

    def __init__(self, key: str, store: str, what: str) -> None:
        self.key, self.store = key, store
        super().__init__(
            f"object {key} in the store {store} cannot be trusted: {what}. Run the command again; if the "
            "message stays, the object is damaged: move it away, then launch again, which writes it anew"
        )


class StoreUnavailable(StoreError):
    """The store could not be reached, read or written."""

    def __init__(
        self,
        store: str,
        doing: str,
        reason: str,
        fix: str = "Make it reachable and writable, then run the command again",
    ) -> None:
        self.store, self.doing, self.reason = store, doing, reason
        super().__init__(f"store {store}: cannot {doing}: {reason}. {fix}")


class ObjectStore(Protocol):
    """A write-once store. All implementations are safe across processes and crashes."""

    @property
    def url(self) -> str:
        """The address `open_store` opens this store from."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> PutOutcome:
        """Write `data` under `key` unless the key is taken.

        Raises:
            ObjectConflict: the key holds other bytes.
            InvalidKey: the key is not allowed.
            StoreUnavailable: the write failed; nothing or everything was written.
            ObjectDamaged: the store keeps other bytes than it was given, or gives back others.
        """
        ...

    def get(self, key: str) -> bytes:
        """Return the object's bytes.

        Raises:
            ObjectMissing, InvalidKey, StoreUnavailable.
            ObjectDamaged: what was read is not what was written.
        """
        ...

    def exists(self, key: str) -> bool:
        """Say whether the key is taken. Raises InvalidKey, StoreUnavailable."""
        ...

    def list(self, prefix: str) -> tuple[str, ...]:
        """Return all keys that start with `prefix` (text, not folders), sorted.

        Raises:
            InvalidKey, StoreUnavailable.
        """
        ...
