"""No form of a credential's value comes through."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from tools.launcher.coordinator.commands import run_command
from tools.launcher.coordinator.scrub import MASK, NOTHING_TO_HIDE, Scrubber


def _scrubber(*values):
    return Scrubber([SecretStr(value) for value in values])


@pytest.mark.parametrize(
    "value", ["hf_0123456789", 'quo"ted', "back\\slash", "tab\tand end\n", "ümläut-token"]
)
def test_every_way_of_quoting_a_value_is_hidden(value):
    scrubber = _scrubber(value)
    for text in (value, repr(value), json.dumps({"t": value}), json.dumps(value, ensure_ascii=False)):
        cleaned = scrubber.clean(f"before {text} after")
        assert value.strip() not in cleaned
        assert json.dumps(value.strip())[1:-1] not in cleaned
        assert MASK in cleaned
        assert cleaned.startswith("before ")
        assert cleaned.endswith(" after")
    assert value not in repr(scrubber)


def test_a_value_of_several_lines_is_hidden_line_by_line():
    scrubber = _scrubber("-----BEGIN KEY-----\nabcdefghijkl\n}\n")
    assert scrubber.clean("read abcdefghijkl") == f"read {MASK}"
    assert scrubber.clean("{}") == "{}"


def test_the_longer_of_two_values_is_hidden_whole():
    assert _scrubber("token", "token-and-more").clean("x token-and-more y token") == f"x {MASK} y {MASK}"


def test_an_answer_stays_json():
    cleaned = _scrubber('a"b\\c').clean(json.dumps({"failure": 'with a"b\\c inside', "n": 1}))
    assert json.loads(cleaned) == {"failure": f"with {MASK} inside", "n": 1}


def test_nothing_to_hide_changes_nothing():
    assert NOTHING_TO_HIDE.clean("text") == _scrubber("").clean("text") == "text"


@given(st.text(min_size=6), st.text(), st.text())
def test_no_text_keeps_a_value(value, before, after):
    if value.strip() and value not in MASK * 2:
        assert value not in _scrubber(value).clean(before + value + after).replace(MASK, "\0")


def test_what_a_program_writes_is_cleaned_before_anybody_sees_it(capfd):
    code = "import sys; print('out s3cret-value'); print('err s3cret-value', file=sys.stderr)"
    done = run_command(
        (sys.executable, "-c", code), tick=lambda: None, env={}, scrubber=_scrubber("s3cret-value")
    )
    assert (done.stdout, done.stderr_tail) == (f"out {MASK}\n", f"err {MASK}")
    assert capfd.readouterr().err == f"err {MASK}\n"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
