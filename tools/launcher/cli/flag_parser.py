"""The parser of a program's flags where each millisecond of its start counts."""

import argparse
import os
import re
import sys

_COLUMNS = 80
"""Of an output that is no terminal."""

EXAMPLES = "\n\nexamples:\n"
"""With what a description goes on after its paragraphs."""


def flag_parser(prog: str, description: str) -> argparse.ArgumentParser:
    """Return what `absl.flags.argparse_flags` makes for a program without absl flags.

    Importing absl.flags takes as long as starting Python twice, and serves flags that any module may define;
    no module of ours does. A test holds this to absl's own parser: the same help and the same answers.

    Args:
        prog: how usage and errors call the program.
        description: its paragraphs are shown as wide as the terminal; tables and examples as they are written.
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
        super().__init__(prog, width=columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return super()._fill_text(rewrapped(text, width - len(indent)), width, indent)


def rewrapped(description: str, width: int) -> str:
    """Return a description with the lines of its paragraphs as long as there is room.

    What has an indented line is a table, and from the examples on everything is there to be copied.
    """
    # Only for help, as argparse has it.
    import textwrap

    prose, examples, rest = description.partition(EXAMPLES)
    paragraphs = [
        block
        if re.search(r"^\s", block, re.MULTILINE)
        else textwrap.fill(block, width, break_long_words=False, break_on_hyphens=False)
        for block in prose.split("\n\n")
    ]
    return "\n\n".join(paragraphs) + examples + rest


def columns() -> int:
    """As shutil.get_terminal_size() has it."""
    try:
        told = int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        told = 0
    if told > 0:
        return told
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or _COLUMNS  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return _COLUMNS
