import sys

import pytest

from tools.launcher.store.keys import InvalidKey, validate_key, validate_prefix


@pytest.mark.parametrize(
    "key", ["a", "bundles/sha256/00ff", "runs/cat_count/00/1/events/0001.json", "a=b/c+d@e~f-g"]
)
def test_legal_keys_pass_unchanged(key):
    assert validate_key(key) == key


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("", "object key '' is empty. Give a name such as bundles/sha256/<digest>"),
        ("/a", "object key '/a' starts with '/'. Keys are relative to the store: drop the slash"),
        ("a/../b", "has the segment '..'. Use letters, digits and ._=+@~- only"),
        ("a//b", "has the segment ''."),
        ("a/", "has the segment ''."),
        (".hidden", "has the segment '.hidden'."),
        ("a/b c", "has the segment 'b c'."),
        ("a/b\n", "has the segment 'b\\n'."),
        ("a\\b", "has the segment"),
        ("ä", "has the segment 'ä'."),
        ("x" * 201, "has a segment of 201 characters, the limit is 200. Shorten the experiment's name"),
        ("/".join(["x" * 100] * 10), "has 1009 characters, the limit is 900. Shorten the experiment's name"),
    ],
)
def test_illegal_keys_are_named(key, sentence):
    with pytest.raises(InvalidKey) as raised:
        validate_key(key)
    assert sentence in str(raised.value)


@pytest.mark.parametrize("prefix", ["", "runs", "runs/", "runs/cat"])
def test_prefixes(prefix):
    assert validate_prefix(prefix) == prefix


def test_a_prefix_cannot_climb():
    with pytest.raises(InvalidKey):
        validate_prefix("runs/../")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
