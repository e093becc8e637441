"""What every store must do, as tests: subclass `StoreConformance` and give it a fixture `place`.

A test's `place` is empty when it begins, and nothing is ever deleted from it, so the same tests run
against a real bucket.
"""

import multiprocessing
import os
import random
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.synchronize import Barrier
from typing import Any

import pytest

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.store.keys import InvalidKey
from tools.launcher.store.object_store import ObjectConflict, ObjectMissing, ObjectStore, PutOutcome
from tools.launcher.store.open_store import open_store

WRITERS = 8

# Above 8 MiB the client of Google Cloud Storage takes another road, the resumable upload.
LARGE_BYTES = (8 << 20) + 4321

ODD_KEYS = (
    "0",
    "-",
    "~",
    "@host",
    "a=b/c+d@e~f-g",
    "a.b..c",
    "x.tmp",
    "CON",
    "b" * 200,
    "/".join(["c" * 98] * 9),
    "d/e/f/g/h/i/j/k/l/m",
    "runs/cat_count/" + "0" * 64 + "/1/events/0001.json",
)

REFUSED_KEYS = (
    "", "/a", "a/", "a//b", "../a", "a/../b", ".a", "a/.b", "a b", "a\n", "a\\b", "a%2fb", "a?b", "a#b", "ä",
    "a\0", "*", "d" * 201, "/".join(["e" * 100] * 10),
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where a test's objects go.

    Attributes:
        url: address of a store that is empty.
        environment: variables another process needs to reach it.
    """

    url: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def open(self) -> ObjectStore:
        """Return the store; call it once per process, and once per supposed user."""
        os.environ.update(self.environment)
        return open_store(self.url)


def fresh_prefix() -> str:
    """Return a prefix nobody used before."""
    return f"conformance-{uuid.uuid4().hex}"


def fork_server() -> Any:
    """Return the way to start processes: from one that has imported the client, and has no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "google.cloud.storage", "google.api_core.retry"])
    return context


def _race(place: Place, keys: list[str], data: bytes, barrier: Barrier, answers: Any, number: int) -> None:
    store = place.open()
    for key in keys:
        barrier.wait(60)
        try:
            answers.put((key, number, store.put_if_absent(key, data).value))
        except ObjectConflict:
            answers.put((key, number, "conflict"))


def race(place: Place, keys: list[str], contents: list[bytes]) -> dict[str, dict[int, str]]:
    """Have one process for each of `contents` write all `keys`, at the same moment each.

    Returns:
        for each key what each writer was answered.
    """
    context = fork_server()
    barrier, answers = context.Barrier(len(contents)), context.Queue()
    writers = [
        context.Process(target=_race, args=(place, keys, data, barrier, answers, number), daemon=True)
        for number, data in enumerate(contents)
    ]
    for writer in writers:
        writer.start()
    found: dict[str, dict[int, str]] = {key: {} for key in keys}
    for _ in range(len(keys) * len(contents)):
        key, number, answer = answers.get(timeout=60)
        found[key][number] = answer
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * len(writers)
    return found


