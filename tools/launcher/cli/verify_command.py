"""`verify`: did a run do what it was launched for?"""

import os
import sys
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.local_environment import local_environment
from tools.launcher.cli.local_gateway import gateway_if_running
from tools.launcher.cli.run_selection import find_run
from tools.launcher.observe.render_text import show_verification
from tools.launcher.observe.verify import record_verification, verify_run
from tools.launcher.submit.settle import settle
from tools.launcher.submit.source_state import read_source_state

DESCRIPTION = """Answers yes only if all expected tasks joined, the declared model path was used, optimizer
steps advanced, and terminal checkpoint and export exist. Each fact is shown with the evidence it
was read from, and the answer about a run that has ended is written to its record. Exit status 0: yes, 1: no.

examples:
  tools/bazel run //tools/launcher -- verify
  tools/bazel run //tools/launcher -- verify cat_count"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `verify`."""
    parser.add_argument("run", nargs="?", metavar="RUN", help="experiment[/launch digest[/ordinal]]")


@reporting
def run(flags: Any) -> int:
    """Verify one run; see DESCRIPTION."""
    here = local_environment(os.environ)
    record = find_run(here.store(), flags.run)
    who = read_source_state(os.environ).who
    with gateway_if_running(here) as gateway:
        if gateway is not None:
            record = settle(here.store(), gateway, record, who)
        verification = verify_run(record, here.store(), here.object_root(), gateway)
    if record.state.is_final:
        record_verification(here.store(), record.key, who, verification)
    print(f"run: {record.key}")
    show_verification(verification, sys.stdout)
    if not record.state.is_final:
        print(f"note: the run is {record.state}, so this is not its final answer and is not recorded")
    return exit_codes.OK if verification.verified else exit_codes.FAILED
