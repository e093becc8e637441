import sys
from pathlib import Path

import pytest

from tools.launcher.store.locations import ObjectRoot, UriError

ROOT = ObjectRoot(Path("/objects"))


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("s3://bucket/a/b", "/objects/s3/bucket/a/b"),
        ("gs://bucket/a/b/", "/objects/gs/bucket/a/b"),
        ("local://bucket", "/objects/local/bucket"),
        ("s3://b/tmp/ttl=14d/skyrl/x", "/objects/s3/b/tmp/ttl=14d/skyrl/x"),
    ],
)
def test_uris_have_files(uri, path):
    assert ROOT.path(uri) == Path(path)


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("s3://b/../x", "s3://b/../x: the path has the segment '..'. Remove empty, '.' and '..' segments"),
        ("s3://../x", "the path has the segment '..'"),
        ("s3://b//x", "the path has the segment ''"),
        ("s3://", "'s3://' is not an object URI. Use s3://, gs:// or local://, a bucket and a key"),
        ("s3:///x", "the path has the segment ''"),
        ("/etc/passwd", "is not an object URI"),
        ("http://h/x", "the scheme http:// is not known here. Use s3://, gs:// or local://"),
        ("file:///x", "the scheme file:// is not known here"),
        ("s3://b/x\0", "has a backslash or a control character. Remove it"),
        ("s3://b/a\\b", "has a backslash or a control character"),
    ],
)
def test_other_uris_are_refused(uri, sentence):
    with pytest.raises(UriError) as raised:
        ROOT.path(uri)
    assert sentence in str(raised.value)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