class StoreConformance:
    """The promises of `ObjectStore`."""

    def test_an_object_is_written_once(self, place: Place) -> None:
        store = place.open()
        assert not store.exists("a/b")
        assert store.put_if_absent("a/b", b"one") is PutOutcome.CREATED
        assert store.put_if_absent("a/b", b"one") is PutOutcome.EQUAL
        assert store.get("a/b") == b"one"
        assert store.exists("a/b")
        assert not store.exists("a")
        assert not store.exists("a/b/c")

    def test_other_bytes_conflict_and_change_nothing(self, place: Place) -> None:
        store = place.open()
        store.put_if_absent("k", b"one")
        for other in (b"two", b"", b"one\n"):
            with pytest.raises(ObjectConflict) as raised:
                store.put_if_absent("k", other)
            assert str(raised.value) == (
                f"object k exists with other content: stored sha256:{sha256_hex(b'one')}, "
                f"offered sha256:{sha256_hex(other)}. Objects are written once; use another key"
            )
        assert store.get("k") == b"one"

    def test_a_missing_object_is_named(self, place: Place) -> None:
        store = place.open()
        store.put_if_absent("no/other", b"")
        for key in ("no/such", "no", "no/other/one"):
            with pytest.raises(ObjectMissing) as raised:
                store.get(key)
            assert str(raised.value) == (
                f"object {key} is not in the store {store.url}. Check the key and the store's address"
            )

    def test_the_address_opens_the_same_store(self, place: Place) -> None:
        store = place.open()
        store.put_if_absent("k", b"v")
        assert open_store(store.url).get("k") == b"v"
        assert open_store(f"{store.url}/").url == store.url

    def test_stores_side_by_side_are_apart(self, place: Place) -> None:
        place.open().put_if_absent("k", b"v")
        other = open_store(f"{place.open().url}-2")
        assert other.list("") == ()
        assert not other.exists("k")

    @pytest.mark.parametrize(
        "data", [b"", b"\0", bytes(range(256)), b"a\r\nb\r\n--x\r\n\r\n", b"\x1f\x8b\x08"]
    )
    def test_bytes_come_back_as_they_were(self, place: Place, data: bytes) -> None:
        store = place.open()
        store.put_if_absent("k", data)
        assert place.open().get("k") == data
        assert store.put_if_absent("k", data) is PutOutcome.EQUAL

    def test_a_large_object(self, place: Place) -> None:
        store = place.open()
        data = random.Random(4).randbytes(LARGE_BYTES)
        assert store.put_if_absent("large", data) is PutOutcome.CREATED
        assert store.put_if_absent("large", data) is PutOutcome.EQUAL
        assert store.get("large") == data
        with pytest.raises(ObjectConflict):
            store.put_if_absent("large", data[:-1] + bytes([data[-1] ^ 1]))

    def test_odd_keys(self, place: Place) -> None:
        store = place.open()
        for key in ODD_KEYS:
            assert store.put_if_absent(key, key.encode()) is PutOutcome.CREATED
        assert store.list("") == tuple(sorted(ODD_KEYS))
        for key in ODD_KEYS:
            assert store.get(key) == key.encode()
            assert store.list(key) == (key,)

    @pytest.mark.parametrize("key", REFUSED_KEYS)
    def test_keys_that_are_refused(self, place: Place, key: str) -> None:
        store = place.open()
        for use in (store.get, store.exists, lambda key: store.put_if_absent(key, b"")):
            with pytest.raises(InvalidKey):
                use(key)
        if key not in ("", "a/"):
            with pytest.raises(InvalidKey):
                store.list(key)
        assert store.list("") == ()

    def test_a_list_is_by_text_and_sorted(self, place: Place) -> None:
        store = place.open()
        assert store.list("") == ()
        for key in ("runs/b/2", "runs/b/1", "runs/a/1", "other/1", "runs/bc"):
            store.put_if_absent(key, b"")
        assert store.list("runs/b") == ("runs/b/1", "runs/b/2", "runs/bc")
        assert store.list("runs/b/") == ("runs/b/1", "runs/b/2")
        assert store.list("runs/b/1") == ("runs/b/1",)
        assert store.list("") == ("other/1", "runs/a/1", "runs/b/1", "runs/b/2", "runs/bc")
        assert store.list("nothing/here") == ()

    def test_what_was_written_is_seen_at_once_by_others(self, place: Place) -> None:
        mine, theirs = place.open(), place.open()
        for number in range(12):
            key = f"events/{number:04d}"
            assert not theirs.exists(key)
            mine.put_if_absent(key, key.encode())
            assert theirs.get(key) == key.encode()
            assert theirs.list("events/") == tuple(f"events/{n:04d}" for n in range(number + 1))
            assert theirs.put_if_absent(key, key.encode()) is PutOutcome.EQUAL

    def test_half_an_object_is_never_seen(self, place: Place) -> None:
        contents = {f"objects/{n}": random.Random(n).randbytes(2 << 20) for n in range(4)}
        mine, theirs = place.open(), place.open()

        def write() -> None:
            for key, data in contents.items():
                mine.put_if_absent(key, data)

        writer = threading.Thread(target=write)
        writer.start()
        seen: set[str] = set()
        while writer.is_alive() or len(seen) < len(contents):
            for key in set(theirs.list("objects/")) - seen:
                assert theirs.get(key) == contents[key]
                seen.add(key)
        writer.join()

    def test_of_eight_processes_one_creates(self, place: Place) -> None:
        keys = [f"claims/{number}" for number in range(5)]
        contents = [f"writer {number}".encode() for number in range(WRITERS)]
        for key, answers in race(place, keys, contents).items():
            assert sorted(answers.values()) == ["conflict"] * (WRITERS - 1) + ["created"]
            winner = next(number for number, answer in answers.items() if answer == "created")
            assert place.open().get(key) == contents[winner]

    def test_of_eight_processes_with_the_same_bytes_one_creates(self, place: Place) -> None:
        keys = [f"bundles/{number}" for number in range(5)]
        for answers in race(place, keys, [b"bundle"] * WRITERS).values():
            assert sorted(answers.values()) == ["created"] + ["equal"] * (WRITERS - 1)
