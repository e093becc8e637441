import sys

import pytest

from tools.launcher.store.locations import ObjectRoot, UriError
from tools.launcher.store.object_store import StoreUnavailable
from tools.launcher.store.objects import FolderObjects


def test_objects_are_read_replaced_and_made_once(tmp_path):
    objects = FolderObjects(ObjectRoot(tmp_path))
    assert objects.read("s3://b/a/x") is None
    objects.write("s3://b/a/x", b"one")
    objects.write("s3://b/a/x", b"two")
    assert objects.read("s3://b/a/x") == b"two"
    assert (tmp_path / "s3" / "b" / "a" / "x").read_bytes() == b"two"
    assert objects.write_once("s3://b/a/y", b"mine")
    assert not objects.write_once("s3://b/a/y", b"theirs")
    assert objects.read("s3://b/a/y") == b"mine"
    assert objects.exists("s3://b/a/x") and not objects.exists("s3://b/a") and not objects.exists("s3://b/z")
    # Below an object there is none.
    assert not objects.exists("s3://b/a/x/z")
    assert objects.read("s3://b/a/x/z") is None


def test_what_is_no_object_uri_is_refused(tmp_path):
    with pytest.raises(UriError, match="is not an object URI"):
        FolderObjects(ObjectRoot(tmp_path)).read("/tmp/x")


@pytest.mark.parametrize(
    ("doing", "act"),
    [
        ("read", lambda objects, uri: objects.read(uri)),
        ("look for", lambda objects, uri: objects.exists(uri)),
        ("write", lambda objects, uri: objects.write(uri, b"")),
        ("write", lambda objects, uri: objects.write_once(uri, b"")),
    ],
)
def test_a_disk_that_refuses_is_named(tmp_path, doing, act):
    objects = FolderObjects(ObjectRoot(tmp_path / "objects"))
    (tmp_path / "objects" / "s3" / "b" / "folder" / "x").mkdir(parents=True)
    uri = "s3://b/folder" if doing == "read" else "s3://b/folder/x/y"
    if doing == "look for":
        uri = "s3://b/loop/x"
        (tmp_path / "objects" / "s3" / "b" / "loop").symlink_to("loop")
    if doing == "write":
        (tmp_path / "objects" / "s3" / "b" / "folder" / "x").rmdir()
        (tmp_path / "objects" / "s3" / "b" / "folder" / "x").write_text("a file in the way")
    with pytest.raises(StoreUnavailable) as caught:
        act(objects, uri)
    assert str(caught.value).startswith(f"store file://{tmp_path}/objects: cannot {doing} {uri}: ")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
