"""What the action of a sweep says of values that are no points of their own."""

import sys

import pytest

from tools.launcher.cli.sweep_testlib import write_sweep

_AS_ONE = {"seed=+1": "seed=1", "tests/qwen06-seed+1": "tests/qwen06-seed1"}
"""What main() makes of seed="+1", which it gets as a number."""


def test_one_number_written_in_two_ways_is_named(tmp_path, capsys):
    assert write_sweep(tmp_path, ("1", "+1"), more={"+1": _AS_ONE})[0] == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: //experiments/x:seeds: axis 'seed' has '1' and '+1', which are one number: the points seed_1 and "
        "seed_+1 would be one run. Keep one of the two in `axes`"
    )
    assert not (tmp_path / "seeds.sweep.json").exists()


def test_an_axis_that_is_not_used_is_another_mistake(tmp_path, capsys):
    same = {"seed=2": "seed=1", "tests/qwen06-seed2": "tests/qwen06-seed1"}
    assert write_sweep(tmp_path, ("1", "2"), more={"2": same})[0] == 1
    assert "seed (1, 2) changes nothing that is learned" in capsys.readouterr().err


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
