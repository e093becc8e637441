import sys

import pytest

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.documents.printable import printable
from tools.launcher.store.content import DigestMismatch, NoDigest, get_content, put_content
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.object_store import ObjectMissing


def test_content_is_found_by_its_digest(tmp_path):
    store = FileStore(tmp_path)
    digest = put_content(store, "blobs", b"bytes")
    assert digest == sha256_hex(b"bytes")
    assert put_content(store, "blobs", b"bytes") == digest
    assert get_content(store, "blobs", digest) == b"bytes"


def test_absent_content_is_missing(tmp_path):
    with pytest.raises(ObjectMissing):
        get_content(FileStore(tmp_path), "blobs", "0" * 64)


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "0" * 63, "\x1b[2J"])
def test_what_is_no_digest_names_no_object(tmp_path, digest):
    with pytest.raises(NoDigest) as refusal:
        get_content(FileStore(tmp_path), "blobs", digest)
    sentence = f"'{printable(digest)}' is no SHA-256 of an object below blobs/. The record that names it was not written by "
    assert str(refusal.value) == f"{sentence}this launcher"


@pytest.mark.parametrize("damaged", [b"", b"byt", b"bytes!"])
def test_damaged_content_is_refused_both_ways(tmp_path, damaged):
    store = FileStore(tmp_path)
    digest = put_content(store, "blobs", b"bytes")
    (tmp_path / "blobs" / digest).write_bytes(damaged)
    sentence = (
        f"object blobs/{digest} is damaged: its bytes have sha256:{sha256_hex(damaged)}, expected "
        f"sha256:{digest}. "
        "Delete that object and launch again, which writes it anew"
    )
    with pytest.raises(DigestMismatch) as read:
        get_content(store, "blobs", digest)
    with pytest.raises(DigestMismatch) as written:
        put_content(store, "blobs", b"bytes")
    assert str(read.value) == str(written.value) == sentence


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
