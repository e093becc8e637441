"""What is special about folders. See conformance_test.py for the promises of all stores."""

import itertools
import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from tools.launcher.store import file_store
from tools.launcher.store.file_store import OLD_SECONDS, FileStore
from tools.launcher.store.keys import InvalidKey
from tools.launcher.store.object_store import ObjectMissing, PutOutcome, StoreUnavailable

KEY = "runs/cat_count/0001.json"
DATA = b"whole " * 40_000


def test_a_folder_is_not_an_object(tmp_path):
    store = FileStore(tmp_path)
    store.put_if_absent("a/b", b"")
    with pytest.raises(ObjectMissing):
        store.get("a")
    with pytest.raises(ObjectMissing):
        store.get("a/b/c")


def test_keys_cannot_leave_the_store(tmp_path):
    store = FileStore(tmp_path / "store")
    for use in (store.get, store.exists, store.list, lambda key: store.put_if_absent(key, b"")):
        with pytest.raises(InvalidKey):
            use("../outside")
    assert list(tmp_path.iterdir()) == []


def test_a_relative_folder_is_refused():
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


# --- writers that are killed ------------------------------------------------------


def temporaries(folder):
    return sorted(folder.rglob(".*.tmp"))


def write_and_die(root, number):
    """Write, with SIGKILL right before or after the `number`th call of the system (0: none comes)."""
    calls = itertools.count(1)

    def at_each_call(_frame, event, function):
        # `posix` has link, fsync, mkdir and the like; the methods of a file are those of `_io`.
        module = getattr(function, "__module__", None) or type(getattr(function, "__self__", None)).__module__
        if event in ("c_call", "c_return") and module in ("posix", "_io") and next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    store = FileStore(root)
    sys.setprofile(at_each_call)
    store.put_if_absent(KEY, DATA)
    sys.setprofile(None)
    # Not by return: what the interpreter does at its end is not of interest.
    os._exit(0)


def test_a_writer_killed_at_each_step_leaves_the_whole_object_or_none(tmp_path):
    context = multiprocessing.get_context("fork")
    outcomes = []
    for number in itertools.count(1):
        root = tmp_path / str(number)
        writer = context.Process(target=write_and_die, args=(root, number))
        writer.start()
        writer.join()
        store = FileStore(root)
        if writer.exitcode == 0:
            break
        assert writer.exitcode == -signal.SIGKILL
        there = store.exists(KEY)
        assert store.list("") == ((KEY,) if there else ())
        assert not there or store.get(KEY) == DATA
        left = len(temporaries(root))
        outcome = FileStore(root).put_if_absent(KEY, DATA)
        assert outcome is (PutOutcome.EQUAL if there else PutOutcome.CREATED)
        assert store.get(KEY) == DATA
        assert store.list("") == (KEY,)
        outcomes.append((there, left))
    # All four kinds of step were met: before the temporary file, beside it, after the link, after all.
    assert {(False, 0), (False, 1), (True, 1), (True, 0)} == set(outcomes)
    assert [there for there, _ in outcomes] == sorted(there for there, _ in outcomes)
    assert len(outcomes) >= 30
    assert store.get(KEY) == DATA
    assert temporaries(tmp_path / str(number)) == []


def write_for_ever(root, started):
    store = FileStore(root)
    for number in itertools.count():
        store.put_if_absent(f"objects/{number}", f"{number}".encode() * 100_000)
        started.set()


@pytest.mark.parametrize("seed", range(8))
def test_a_writer_killed_at_any_time_leaves_whole_objects_only(tmp_path, seed):
    context = multiprocessing.get_context("fork")
    started = context.Event()
    writers = [context.Process(target=write_for_ever, args=(tmp_path, started)) for _ in range(2)]
    for writer in writers:
        writer.start()
    assert started.wait(30)
    time.sleep(random.Random(seed).uniform(0, 0.05))
    for writer in writers:
        writer.kill()
        writer.join()
    store = FileStore(tmp_path)
    keys = store.list("objects/")
    # Equal bytes by both writers: all numbers up to the last are there.
    assert sorted(int(key.removeprefix("objects/")) for key in keys) == list(range(len(keys)))
    for key in keys:
        data = key.removeprefix("objects/").encode() * 100_000
        assert store.get(key) == data
        assert store.put_if_absent(key, data) is PutOutcome.EQUAL
    assert store.put_if_absent(f"objects/{len(keys)}", b"next") is PutOutcome.CREATED


# --- what killed writers leave ----------------------------------------------------


def test_temporary_files_are_invisible_and_removed_when_old(tmp_path):
    store = FileStore(tmp_path)
    (tmp_path / "runs").mkdir()
    old, young, foreign = (tmp_path / "runs" / name for name in (".k.a.tmp", ".k.b.tmp", ".nfs0001"))
    for file in (old, young, foreign):
        file.write_bytes(b"ha")
    for file, age in ((old, OLD_SECONDS + 60), (young, OLD_SECONDS - 60), (foreign, OLD_SECONDS * 2)):
        os.utime(file, (time.time() - age,) * 2)
    assert store.list("") == ()
    assert store.put_if_absent("runs/k", b"half and half") is PutOutcome.CREATED
    assert store.list("runs/") == ("runs/k",)
    assert sorted(file.name for file in (tmp_path / "runs").iterdir()) == [".k.b.tmp", ".nfs0001", "k"]


def test_a_writer_whose_temporary_file_is_taken_away_says_so(tmp_path, monkeypatch):
    link = os.link

    def link_late(source, target):
        Path(source).unlink()
        link(source, target)

    monkeypatch.setattr(os, "link", link_late)
    with pytest.raises(StoreUnavailable, match="cannot write k: No such file or directory"):
        FileStore(tmp_path).put_if_absent("k", b"v")
    monkeypatch.undo()
    assert FileStore(tmp_path).put_if_absent("k", b"v") is PutOutcome.CREATED


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
