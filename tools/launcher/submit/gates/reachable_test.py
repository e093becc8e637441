import sys

import pytest

from tools.launcher.submit.gates.placeable import Placement, placeable
from tools.launcher.submit.gates.reachable import Reach, reachable


def test_a_controller_that_answers():
    gate = reachable(Reach(where="http://127.0.0.1:10000"))
    assert (gate.state, gate.found, gate.fix) == ("passed", "http://127.0.0.1:10000 answers", "")


def test_a_controller_that_knows_who_asks():
    assert reachable(Reach(where="the hub", user="ada")).found == "the hub answers, and knows ada"


def test_a_controller_that_does_not():
    gate = reachable(Reach(where="the hub", problem="no answer within 10 s", fix="open the tunnel"))
    assert (gate.state, gate.found, gate.fix) == ("missing", "no answer within 10 s", "open the tunnel")


@pytest.mark.parametrize(
    ("fits", "state", "found"),
    [
        (True, "passed", "4 of 32 nodes are free"),
        (False, "missing", "4 of 32 nodes are free"),
        (None, "missing", "not known: 4 of 32 nodes are free"),
    ],
)
def test_an_allocation(fits, state, found):
    gate = placeable(Placement(fits=fits, found="4 of 32 nodes are free", fix="" if fits else "take fewer"))
    assert (gate.state, gate.found, gate.fix) == (state, found, "" if fits else "take fewer")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
