"""A store whose objects are fetched once: they never change, and following a run reads them again and again."""

from tools.launcher.store.object_store import ObjectStore, PutOutcome


class RememberedReads:
    """Another store, of which no object is fetched twice.

    For a process that looks at the same few small objects many times: what was read is kept in memory. Which
    objects there are is asked anew each time.
    """

    def __init__(self, store: ObjectStore) -> None:
        """Read from `store`."""
        self._store = store
        self._read: dict[str, bytes] = {}

    @property
    def url(self) -> str:
        """The address of the store behind."""
        return self._store.url

    def put_if_absent(self, key: str, data: bytes) -> PutOutcome:
        """See `ObjectStore.put_if_absent`."""
        return self._store.put_if_absent(key, data)

    def get(self, key: str) -> bytes:
        """See `ObjectStore.get`."""
        if key not in self._read:
            self._read[key] = self._store.get(key)
        return self._read[key]

    def exists(self, key: str) -> bool:
        """See `ObjectStore.exists`."""
        return self._store.exists(key)

    def list(self, prefix: str) -> tuple[str, ...]:
        """See `ObjectStore.list`."""
        return self._store.list(prefix)
