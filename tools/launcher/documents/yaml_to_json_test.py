import json
import sys

import pytest

from tools.launcher.documents.strict_yaml import load_yaml
from tools.launcher.documents.yaml_to_json import main

DOCUMENT = """\
text: "ä \\U0001F600 \\u2028"
numbers: [0, -1, 1.0, 1e-6, .5, 12345678901234567890, .inf]
others: {on: yes, none: null, empty: {}, list: [], 1: "1"}
shared: &shared {a: [1]}
merged: {<<: *shared, b: 2}
z: 1
a: 2
"""


def written(folder, text):
    source, output = folder / "source.yaml", folder / "output.json"
    source.write_text(text, encoding="utf-8")
    return main([str(source), str(output)]), output


def test_the_values_and_their_order_are_the_same(tmp_path):
    status, output = written(tmp_path, DOCUMENT)
    expected = load_yaml(DOCUMENT.encode(), source="x")
    assert status == 0 and repr(json.loads(output.read_bytes())) == repr(expected)


def test_the_same_document_gives_the_same_bytes(tmp_path):
    first, second = (written(tmp_path, DOCUMENT)[1].read_bytes() for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\na: 2\n", "source.yaml:2:1: the key 'a' appears twice in one mapping. Keep one of them"),
        ("- 1\n", "source.yaml: the document is a list, not a mapping. Write `key: value` lines"),
    ],
)
def test_what_is_refused_as_yaml_is_not_written(tmp_path, capsys, text, sentence):
    status, output = written(tmp_path, text)
    assert status == 1 and not output.exists()
    assert capsys.readouterr().err == f"error: {tmp_path}/{sentence}\n"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
