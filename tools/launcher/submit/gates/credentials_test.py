import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.launcher.submit.gates.credentials import credentials_gate, read_credentials

VALUE = "wb-3f9a77c1e0d24"


def judged(value: str | None, public: dict[str, Any] | None = None):
    environ = {} if value is None else {"WANDB_API_KEY": value}
    return credentials_gate(("WANDB_API_KEY",), environ, public or {})


def test_declared_and_present():
    gate = judged(VALUE)
    assert (gate.state, gate.found) == ("passed", "WANDB_API_KEY: present")


def test_an_experiment_that_declares_none():
    gate = credentials_gate((), {}, {})
    assert (gate.state, gate.found) == ("passed", "the experiment declares none")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "not set in the environment"),
        ("", "set, but empty"),
        (" \n", "only white space"),
        (VALUE + "\n", "ends with a line break, as a file that was read whole does"),
        (VALUE + "\r\n", "ends with a line break, as a file that was read whole does"),
        (f" {VALUE}", "white space at its beginning or end"),
        (f"{VALUE}\t", "white space at its beginning or end"),
        (f"{VALUE}\n{VALUE}", "a line break inside"),
        (f"{VALUE}\0{VALUE}", "a NUL character inside"),
        (f"{VALUE}\udce4", "bytes that are no UTF-8 text"),
        # Breaker, issue 4: files of other systems begin with a mark, and pages hand out no-break spaces.
        (f"\ufeff{VALUE}", "a character in it that cannot be seen, such as a tab or a byte order mark"),
        (f"{VALUE}\u00a0", "a character in it that cannot be seen, such as a tab or a byte order mark"),
        (f"{VALUE}\t{VALUE}", "a character in it that cannot be seen, such as a tab or a byte order mark"),
    ],
)
def test_a_value_that_cannot_be_used(value, says):
    gate = judged(value)
    assert gate.state == "missing"
    assert gate.found == f"WANDB_API_KEY: {says}"
    assert "WANDB_API_KEY" in gate.fix and VALUE not in gate.fix


def test_the_fix_of_a_missing_one_leaves_no_trace_in_the_shells_history():
    assert judged(None).fix == "read -rs WANDB_API_KEY && export WANDB_API_KEY"


def test_the_fix_of_a_line_break_takes_it_off():
    assert judged(f"{VALUE}\n").fix == (
        'export WANDB_API_KEY="$(printf %s "$WANDB_API_KEY" | tr -d \'[:space:]\')"'
    )


@pytest.mark.parametrize(
    ("public", "place"),
    [
        (
            {"the launch document": {"skyrl": {"trainer": {"key": VALUE}}}},
            "the launch document at skyrl.trainer.key",
        ),
        ({"the plan": {"roles": [{"layout": f"x{VALUE}x"}]}}, "the plan at roles[0].layout"),
        ({"the request": ["python", f"--k={VALUE}"]}, "the request at [1]"),
        ({"the launch document": {"env": {VALUE: "1"}}}, "the launch document at env"),
        ({"the launch document": {VALUE: {"a": VALUE}}}, "the launch document"),
    ],
)
def test_a_value_that_is_public_is_refused(public, place):
    gate = judged(VALUE, public)
    assert gate.state == "missing"
    assert gate.found == f"WANDB_API_KEY: its value is in {place}, which is stored and shown"
    assert gate.fix == "take it out there, revoke it, and export a new WANDB_API_KEY"


def test_a_number_is_compared_as_it_is_written():
    assert "at seed, which" in judged("1234567890", {"the launch document": {"seed": 1234567890}}).found


def test_a_short_value_is_found_by_chance_and_not_looked_for():
    assert judged("1", {"the launch document": {"num_nodes": 1}}).state == "passed"


@pytest.mark.parametrize("name", ["A/B", "", "-X", "A B", "ä", "K" * 65, "A\n"])
def test_a_name_that_iris_refuses_is_not_shown(name):
    gate = credentials_gate(("HF_TOKEN", name), {"HF_TOKEN": VALUE, name: VALUE}, {})
    assert gate.state == "missing"
    assert gate.found.startswith(
        "declared name 2 of 2 is none that Iris takes (letters, digits and _.-, at most"
    )
    assert name == "" or name not in gate.found.replace("HF_TOKEN", "")
    assert gate.fix == "write the variable's name into `credentials` of the experiment's execution"


def test_all_problems_are_told_at_once_and_each_fix_once():
    gate = credentials_gate(("A_KEY", "B_KEY", "C_KEY"), {"C_KEY": VALUE}, {})
    assert gate.found == "A_KEY: not set in the environment; B_KEY: not set in the environment"
    assert gate.fix == "read -rs A_KEY && export A_KEY; read -rs B_KEY && export B_KEY"


def test_values_are_read_and_hidden():
    values = read_credentials({"A": VALUE, "B": "other"}, ("A",))
    assert set(values) == {"A"} and values["A"].get_secret_value() == VALUE
    assert VALUE not in repr(values)
    with pytest.raises(KeyError, match="MISSING"):
        read_credentials({}, ("MISSING",))


# Letters that no message of ours has, so that even a part of a value would be seen.
SECRET = st.text(alphabet="ΓΔΘΛΞΠΣΦΨΩ", min_size=1, max_size=40)
AROUND = st.sampled_from(["", " ", "\n", "\r\n", "\0", "\udce4"])


@given(secret=SECRET, before=AROUND, after=AROUND, places=st.lists(st.sampled_from("vkn"), max_size=3))
def test_no_answer_holds_a_part_of_a_value(secret, before, after, places):
    value = before + secret + after
    forms = {"v": {"a": [value]}, "k": {value: 1}, "n": {value: {value: f"x{value}x"}}}
    public = {f"file {number}": forms[place] for number, place in enumerate(places)}
    gate = judged(value, public)
    assert not set(secret) & set(
        f"{gate!r}{gate.model_dump_json()}{read_credentials({'A': value}, ('A',))!r}"
    )
    usable = (before, after) == ("", "") and (not places or len(value) < 8)
    assert (gate.state == "passed") == usable


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
