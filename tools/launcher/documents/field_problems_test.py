"""A field that is wrong is named with what it may have been meant to be."""

import sys

import pytest

from tools.launcher.documents.field_problems import field_problem

FIELDS = ("name", "num_attention_heads", "num_hidden_layers", "hidden_size")


@pytest.mark.parametrize(
    ("kind", "name", "fields", "sentence"),
    [
        ("missing", "name", FIELDS, "it is missing, and has no default"),
        ("extra_forbidden", "hiden_size", FIELDS, "there is no such field (did you mean hidden_size?)"),
        (
            "extra_forbidden",
            "attention_heads",
            FIELDS,
            "there is no such field (did you mean num_attention_heads?)",
        ),
        ("extra_forbidden", "x", FIELDS[:2], "there is no such field (known: name, num_attention_heads)"),
        ("extra_forbidden", "x", [f"q{i:02}" for i in range(14)], "q10, q11 and 2 more)"),
        ("extra_forbidden", "x", (), "there is no such field"),
        ("value_error", "name", FIELDS, "a rule"),
        ("int_type", "name", FIELDS, "Value error, a rule, got 'many'"),
    ],
)
def test_the_sentence_says_what_to_do(kind, name, fields, sentence):
    said = field_problem(kind, "Value error, a rule", "'many'", name, fields)
    assert said == sentence or ("more" in sentence and said.endswith(sentence))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
