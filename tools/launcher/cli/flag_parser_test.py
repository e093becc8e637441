"""Flags as absl's own parser takes them."""

import argparse
import contextlib
import fcntl
import io
import os
import struct
import subprocess
import sys
import termios

import pytest
from absl.flags import argparse_flags

from tools.launcher.cli import lint_command
from tools.launcher.cli.commands import COMMANDS, run
from tools.launcher.cli.flag_parser import EXAMPLES, columns, flag_parser, rewrapped

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
    """Which shows a description as it is written; what ours makes of it has tests of its own."""
    return argparse_flags.ArgumentParser(
        prog=prog,
        description=rewrapped(description, max(columns() - 2, 11)),
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


@pytest.mark.parametrize("wide", ["", "0", "-3", "wide", "12", "40", "200"])
def test_help_is_as_wide_as_that_of_absl(monkeypatch, wide):
    monkeypatch.setenv("COLUMNS", wide)
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


DESCRIPTION = """Says what a command does, in a line that somebody wrapped where it was comfortable for them.

A second paragraph:
its lines
are joined, and `--a-flag=with-a-long-value` is never broken.

A list of forms:
  LABEL   //experiments/x: what the last build wrote, in a line that is longer than sixty characters
  FILE    a document

examples:
  tools/bazel run //tools/launcher -- status gsm8k_grpo --store=gs://lab/slipway --record=run.md"""


def test_paragraphs_are_wrapped_and_tables_and_examples_are_not():
    """Lines of help were up to 125 columns long."""
    assert rewrapped(DESCRIPTION, 60) == (
        """Says what a command does, in a line that somebody wrapped
where it was comfortable for them.

A second paragraph: its lines are joined, and
`--a-flag=with-a-long-value` is never broken.

A list of forms:
  LABEL   //experiments/x: what the last build wrote, in a line that is longer than sixty characters
  FILE    a document

examples:
  tools/bazel run //tools/launcher -- status gsm8k_grpo --store=gs://lab/slipway --record=run.md"""
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_no_paragraph_of_any_help_is_wider_than_the_terminal(name, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        run([name, "--help"])
    prose = capsys.readouterr().out.partition("\n\n")[2].partition(EXAMPLES)[0]
    assert [line for line in prose.splitlines() if len(line) > 80 and not line.startswith(" ")] == []


def test_what_wraps_is_imported_for_help_alone():
    code = (
        "import sys\n"
        "from tools.launcher.cli.flag_parser import flag_parser\n"
        "parser = flag_parser('lint', 'Judges.')\n"
        "parser.parse_args([])\n"
        "print('textwrap' in sys.modules)\n"
        "parser.format_help()\n"
        "print('textwrap' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert done.stdout.split() == ["False", "True"]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
