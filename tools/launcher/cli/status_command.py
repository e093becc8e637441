"""`status`: where a run stands."""

import os
import sys
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.local_environment import local_environment
from tools.launcher.cli.local_gateway import gateway_if_running
from tools.launcher.cli.run_selection import find_run
from tools.launcher.observe.render_text import show_status
from tools.launcher.observe.status import read_status

DESCRIPTION = """Shows the newest run on record, or the one that is named, and where it stands.

A run is named by experiment, launch digest and ordinal; the beginning is enough.

examples:
  tools/bazel run //tools/launcher -- status
  tools/bazel run //tools/launcher -- status cat_count
  tools/bazel run //tools/launcher -- status cat_count/2f1bbe6d/1"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `status`."""
    parser.add_argument("run", nargs="?", metavar="RUN", help="experiment[/launch digest[/ordinal]]")


@reporting
def run(flags: Any) -> int:
    """Show one run; see DESCRIPTION."""
    here = local_environment(os.environ)
    record = find_run(here.store(), flags.run)
    with gateway_if_running(here) as gateway:
        show_status(read_status(record, here.store(), here.object_root(), gateway), sys.stdout)
    if gateway is None and record.state.is_live:
        print(
            "note: the local Iris is not running, so this run does not go on. Launch the experiment again: "
            "that starts it and finds out what became of the run"
        )
    return exit_codes.OK
