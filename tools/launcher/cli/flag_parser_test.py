"""Flags as absl's own parser takes them."""

import argparse
import contextlib
import fcntl
import io
import os
import struct
import sys
import termios

import pytest
from absl.flags import argparse_flags

from tools.launcher.cli import lint_command
from tools.launcher.cli.flag_parser import flag_parser

CALLS: tuple[list[str], ...] = (
    ["a.yaml"],
    ["--format=json", "a.yaml", "--model_card", "m.yaml", "--", "-b"],
    ["--form=sarif", "-"],
    ["-h"],
    ["--help"],
    ["--helpshort"],
    ["--helpfull"],
    [],
    ["--format=xml", "a.yaml"],
    ["--no_such_flag", "a.yaml"],
    ["--flagfile=x", "a.yaml"],
    ["--ledger"],
    ["--help=1"],
)


def absl_parser(prog, description):
    return argparse_flags.ArgumentParser(
        prog=prog,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        inherited_absl_flags=None,
    )


def answer(make, arguments):
    parser = make("lint", lint_command.DESCRIPTION)
    lint_command.add_arguments(parser)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            outcome = parser.parse_args(arguments)
        except SystemExit as ended:
            outcome = ended.code
    return outcome, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("arguments", CALLS, ids=" ".join)
def test_every_call_is_answered_as_by_absl(arguments):
    ours = answer(flag_parser, arguments)
    assert ours == answer(absl_parser, arguments)
    assert any(ours[1:]) != isinstance(ours[0], argparse.Namespace)


@pytest.mark.parametrize("columns", ["", "0", "-3", "wide", "12", "40", "200"])
def test_help_is_as_wide_as_that_of_absl(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    assert answer(flag_parser, ["--help"]) == answer(absl_parser, ["--help"])


def test_help_is_as_wide_as_the_terminal(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    main, side = os.openpty()
    with os.fdopen(main), os.fdopen(side, "w") as terminal:
        monkeypatch.setattr(sys, "__stdout__", terminal)
        answers = []
        for width in (60, 132, 0):
            fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("4H", 24, width, 0, 0))
            answers.append(answer(flag_parser, ["--help"]))
            assert answers[-1] == answer(absl_parser, ["--help"])
        assert len(set(answers)) == 3


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
