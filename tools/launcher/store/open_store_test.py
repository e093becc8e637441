import sys

import pytest

from tools.launcher.store.open_store import StoreAddressError, open_store, path_of_file_url, place_of_gs_url


def test_a_file_address_opens_a_store(tmp_path):
    store = open_store(f"file://{tmp_path}/store")
    store.put_if_absent("k", b"v")
    assert (tmp_path / "store" / "k").read_bytes() == b"v"
    assert open_store(store.url).get("k") == b"v"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (
            "/tmp/x",
            "the address must start with file:/// or gs://. Use file:///absolute/folder or gs://bucket/prefix",
        ),
        ("s3://b/x", "the address must start with file:///"),
        ("file://[host/x", "this is no address. Use file:///absolute/folder"),
        ("file://host/x", "names the host 'host'. Use three slashes: file:///absolute/folder"),
        ("file:///a/../b", "the folder has '?', '#', '%' or '..'. Use the plain absolute path"),
        ("file:///a%20b", "the folder has '?', '#', '%' or '..'."),
    ],
)
def test_other_addresses_are_refused(url, sentence):
    with pytest.raises(StoreAddressError) as raised:
        open_store(url)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("url", "place", "canonical"),
    [
        ("gs://bucket", ("bucket", ""), "gs://bucket"),
        ("gs://bucket/", ("bucket", ""), "gs://bucket"),
        ("gs://my-bucket_1.org/a/b=c", ("my-bucket_1.org", "a/b=c"), "gs://my-bucket_1.org/a/b=c"),
        ("gs://bucket/a/", ("bucket", "a"), "gs://bucket/a"),
        (f"gs://{'a' * 63}/{'p' * 120}", ("a" * 63, "p" * 120), f"gs://{'a' * 63}/{'p' * 120}"),
    ],
)
def test_a_bucket_address_opens_a_store_without_a_word_to_the_service(monkeypatch, url, place, canonical):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    assert place_of_gs_url(url) == place
    assert open_store(url).url == canonical


@pytest.mark.parametrize(
    "name",
    [
        "", "ab", "a" * 64, "Bucket", "-bucket", "bucket-", ".bucket", "bucket.", "a..b", "goog-x", "my-google-x",
        "192.168.5.4", "buc ket", "bucket?x", "bucket#x", "bucket%20", "user@bucket", "bucket:80", "büro",
        "a." + "b" * 64, ".".join(["a" * 63] * 4), "bucket\n",
    ],
)  # fmt: skip
def test_names_that_no_bucket_has(name):
    with pytest.raises(StoreAddressError) as raised:
        open_store(f"gs://{name}/x")
    assert str(raised.value) == (
        f"store {f'gs://{name}/x'!r}: {name!r} cannot be the name of a bucket. Use 3 to 63 lower-case letters, "
        "digits, '-', '_' and '.' that start and end with a letter or digit: gs://bucket/prefix"
    )


@pytest.mark.parametrize(
    "prefix", ["/", "/a", "a//b", "a//", "..", "a/../b", ".a", "a?b", "a#b", "a%20b", "a b", "a\n", "ä", "*"]
)
def test_prefixes_that_no_key_has(prefix):
    with pytest.raises(StoreAddressError) as raised:
        open_store(f"gs://bucket/{prefix}")
    assert str(raised.value) == (
        f"store {f'gs://bucket/{prefix}'!r}: the prefix {prefix.removesuffix('/')!r} is not allowed. Use segments "
        "of letters, digits and ._=+@~- that do not start with a dot, joined by single slashes"
    )


def test_a_prefix_leaves_room_for_keys():
    with pytest.raises(
        StoreAddressError, match=r"…: the prefix has 121 characters, the limit is 120. Use a shorter one"
    ):
        open_store(f"gs://bucket/{'p' * 121}")


@pytest.mark.parametrize("url", ["gs:", "gs:bucket", "gs:/bucket"])
def test_an_address_without_a_bucket(url):
    with pytest.raises(StoreAddressError) as raised:
        open_store(url)
    assert str(raised.value) == f"store {url!r}: the address has no bucket. Use gs://bucket/prefix"


def test_the_message_names_what_the_address_is_for():
    with pytest.raises(StoreAddressError, match=r"^object root 'x'"):
        path_of_file_url("x", what="object root")
    with pytest.raises(StoreAddressError, match=r"must start with file:///. Use file:///absolute/folder$"):
        path_of_file_url("gs://bucket/x", what="object root")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
