"""`affected`: which experiments a change touches."""

import os
import sys
from collections.abc import Callable
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.affected_bazel import BazelProblem
from tools.launcher.cli.affected_states import (
    Question,
    State,
    state_of_file,
    state_of_revision,
    state_of_working_tree,
)
from tools.launcher.cli.command_output import write_json, write_lines
from tools.launcher.cli.diff_git import GitProblem
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.typed_paths import workspace
from tools.launcher.compare.affected import AffectedReport, affected_report
from tools.launcher.compare.render_affected import affected_json, affected_markdown, affected_text
from tools.launcher.compare.render_text import Line

DESCRIPTION = """Tells which experiments' recipe or launch digest changes between two states of the sources,
which are new or gone, and which do not build any more.

A state is a git revision, or a file that a digest_manifest target built (it ends in .json). Without --head it
is the working tree, built where you are. A revision is built once, in a checkout of its own below
~/.cache/slipway with a Bazel server of its own; its digests are kept, so that the next call reads them, and so
are those of the working tree, for the revision that a commit of it makes. The first build of that checkout
fetches and builds everything and takes minutes.

  recipe    something else is learned: it needs a new version, unless nobody launched the old one
  launch    the same recipe in another place, or with other limits
  graph     the same launch document, and another deadline, other credentials, or other steps after training
  refused   it built before and does not build now

Exit status: 0 it could be told, 1 --fail-on says so, 2 wrong usage, 4 Bazel or git could not answer.

examples:
  tools/bazel run //tools/launcher -- affected --base=origin/main
  tools/bazel run //tools/launcher -- affected --base=HEAD~1 --head=HEAD --format=markdown
  tools/bazel run //tools/launcher -- affected --base=main.digests.json --fail-on=recipe"""

EVERY_EXPERIMENT = "//experiments/..."


def add_arguments(parser: Any) -> None:
    """Add the flags of `affected`."""
    parser.add_argument(
        "--base", required=True, metavar="STATE", help="before: a git revision, or a *.json manifest"
    )
    parser.add_argument("--head", metavar="STATE", help="after: likewise; left out, the working tree")
    parser.add_argument(
        "--targets",
        default=EVERY_EXPERIMENT,
        metavar="QUERY",
        help=f"which experiments, as `bazel query` takes it; default {EVERY_EXPERIMENT}",
    )
    parser.add_argument(
        "--bazel-flag", action="append", default=[], metavar="FLAG", help="option for each build; repeatable"
    )
    parser.add_argument("--format", choices=tuple(_FORMATS), default="text", help="form of the report")
    parser.add_argument(
        "--fail-on",
        choices=("recipe",),
        help="exit with 1 if a recipe changed, or an experiment does not build any more",
    )


@reporting
def run(flags: Any) -> int:
    """Compare two states; see DESCRIPTION."""
    question = Question(workspace(), flags.targets, tuple(flags.bazel_flag), os.environ)
    try:
        base = _state(question, flags.base)
        head = state_of_working_tree(question) if flags.head is None else _state(question, flags.head)
    except GitProblem as problem:
        sys.stderr.write(f"error: {problem}\n")
        return exit_codes.USAGE
    except BazelProblem as problem:
        sys.stderr.write(f"error: {problem}\n")
        return exit_codes.UNKNOWN
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted: nothing was told; what is built already is kept for the next call\n")
        return exit_codes.INTERRUPTED
    report = affected_report(base.manifest, head.manifest, names=(base.name, head.name))
    _FORMATS[flags.format](report)
    failed = flags.fail_on == "recipe" and report.touches_recipe()
    return exit_codes.FAILED if failed else exit_codes.OK


def _state(question: Question, state: str) -> State:
    return state_of_file(state) if state.endswith(".json") else state_of_revision(question, state)


def _write_markdown(report: AffectedReport) -> None:
    write_lines(Line(text) for text in affected_markdown(report))


_FORMATS: dict[str, Callable[[AffectedReport], None]] = {
    "text": lambda report: write_lines(affected_text(report)),
    "json": lambda report: write_json(affected_json(report)),
    "markdown": _write_markdown,
}
