"""The parser of a program's flags where each millisecond of its start counts."""

import argparse
import os
import sys

_COLUMNS = 80
"""Of an output that is no terminal."""


def flag_parser(prog: str, description: str) -> argparse.ArgumentParser:
    """Return what `absl.flags.argparse_flags` makes for a program without absl flags.

    Importing absl.flags takes as long as starting Python twice, and serves flags that any module may define;
    no module of ours does. A test holds this to absl's own parser: the same help and the same answers.

    Args:
        prog: how usage and errors call the program.
        description: shown as it is written.
    """
    parser = argparse.ArgumentParser(prog=prog, description=description, formatter_class=_Formatter)
    parser.add_argument("--helpshort", action="help", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument(
        "--helpfull", action="help", default=argparse.SUPPRESS, help="show full help message and exit"
    )
    return parser


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Knows the width of the terminal. argparse asks shutil, which imports three compressors, for each flag."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    """As shutil.get_terminal_size() has it."""
    try:
        columns = int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        columns = 0
    if columns > 0:
        return columns
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or _COLUMNS  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return _COLUMNS
