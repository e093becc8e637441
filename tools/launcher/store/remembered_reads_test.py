"""Objects are fetched once; new ones are seen."""

import sys
from pathlib import Path

import pytest

from tools.launcher.store.file_store import FileStore
from tools.launcher.store.object_store import ObjectMissing
from tools.launcher.store.remembered_reads import RememberedReads


def test_an_object_is_fetched_once(tmp_path):
    store = RememberedReads(FileStore(tmp_path))
    store.put_if_absent("a/1", b"one")
    assert store.get("a/1") == b"one"
    Path(tmp_path, "a/1").unlink()
    assert store.get("a/1") == b"one"


def test_what_was_not_there_is_asked_for_again(tmp_path):
    store = RememberedReads(FileStore(tmp_path))
    with pytest.raises(ObjectMissing):
        store.get("a/1")
    FileStore(tmp_path).put_if_absent("a/1", b"one")
    assert (store.list("a/"), store.exists("a/1"), store.get("a/1")) == (("a/1",), True, b"one")
    assert store.url == f"file://{tmp_path}"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
