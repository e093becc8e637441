"""The strict reader and the stable writer, also against each other."""

import re
import sys
import time
import tracemalloc

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from tools.launcher.documents import strict_yaml
from tools.launcher.documents.strict_yaml import (
    DocumentError,
    UnquotedKey,
    load_with,
    load_yaml,
    load_yaml_mapping,
    strict_loader,
)
from tools.launcher.documents.yaml_writer import dump_yaml, emit_yaml

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
PURE, C = strict_loader(yaml.SafeLoader), strict_loader(yaml.CSafeLoader)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20)


def refused(data: bytes) -> str:
    with pytest.raises(DocumentError) as caught:
        load_yaml(data, source="d.yaml")
    return str(caught.value)


def outcome(loader, data: bytes):
    """What a parser makes of a document. Of bad syntax each has its own description, and nothing else differs."""
    try:
        return repr(load_with(loader, data, source="d.yaml"))
    except DocumentError as error:
        return "bad syntax" if error.fix.startswith("Correct the") else str(error)


@given(VALUES)
def test_what_is_written_reads_back_equal(value):
    data = dump_yaml(value)
    assert load_yaml(data, source="x") == value
    assert dump_yaml(load_yaml(data, source="x")) == data


@given(VALUES)
def test_the_pure_parser_reads_the_same(value):
    data = dump_yaml(value)
    assert load_with(PURE, data, source="x") == load_yaml(data, source="x") == value


@given(st.text(st.sampled_from("ab1:-#,{}[]&*!|>'\"%@`?~= \t\n\ufeff\x85é"), max_size=30))
def test_both_parsers_accept_and_refuse_the_same(text):
    assert outcome(PURE, text.encode()) == outcome(C, text.encode())


@given(
    st.text(st.sampled_from("ab1:-#,{}[]&*!|>'\"<~= \n\x85é"), max_size=30).map(str.encode)
    | VALUES.map(dump_yaml)
)
@example(b"a: &x {k: 1}\nb: *x\n<<: {c: 1}\n")
@example(b"a: 1\na: 2\n")
@example(b"{a: [1, 1.5, true, null, x, '1', !!str 1], 1: b}")
@example(b"[" * strict_yaml.MAX_DEPTH + b"]" * strict_yaml.MAX_DEPTH)
@example(b"[" * 61 + b"]" * 61)
@example(b"- 1\n---\n- 2\n")
@example(b"")
def test_a_small_document_is_read_as_a_large_one_is(data):
    # What is behind a long comment is not read in one walk.
    large = b"#" * strict_yaml.MAX_NODES + b"\n" + data
    for loader in (PURE, C):
        small, below = outcome(loader, data), outcome(loader, large)
        assert small == re.sub(r"^d\.yaml:(\d+)", lambda line: f"d.yaml:{int(line[1]) - 1}", below)


def test_a_tab_is_read_as_the_launcher_reads_it():
    # libyaml takes it for a part of plain text.
    assert "d.yaml:1:5: while scanning for the next token found character '\\t'" in refused(b"a: b\tc")
    assert load_yaml(b"a: 'b\tc'", source="x") == {"a": "b\tc"}
    assert (
        "d.yaml:2:1: '\\t' in this line is read differently by different programs, and slowly in a file of more "
        "than 262144 bytes. Write it otherwise"
    ) in refused(b"a: 1\n" + b"#\t" * 200_000)


@pytest.mark.parametrize(
    "text",
    ["a: b\tc", "a\ufeff: 1", "%YAML 1.3\n---\na", "!", "[! ,a]", "|# c", ">-# c", "[a?b]", "{a:}", "[a#:]"],
)
def test_what_the_parsers_read_differently_is_left_to_the_pure_one(text):
    assert outcome(C, text.encode()) == outcome(PURE, text.encode())


WORDS = st.text(st.sampled_from("ab1.:-_/ @+0eE~#,?{}[]'\"&*!|>%`=<yno\t"), max_size=12) | st.sampled_from(
    [
        "yes",
        "off",
        "null",
        "~",
        "1e5",
        "1:30",
        "0x1f",
        "1_0",
        ".5",
        "5.",
        "-",
        "--- a",
        "...",
        "=",
        "<<",
        "a:",
    ]
)
WRITTEN = st.recursive(
    SCALARS | WORDS, lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner), max_leaves=12
)


@given(st.dictionaries(WORDS, WRITTEN, min_size=1))
def test_what_is_written_directly_has_the_bytes_of_the_emitter(value):
    assert dump_yaml(value) == emit_yaml(value)


