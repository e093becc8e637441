import io
import sys
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.launcher.documents.canonical import digest_of, sha256_hex
from tools.launcher.store.bundles import BundleError, LaunchBundle, pack, read_digests, unpack, verify_bundle
from tools.launcher.store.deterministic_zip import write_zip

LAUNCH = digest_of({"a": 1})
DIGESTS = f"recipe sha256:{'1' * 64}\nlaunch sha256:{LAUNCH}\n"
BUNDLE = LaunchBundle(launch_yaml=b"a: 1\n", graph_json=b"{}", plan_json=b"[]", digest_text=DIGESTS)
MEMBERS = {"launch.yaml": b"a: 1\n", "graph.json": b"{}", "plan.json": b"[]", "digest": DIGESTS.encode()}


def test_packing_is_a_function_of_the_content():
    assert unpack(pack(BUNDLE)) == BUNDLE
    assert pack(unpack(pack(BUNDLE))) == pack(BUNDLE) == write_zip(dict(reversed(MEMBERS.items())))


def test_the_bytes_of_a_bundle_never_move():
    # The digest is in the store of every earlier launch: a change here orphans them.
    assert sha256_hex(write_zip({"b": b"2", "a": b"1"})) == (
        "abba080c92582d63232654caf7e671fcc0b40992dd809e155abd224886238e9c"
    )


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({**MEMBERS, "../x": b""}, "the bundle has the member '../x'; exactly digest, graph.json"),
        ({**MEMBERS, "/etc/x": b""}, "the bundle has the member '/etc/x'"),
        ({**MEMBERS, "extra": b""}, "the bundle has the member 'extra'"),
        ({"launch.yaml": b"", "digest": b""}, "the bundle lacks graph.json, plan.json. Build the experiment"),
        ({**MEMBERS, "digest": b"\xff"}, "the bundle's digest file is not text"),
    ],
)
def test_foreign_members_are_refused(members, sentence):
    with pytest.raises(BundleError) as raised:
        unpack(write_zip(members))
    assert sentence in str(raised.value)


def test_a_repeated_or_compressed_member_is_refused():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, pytest.warns(UserWarning):
        archive.writestr("digest", b"")
        archive.writestr("digest", b"")
    with pytest.raises(BundleError, match="has the member 'digest'"):
        unpack(buffer.getvalue())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("plan.json", b"0" * 1000)
    with pytest.raises(
        BundleError, match=r"the bundle's plan.json is compressed or larger than 33554432 bytes"
    ):
        unpack(buffer.getvalue())


@given(st.integers(0, len(pack(BUNDLE)) - 1))
def test_a_truncated_bundle_is_refused(length):
    with pytest.raises(BundleError):
        unpack(pack(BUNDLE)[:length])


@given(st.integers(0, len(pack(BUNDLE)) - 1), st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_harmless(position, flip):
    data = bytearray(pack(BUNDLE))
    data[position] ^= flip
    try:
        found = unpack(bytes(data))
    except BundleError:
        return
    assert found == BUNDLE  # Only times and attributes moved.


def test_digests_are_read_and_checked():
    assert read_digests(DIGESTS).recipe == "1" * 64
    assert verify_bundle(BUNDLE).launch == LAUNCH


@pytest.mark.parametrize(
    "text", ["", "launch sha256:x", DIGESTS.replace("recipe", "launch"), DIGESTS + DIGESTS]
)
def test_another_digest_file_is_refused(text):
    with pytest.raises(BundleError, match="expected the lines 'recipe sha256:<64 hex digits>' and"):
        read_digests(text)


def test_a_changed_document_is_refused():
    changed = BUNDLE.model_copy(update={"launch_yaml": b"a: 2\n"})
    with pytest.raises(BundleError) as raised:
        verify_bundle(changed)
    assert str(raised.value) == (
        f"the launch document has digest sha256:{digest_of({'a': 2})}, the digest file says sha256:{LAUNCH}. "
        "The reviewed and the submitted bytes differ: build the experiment and launch again"
    )


def test_an_unreadable_document_is_refused():
    broken = BUNDLE.model_copy(update={"launch_yaml": b"a: [1"})
    with pytest.raises(BundleError, match=r"the bundle's launch document cannot be read: launch.yaml"):
        verify_bundle(broken)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
