"""Flags as absl's own parser takes them."""

import argparse
import contextlib
import io
import sys

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


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
