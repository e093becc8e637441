import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.launcher.documents.canonical import CanonicalEncodingError, canonical_json, digest_of, sha256_hex

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**64) + 1, 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


def test_key_order_does_not_move_the_digest():
    assert digest_of({"a": 1, "b": [1, 2]}) == digest_of({"b": [1, 2], "a": 1})


def test_int_float_and_bool_are_kept_apart():
    assert len({digest_of(1), digest_of(1.0), digest_of(True), digest_of("1")}) == 4


def test_the_encoding_is_pinned():
    # A change here changes every digest on record.
    assert canonical_json({"b": [1, 1.0, 1e-06, None, True], "a": "é"}) == (
        '{"a":"é","b":[1,1.0,1e-06,null,true]}'.encode()
    )
    assert sha256_hex(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"a": float("nan")}, "$.a is nan, which JSON cannot hold. Use a finite number"),
        ({"a": [{1, 2}]}, "$.a[0] is a set, which has no stable identity"),
        ({1: "x"}, "$ has the key 1 (int). Use string keys"),
        ({"a": object()}, "$.a is a object, which has no stable identity"),
        ({"a": ["\ud800"]}, "$.a[0] holds a lone surrogate. Use valid Unicode"),
        ({"\ud800": 1}, "a key of $ holds a lone surrogate"),
        ({"a": 10**5000}, "$.a is an integer of 16610 bits. Use at most 64"),
    ],
)
def test_what_has_no_identity_is_refused(value, sentence):
    with pytest.raises(CanonicalEncodingError) as caught:
        canonical_json(value)
    assert sentence in str(caught.value)


@given(VALUES.filter(lambda value: "\\ud" not in json.dumps(value)))
def test_decoding_gives_the_value_back(value):
    assert json.loads(canonical_json(value)) == value


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
