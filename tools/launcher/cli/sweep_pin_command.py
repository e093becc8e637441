"""`sweep-pin`: writes what every point of a sweep is into the version ledger beside it."""

import argparse
import sys
from typing import Any

from tools.launcher.cli import exit_codes, pin_command
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.sweep_files import add_sweep_argument, read_sweep
from tools.launcher.preflight.wording import counted

DESCRIPTION = """Pins the version of every point of a sweep: writes their digests into the ledger of their package, as
`:pin` of one experiment does. A point that is refused keeps no other from being pinned.

Exit status: 0 pinned, or already so; 2 wrong usage; 3 a point was refused.

examples:
  tools/bazel run //experiments/gsm8k_sweep:pin -- --dry-run
  tools/bazel run //experiments/gsm8k_sweep:pin"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `sweep-pin`."""
    parser.add_argument("--dry-run", action="store_true", help="print what would change, and write nothing")
    add_sweep_argument(parser).add_argument(
        "--ledger", required=True, metavar="FILE", help="ledger to write, from the root of the source tree"
    )


@reporting
def run(flags: Any) -> int:
    """Pin every point; see DESCRIPTION."""
    points = read_sweep(flags.sweep).points
    pinned: list[pin_command.Pinned] = []
    for point in points:
        files = point.files.model_dump()
        pinned.append(
            pin_command.pin(argparse.Namespace(**files, ledger=flags.ledger, dry_run=flags.dry_run))
        )
        # Of the workspace or the ledger: of every other point as well.
        if pinned[-1].status == exit_codes.USAGE:
            break
    changed = sum(each.changes for each in pinned)
    if changed:
        of = f"{changed} of {counted(len(points), 'point')}"
        dry = f"dry run: {of} would change, and {flags.ledger} is not written\n"
        sys.stdout.write(
            dry if flags.dry_run else f"written: {of}, in {flags.ledger}. Review and commit it\n"
        )
    return max(each.status for each in pinned)
