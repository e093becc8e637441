import multiprocessing
import os
import signal
import sys

import pytest

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.store import file_store
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.keys import InvalidKey
from tools.launcher.store.object_store import ObjectConflict, ObjectMissing, PutOutcome, StoreUnavailable


def test_an_object_is_written_once(tmp_path):
    store = FileStore(tmp_path)
    assert store.put_if_absent("a/b", b"one") is PutOutcome.CREATED
    assert store.put_if_absent("a/b", b"one") is PutOutcome.EQUAL
    assert store.get("a/b") == b"one"
    assert store.exists("a/b")
    assert not store.exists("a")


def test_other_bytes_conflict_and_change_nothing(tmp_path):
    store = FileStore(tmp_path)
    store.put_if_absent("k", b"one")
    with pytest.raises(ObjectConflict) as raised:
        store.put_if_absent("k", b"two")
    assert str(raised.value) == (
        f"object k exists with other content: stored sha256:{sha256_hex(b'one')}, "
        f"offered sha256:{sha256_hex(b'two')}. Objects are written once; use another key"
    )
    assert store.get("k") == b"one"


def test_a_missing_object_is_named(tmp_path):
    with pytest.raises(ObjectMissing) as raised:
        FileStore(tmp_path).get("no/such")
    assert str(raised.value) == (
        f"object no/such is not in the store file://{tmp_path}. Check the key and the store's address"
    )


def test_a_folder_is_not_an_object(tmp_path):
    store = FileStore(tmp_path)
    store.put_if_absent("a/b", b"")
    with pytest.raises(ObjectMissing):
        store.get("a")
    with pytest.raises(ObjectMissing):
        store.get("a/b/c")


def test_list_is_by_text_prefix_and_sorted(tmp_path):
    store = FileStore(tmp_path)
    for key in ("runs/b/2", "runs/b/1", "runs/a/1", "other/1", "runs/bc"):
        store.put_if_absent(key, b"")
    assert store.list("runs/b") == ("runs/b/1", "runs/b/2", "runs/bc")
    assert store.list("runs/b/") == ("runs/b/1", "runs/b/2")
    assert store.list("") == ("other/1", "runs/a/1", "runs/b/1", "runs/b/2", "runs/bc")
    assert store.list("nothing/here") == ()


def test_keys_cannot_leave_the_store(tmp_path):
    store = FileStore(tmp_path / "store")
    for use in (store.get, store.exists, store.list, lambda key: store.put_if_absent(key, b"")):
        with pytest.raises(InvalidKey):
            use("../outside")
    assert list(tmp_path.iterdir()) == []


def test_torn_temporary_files_are_invisible(tmp_path):
    store = FileStore(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / ".k.abc.tmp").write_bytes(b"ha")
    assert store.list("") == ()
    assert store.put_if_absent("runs/k", b"half and half") is PutOutcome.CREATED
    assert store.list("runs/") == ("runs/k",)


def test_a_relative_folder_is_refused():
    from pathlib import Path

    with pytest.raises(StoreUnavailable) as raised:
        FileStore(Path("here"))
    assert "the path is relative; give file:///absolute/folder" in str(raised.value)


def test_an_unwritable_store_is_a_sentence(tmp_path, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_store, "write_once", full)
    with pytest.raises(StoreUnavailable) as raised:
        FileStore(tmp_path).put_if_absent("k", b"")
    assert str(raised.value) == (
        f"store file://{tmp_path}: cannot write k: No space left on device. "
        "Make it reachable and writable, then run the command again"
    )


def test_a_store_below_a_file_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable) as raised:
        FileStore(tmp_path / "file" / "store").put_if_absent("k", b"")
    assert "cannot write k: Not a directory" in str(raised.value)


def _put_own_number(arguments):
    root, number = arguments
    try:
        return FileStore(root).put_if_absent("claim", f"writer {number}".encode()) is PutOutcome.CREATED
    except ObjectConflict:
        return False


def test_one_of_eight_processes_creates(tmp_path):
    with multiprocessing.get_context("fork").Pool(8) as pool:
        won = pool.map(_put_own_number, [(tmp_path, number) for number in range(8)], chunksize=1)
    assert won.count(True) == 1
    assert FileStore(tmp_path).get("claim") == f"writer {won.index(True)}".encode()


def _write_until_killed(root, started):
    store = FileStore(root)
    number = 0
    while True:
        store.put_if_absent(f"objects/{number}", f"{number}".encode() * 100_000)
        started.set()
        number += 1


def test_a_killed_writer_leaves_whole_objects_only(tmp_path):
    context = multiprocessing.get_context("fork")
    started = context.Event()
    writer = context.Process(target=_write_until_killed, args=(tmp_path, started))
    writer.start()
    assert started.wait(30)
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    store = FileStore(tmp_path)
    keys = store.list("objects/")
    assert keys
    for key in keys:
        assert store.get(key) == key.removeprefix("objects/").encode() * 100_000


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
