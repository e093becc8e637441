import sys

import pytest

from tools.launcher.store.open_store import StoreAddressError, open_store, path_of_file_url


def test_a_file_address_opens_a_store(tmp_path):
    store = open_store(f"file://{tmp_path}/store")
    store.put_if_absent("k", b"v")
    assert (tmp_path / "store" / "k").read_bytes() == b"v"
    assert open_store(store.url).get("k") == b"v"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (
            "gs://bucket/x",
            "store gs://bucket/x: Google Cloud Storage is not supported yet. Use file:///absolute/folder",
        ),
        ("/tmp/x", "store '/tmp/x': the address must start with file:///. Use file:///absolute/folder"),
        ("s3://b/x", "the address must start with file:///"),
        ("file://host/x", "names the host 'host'. Use three slashes: file:///absolute/folder"),
        ("file:///a/../b", "the folder has '?', '#', '%' or '..'. Use the plain absolute path"),
        ("file:///a%20b", "the folder has '?', '#', '%' or '..'."),
    ],
)
def test_other_addresses_are_refused(url, sentence):
    with pytest.raises(StoreAddressError) as raised:
        open_store(url)
    assert sentence in str(raised.value)


def test_the_message_names_what_the_address_is_for():
    with pytest.raises(StoreAddressError, match=r"^object root 'x'"):
        path_of_file_url("x", what="object root")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
