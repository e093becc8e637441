"""`new`: an experiment that builds at once."""

import datetime
import sys
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.new_scaffold import Scaffold, ScaffoldProblem, plan_scaffold, write_scaffold
from tools.launcher.cli.new_templates import TEMPLATES
from tools.launcher.cli.typed_paths import workspace
from tools.launcher.documents.printable import printable

DESCRIPTION = """Makes experiments/NAME: a BUILD.bazel, an experiment.py and a README that build at once, and adds
the package to the lists that name every experiment. What it makes is yours to change.

NAME has lower-case letters, digits and `_`, and is the name of the target too. Nothing that exists is
overwritten: the folder appears whole, or not at all.

templates:
{templates}

Exit status: 0 made (or, with --dry-run, could be made); 2 wrong usage; 3 refused: the folder exists.

examples:
  tools/bazel run //tools/launcher -- new my_first
  tools/bazel run //tools/launcher -- new my_grpo --template=grpo --golden
  tools/bazel run //tools/launcher -- new my_grpo --template=grpo --dry-run
  tools/bazel run //tools/launcher -- new my_sweep --template=sweep""".format(
    templates="\n".join(f"  {name:<13}  {template.what}" for name, template in TEMPLATES.items())
)


def add_arguments(parser: Any) -> None:
    """Add the flags of `new`."""
    parser.add_argument("name", metavar="NAME", help="folder below experiments/, and target")
    parser.add_argument(
        "--template", choices=tuple(TEMPLATES), default="toy", help="where to start; default toy"
    )
    parser.add_argument(
        "--version", metavar="YYYY.MM.DD", help="first version of the experiment; default today (UTC)"
    )
    parser.add_argument(
        "--golden",
        action="store_true",
        help="pin the rendered document under test, docs/authoring.md says how; not of a sweep",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be made, and write nothing")


def run(flags: Any) -> int:
    """Make one experiment; see DESCRIPTION."""
    version = flags.version or f"{datetime.datetime.now(datetime.UTC):%Y.%m.%d}"
    try:
        scaffold = plan_scaffold(workspace(), flags.name, version, flags.template, golden=flags.golden)
        if not flags.dry_run:
            write_scaffold(scaffold)
    except ScaffoldProblem as problem:
        sys.stderr.write(f"{'refused' if problem.exists else 'error'}: {printable(str(problem))}\n")
        return exit_codes.REFUSED if problem.exists else exit_codes.USAGE
    except OSError as error:
        sys.stderr.write(
            f"error: {error.filename}: {error.strerror}. Nothing was made; make the folder writable, or free the disk\n"
        )
        return exit_codes.UNKNOWN
    sys.stdout.write(_told(scaffold, dry_run=flags.dry_run))
    return exit_codes.OK


def _told(scaffold: Scaffold, *, dry_run: bool) -> str:
    lines = [
        f"{'would write' if dry_run else 'written'}: {scaffold.package}/{name}" for name in scaffold.files
    ]
    lines += [f"{'would add to' if dry_run else 'added to'}: {edit.file}" for edit in scaffold.edits]
    lines += [f"add by hand, to {missing.file}: {missing.line}" for missing in scaffold.by_hand]
    if dry_run:
        return "\n".join([*lines, "dry run: nothing is written"]) + "\n"
    target = f"//{scaffold.package}"
    lines += [
        "",
        "next:",
        f"  tools/bazel build {target}",
        f"  tools/bazel run {target}:plan",
        f"  tools/bazel run {target}:rehearse",
    ]
    if scaffold.has_golden:
        lines.append(
            "  tools/bazel run //tests/goldens:update  # once, and after each wanted change of the document"
        )
    return "\n".join(lines) + "\n"
