"""Objects in buckets: Google's client over HTTP against our own fake, and files, which rigging locks."""

import subprocess
import sys
import threading

import pytest

from tools.launcher.coordinator.bucket_objects import BucketObjects
from tools.launcher.store.locations import UriError
from tools.launcher.store.object_store import StoreUnavailable
from tools.launcher.store.testing.fake_gcs_for_test import BUCKET, FakeGcs

OBJECTS = BucketObjects()


@pytest.fixture(params=["gs", "file"])
def place(request, tmp_path, monkeypatch):
    if request.param == "file":
        yield f"file://{tmp_path}/objects"
        return
    from rigging.filesystem import conditional_object

    with FakeGcs() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        conditional_object._gcs_client.cache_clear()
        yield f"gs://{BUCKET}/objects"
        conditional_object._gcs_client.cache_clear()


def test_objects_are_read_replaced_and_made_once(place):
    uri = f"{place}/lab/run/.artifact.json"
    assert OBJECTS.read(uri) is None and not OBJECTS.exists(uri)
    OBJECTS.write(uri, b"one")
    assert OBJECTS.read(uri) == b"one" and OBJECTS.exists(uri)
    OBJECTS.write(uri, b"two")
    assert OBJECTS.read(uri) == b"two"
    assert not OBJECTS.write_once(uri, b"three")
    assert OBJECTS.read(uri) == b"two"
    assert OBJECTS.write_once(f"{place}/claim", b"mine")


def test_of_several_writers_one_makes_the_object(place):
    made = []

    def write(name):
        if OBJECTS.write_once(f"{place}/claim", name.encode()):
            made.append(name)

    writers = [threading.Thread(target=write, args=(f"writer {n}",)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    assert [OBJECTS.read(f"{place}/claim").decode()] == made


@pytest.mark.parametrize("uri", ["local://marin/x", "memory://x/y", "https://host/x"])
def test_what_is_no_bucket_is_refused(uri):
    with pytest.raises(UriError) as caught:
        OBJECTS.read(uri)
    assert str(caught.value) == f"{uri}: no bucket of a cluster. Use s3:// or gs://"


def test_a_place_that_refuses_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnavailable) as caught:
        OBJECTS.write_once(f"file://{tmp_path}/file/claim", b"x")
    assert f"cannot write file://{tmp_path}/file/claim: FileExistsError" in str(caught.value)


def test_the_libraries_are_imported_late():
    code = (
        "import sys, tools.launcher.coordinator.bucket_objects as m; m.BucketObjects()\n"
        "sys.exit(bool({'rigging', 'google.cloud', 'botocore'} & set(sys.modules)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0
    )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
