import sys

import pytest

from tools.launcher.submit.gates.evaluate import evaluate
from tools.launcher.submit.gates.gate import GATE_IDS, OVERRIDABLE, Gate, GateState
from tools.launcher.submit.gates.overrides import (
    Override,
    OverrideError,
    collect_overrides,
    parse_override,
)


def passed(**states: GateState) -> list[Gate]:
    """All gates; `clean_tree="missing"` changes one."""
    return [
        Gate(
            id=gate_id,
            state=(state := states.get(gate_id.replace("-", "_"), "passed")),
            found="found",
            fix="git commit" if state == "missing" else "",
        )
        for gate_id in GATE_IDS
    ]


@pytest.mark.parametrize(
    ("text", "gate", "kept"),
    [
        ("smoke=ada: the pool is down", "smoke", "ada: the pool is down"),
        (" budget = ada  lovelace :  see https://x/1 ", "budget", "ada lovelace: see https://x/1"),
        ("clean-tree=ada: a=b", "clean-tree", "ada: a=b"),
        ("placeable=ada: nodes come at noon", "placeable", "ada: nodes come at noon"),
    ],
)
def test_an_override_is_read(text, gate, kept):
    assert parse_override(text) == Override(gate=gate, who_and_why=kept)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("smoke", "--override 'smoke' has no `=`. Write it as --override smoke=\"ada: "),
        (
            "weather=ada: rain",
            (
                "--override 'weather': there is no such gate. Gates that can be answered for: "
                "clean-tree, budget, "
                "smoke, placeable"
            ),
        ),
        (
            "credentials=ada: none",
            (
                "--override credentials: nobody's word makes it true. Gates that can be answered for: "
                "clean-tree,"
            ),
        ),
        ("smoke=the pool is down", "--override smoke: 'the pool is down' does not say why."),
        ("smoke=ada:", "--override smoke: 'ada:' does not say why."),
        ("smoke= : the pool is down", "--override smoke: ': the pool is down' does not say who."),
        ("smoke=", "--override smoke: '' does not say who."),
        ("smoke=ada: a\nb", "--override smoke: the answer has a line break or another control character."),
        ("smoke=ada: " + "x" * 500, "--override smoke: the answer has 505 characters, at most 500 are kept."),
    ],
)
def test_an_override_that_cannot_be_taken_says_why(text, says):
    with pytest.raises(OverrideError) as raised:
        parse_override(text)
    assert str(raised.value).startswith(says)


@pytest.mark.parametrize("gate", sorted(set(GATE_IDS) - OVERRIDABLE))
def test_what_nobody_can_answer_for(gate):
    with pytest.raises(OverrideError, match=f"--override {gate}: nobody's word makes it true"):
        parse_override(f"{gate}=ada: please")


def test_allow_dirty_is_an_override_of_the_clean_tree():
    (override,) = collect_overrides([], allow_dirty="ada@lab")
    assert override == Override(gate="clean-tree", who_and_why="ada@lab: --allow-dirty")
    assert collect_overrides([], allow_dirty=None) == ()


def test_one_gate_is_answered_for_once():
    with pytest.raises(OverrideError) as raised:
        collect_overrides(["smoke=ada: a", "budget=ada: b", "smoke=bob: c"], allow_dirty=None)
    assert str(raised.value) == "smoke is answered for 2 times: ada: a; bob: c. Give one answer"
    with pytest.raises(OverrideError, match=r"clean-tree is answered for 2 times \(--allow-dirty is one"):
        collect_overrides(["clean-tree=ada: a"], allow_dirty="ada@lab")


def test_what_is_overridden_does_not_stop_the_launch_and_is_recorded():
    gates = passed(clean_tree="missing", smoke="missing")
    assert [gate.id for gate in evaluate(gates, []).missing] == ["clean-tree", "smoke"]
    report = evaluate(gates, [parse_override("smoke=ada: the pool is down")])
    assert [gate.id for gate in report.missing] == ["clean-tree"]
    facts = report.facts()
    assert facts["overrides"] == {"smoke": "ada: the pool is down"}
    assert (facts["gates"]["smoke"], facts["gates"]["clean-tree"]) == ("overridden", "missing")
    assert next(gate for gate in report.gates if gate.id == "smoke").fix == ""


@pytest.mark.parametrize("state", ["passed", "not_needed"])
def test_an_override_that_nobody_needed_is_a_note(state):
    report = evaluate(passed(smoke=state), [parse_override("smoke=ada: x")])
    (gate,) = (gate for gate in report.gates if gate.id == "smoke")
    assert (gate.state, gate.found) == (state, "found (the override was not needed)")
    assert report.facts()["overrides"] == {}


def test_an_override_of_what_is_not_asked_may_still_be_needed():
    report = evaluate(passed(smoke="not_asked"), [parse_override("smoke=ada: x")])
    (gate,) = (gate for gate in report.gates if gate.id == "smoke")
    assert gate.state == "not_asked" and report.missing == ()
    assert gate.found == "found (the override answers for it if it is missing then)"


def test_a_report_has_every_gate_once_and_in_order():
    assert [gate.id for gate in evaluate(reversed(passed()), []).gates] == list(GATE_IDS)
    for wrong in (passed()[1:], [*passed(), passed()[0]]):
        with pytest.raises(ValueError, match="a report has each of clean-tree, fixed-version, "):
            evaluate(wrong, [])


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
