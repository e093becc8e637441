"""`sweep-pin`: writes what every point of a sweep is into the version ledger beside it."""

import argparse
from typing import Any

from tools.launcher.cli import exit_codes, pin_command
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.sweep_files import add_sweep_argument, read_sweep

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
    worst = exit_codes.OK
    for point in read_sweep(flags.sweep).points:
        files = point.files.model_dump()
        status = pin_command.run(argparse.Namespace(**files, ledger=flags.ledger, dry_run=flags.dry_run))
        if status == exit_codes.USAGE:  # Of the workspace or the ledger: of every other point as well.
            return status
        worst = max(worst, status)
    return worst
