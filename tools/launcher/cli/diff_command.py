"""`diff`: what differs between two launches."""

import os
import sys
from collections.abc import Callable
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.affected_bazel import BazelProblem
from tools.launcher.cli.command_output import write_json, write_lines
from tools.launcher.cli.diff_found import Found, NoSuchSide
from tools.launcher.cli.diff_git import GitProblem
from tools.launcher.cli.diff_sides import Building, find_side, side_of
from tools.launcher.cli.diff_smoke import smoke_comparison
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.launch_place import add_store_argument
from tools.launcher.compare.consequences import Comparison, compare
from tools.launcher.compare.render_json import comparison_json
from tools.launcher.compare.render_markdown import markdown_lines
from tools.launcher.compare.render_text import Line, text_lines

DESCRIPTION = """Says what differs between two launches, first by what it means (engines, GPUs, identity,
resume, smoke, and what else changed), then by field. A is what was, B what is to be.

A and B are each one of
  FILE            a launch document, such as a golden; `-` is standard input
  LABEL           //experiments/x: built now, which costs nothing where nothing changed (--no-build: what the last
                  build wrote, whatever became of its sources since)
  REV:FILE        the file at a git revision
  REV:LABEL       the experiment's golden at that revision (--build builds it, in a checkout of its own)
  sha256:DIGEST   a launch on record, by the beginning of its launch digest
  RUN             a run on record: experiment[/launch digest[/ordinal]]

Exit status: 0 equal, 1 they differ, 2 wrong usage, 4 the store, Bazel or git could not answer.

examples:
  tools/bazel run //tools/launcher -- diff HEAD:experiments/x/golden/launch.yaml //experiments/x
  tools/bazel run //tools/launcher -- diff //experiments/x:x_lr_1e_6 //experiments/x:x_lr_2e_6
  tools/bazel run //tools/launcher -- diff origin/main://experiments/cat_count //experiments/cat_count --build
  tools/bazel run //tools/launcher -- diff cat_count/2f1bbe6d //experiments/cat_count --format=markdown
  render | tools/bazel run //tools/launcher -- diff golden.yaml -"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `diff`."""
    parser.add_argument("a", metavar="A", help="what was")
    parser.add_argument("b", metavar="B", help="what is to be")
    parser.add_argument("--format", choices=tuple(_FORMATS), default="text", help="form of the report")
    building = parser.add_mutually_exclusive_group()
    building.add_argument(
        "--build",
        dest="building",
        action="store_const",
        const=Building.REVISIONS,
        default=Building.WORKING_TREE,
        help="build REV:LABEL too",
    )
    building.add_argument(
        "--no-build",
        dest="building",
        action="store_const",
        const=Building.NOTHING,
        help="build nothing: of LABEL take what the last build wrote",
    )
    add_store_argument(parser)


@reporting
def run(flags: Any) -> int:
    """Compare two launches; see DESCRIPTION."""
    try:
        if flags.a == flags.b == "-":
            raise NoSuchSide("standard input is named twice. Give - once")
        found = [find_side(name, flags, os.environ) for name in (flags.a, flags.b)]
    except (NoSuchSide, GitProblem) as problem:
        sys.stderr.write(f"error: {problem}\n")
        return exit_codes.USAGE
    except BazelProblem as problem:
        sys.stderr.write(f"error: {problem}\n")
        return exit_codes.UNKNOWN
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted: nothing was compared\n")
        return exit_codes.INTERRUPTED
    comparison = _compared(*found)
    _FORMATS[flags.format](comparison)
    return exit_codes.OK if comparison.equal else exit_codes.FAILED


def _compared(a: Found, b: Found) -> Comparison:
    before, after = side_of(a), side_of(b)
    return compare(before, after, smoke_comparison((a, before), (b, after)))


def _write_markdown(comparison: Comparison) -> None:
    write_lines(Line(text) for text in markdown_lines(comparison))


_FORMATS: dict[str, Callable[[Comparison], None]] = {
    "text": lambda comparison: write_lines(text_lines(comparison)),
    "json": lambda comparison: write_json(comparison_json(comparison)),
    "markdown": _write_markdown,
}