@pytest.mark.parametrize(
    "value",
    [
        {"k" * 200: 1},
        {"": 1},
        {"a": "x" * 5000, "b": "x " * 3000},
        {"a": [[1, [2]], {"b": [{"c": []}, {}]}]},
        {"a": [{"b": {"c": "d"}, "e": "f"}]},
        {"a": [1e-6, 1e300, 0.1, -0.0, float("inf"), 10**30, True, None, ""]},
        {
            "yes": "000000000000",
            "on": "1.5",
            "2026-01-15": "null",
            "a": -1.5e-07,
            "b": 1e16,
            "c": -float("inf"),
        },
        {UnquotedKey(0): "a"},
        {"a": "s3://bucket/ttl=14d/x,y", "b": "two\nlines\n", "c": "\u2028", "d": " a ", "e": "\U0001f600"},
    ],
)
def test_forms_that_documents_have_are_written_as_the_emitter_does(value):
    assert dump_yaml(value) == emit_yaml(value)


def test_numbers_are_read_as_the_launcher_reads_them():
    assert load_yaml(b"[1e-6, 1.0e-6, 1_000, 0x10, 2026-01-15, off]", source="x") == [
        1e-6,
        1e-6,
        1000,
        16,
        "2026-01-15",
        False,
    ]


def test_text_that_looks_like_a_number_stays_text():
    assert load_yaml(dump_yaml(["1e-6", "1.5", "yes", "2026-01-15", "null"]), source="x") == [
        "1e-6",
        "1.5",
        "yes",
        "2026-01-15",
        "null",
    ]


def test_anchors_are_read_and_never_written():
    value = load_yaml(b"a: &x {k: 1}\nb: *x\n", source="x")
    assert value == {"a": {"k": 1}, "b": {"k": 1}}
    assert b"&" not in dump_yaml(value)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (
            b"a: 1\nb: {c: 1, c: 2}\n",
            "d.yaml:2:11: the key 'c' appears twice in one mapping. Keep one of them",
        ),
        (b"\xff\xfea\x00", "d.yaml: byte 0 is not UTF-8 text. Save the file with UTF-8 encoding"),
        (b"a: [1, 2", "d.yaml:2:1: while parsing a flow sequence did not find expected ',' or ']'"),
        (b"a: 1\n---\nb: 2\n", "expected a single document"),
        (b"!!python/object:os.system {}", "could not determine a constructor"),
        (b"null: x", "d.yaml:1:1: the key None is not text. Quote the key"),
        (b"{0: a, '0': b}", "d.yaml:1:8: the key '0' appears twice in one mapping. Keep one of them"),
        (b"{16: a, 0x10: b}", "the key '16' appears twice in one mapping"),
        (
            b"a: {<<: 3}",
            "d.yaml:1:9: the merge key `<<` takes a mapping or a list of mappings. Name a mapping",
        ),
        (b"a: {<<: [{b: 1}, 3]}", "d.yaml:1:18: the merge key `<<` takes a mapping or a list of mappings"),
        (b"a: {<<: !x {b: 1}}", "the merge key `<<` takes a mapping"),
        (b"a: {<<: {b: 1}, c: 1, c: 2}", "the key 'c' appears twice in one mapping"),
        (b"a: &x {<<: *x}", "the alias *x stands inside the value it names"),
        (b"a: {<<: {b: 1, b: 2}}", "the key 'b' appears twice in one mapping"),
        (b"a: &x [*x]", "the alias *x stands inside the value it names. Write the value out"),
        (b"a: *nowhere", "undefined alias"),
        (b"[" * 500 + b"]" * 500, "values are nested more than 60 deep. Flatten the document"),
        (
            b"x" * ((16 << 20) + 1),
            "the file has 16777217 bytes, the limit is 16777216. Give one launch document",
        ),
        (
            b"a: " + b"x" * 1_048_577,
            "d.yaml:1:4: the value has 1048577 characters, the limit is 1048576. Name a file instead",
        ),
        (b"a: \x07", "not YAML"),
        (b"a: " + b"9" * 500, "d.yaml:1:4: a number of 500 characters, the limit is 400"),
        (b"a: 1" + b":1" * 500_000, "a number of 1000001 characters, the limit is 400"),
        (b"a: !!bool x", "d.yaml:1:4: 'x' is no bool. Write a plain value"),
        (b"!!int ''", "d.yaml:1:1: '' is no int. Write a plain value"),
        (b"!!map [1]", "d.yaml:1:1: this is tagged as a mapping and is none. Remove the tag"),
        (b"!!binary aGk=", "could not determine a constructor"),
        (b"!!timestamp 2026-01-15", "could not determine a constructor"),
        (b"!!set {a}", "could not determine a constructor"),
        (b"%TAG !a! tag:x\n" * 21 + b"---\na: 1", "more than 20 %TAG directives"),
        (b"? [" + b"a," * 500 + b"]\n: 1", "'a', '…. Quote the key"),
    ],
)
def test_bad_input_has_a_clear_sentence(data, sentence):
    assert sentence in refused(data)


def test_an_alias_bomb_is_refused_at_once():
    bomb = b"a0: &a0 [1,1,1,1,1,1,1,1,1]\n" + b"".join(
        b"a%d: &a%d [%s]\n" % (level, level, b",".join([b"*a%d" % (level - 1)] * 9)) for level in range(1, 10)
    )
    started = time.process_time()
    assert "more than 50000 values, aliases expanded" in refused(bomb)
    assert time.process_time() - started < 2


def test_a_bomb_of_merge_keys_is_refused_at_once():
    bomb = b"a0: &a0 {k: 1, l: 2}\n" + b"".join(
        b"a%d: &a%d {x%d: {<<: *a%d}, y%d: {<<: [*a%d, *a%d]}}\n" % (n, n, n, n - 1, n, n - 1, n - 1)
        for n in range(1, 40)
    )
    started = time.process_time()
    assert "more than 50000 values, aliases expanded" in refused(bomb)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"a: &x {k: 1}\nb:\n  <<: *x\n  j: 2\n", {"a": {"k": 1}, "b": {"k": 1, "j": 2}}),
        # The mapping's own keys win, wherever `<<` stands; of a list the earlier; of two `<<` the later.
        (b"a: &x {k: 1}\nb: {k: 3, <<: *x}", {"a": {"k": 1}, "b": {"k": 3}}),
        (
            b"a: &x {k: 1}\nc: &y {k: 2, m: 1}\nb: {<<: [*x, *y]}",
            {"a": {"k": 1}, "c": {"k": 2, "m": 1}, "b": {"k": 1, "m": 1}},
        ),
        (b"a: {<<: {b: 1}, <<: {b: 2}}", {"a": {"b": 2}}),
        (b"a: &x {<<: {q: 1}, k: 1}\nb: {<<: *x, k: 2}", {"a": {"q": 1, "k": 1}, "b": {"q": 1, "k": 2}}),
        (b"a: {<<: [], b: 1}", {"a": {"b": 1}}),
        (b"'<<': {a: 1}", {"<<": {"a": 1}}),
    ],
)
def test_merge_keys_are_carried_out_as_the_launcher_does(data, value):
    assert load_yaml(data, source="x") == value


def test_a_merged_value_is_not_shared_with_its_own_changes():
    value = load_yaml(b"a: &x {k: 1}\nb: {<<: *x}", source="x")
    value["b"]["k"] = 2
    assert value["a"] == {"k": 1}


def test_scalar_keys_are_text_with_a_mark():
    value = load_yaml(b"{0: a, -1: b, 1.5: c, no: d, 0x10: e, 1e3: f, '7': g}", source="x")
    assert value == {"0": "a", "-1": "b", "1.5": "c", "false": "d", "16": "e", "1000.0": "f", "7": "g"}
    assert [type(key) is UnquotedKey for key in value] == [True] * 6 + [False]


def test_a_marked_key_is_written_in_quotes():
    assert dump_yaml(load_yaml(b"{0: a}", source="x")) == b"'0': a\n"


@pytest.mark.parametrize(
    ("before", "piece", "after", "outcome"),
    [
        ("a: ", "x", "", "characters, the limit is 1048576"),
        ("a: 😀", "x", "", "characters, the limit is 1048576"),
        ('a: "', "\\U0001F600", '"', "characters, the limit is 1048576"),
        ("a: 1\n# ", "x", "", ""),
        ("a: 1\n", "#\n", "", ""),
        ("a: x\n", "  x\n", "", "characters, the limit is 1048576"),
        ('a: "x\n', "y\n", '"', "characters, the limit is 1048576"),
        ("a: |\n", " x\n", "", "characters, the limit is 1048576"),
        ("a: 1", ":1", "", "the value has 16777213 characters"),
        ("a: 1", ":59", "x", "characters, the limit is 1048576"),
        ("a: 1", "_", "x", "characters, the limit is 1048576"),
        ("a: ", "9", "", "the value has 16777213 characters"),
        ("", "[", "", "exceeded maximum nesting depth"),
        ("", "- 1\n", "", "more than 50000 values"),
        ("", "---\n", "", "more than 50000 values"),
    ],
)
def test_sixteen_megabytes_of_anything_are_read_in_bounds(before, piece, after, outcome):
    around = len(before.encode()) + len(after)
    data = (before + piece * ((strict_yaml.MAX_BYTES - around) // len(piece)) + after).encode()
    tracemalloc.start()
    started = time.process_time()
    try:
        if outcome:
            assert outcome in refused(data)
        else:
            load_yaml(data, source="d.yaml")
        assert time.process_time() - started < 4  # Usually a quarter of that.
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


def test_a_document_that_is_no_mapping_is_refused():
    with pytest.raises(DocumentError, match="the document is empty, not a mapping"):
        load_yaml_mapping(b"", source="d.yaml")
    with pytest.raises(DocumentError, match="the document is a list, not a mapping"):
        load_yaml_mapping(b"[1]", source="d.yaml")
    assert load_yaml_mapping(b"a: 1", source="d.yaml") == {"a": 1}


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
