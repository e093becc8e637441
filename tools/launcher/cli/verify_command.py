"""`verify`: did a run do what it was launched for?"""

import os
import sys
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.local_environment import local_environment
from tools.launcher.cli.local_gateway import gateway_if_running
from tools.launcher.cli.run_selection import select_run
from tools.launcher.observe.render_text import show_verification
from tools.launcher.observe.verify import record_verification, verify_run
from tools.launcher.store.records import list_records
from tools.launcher.submit.source_state import read_source_state

DESCRIPTION = """Answers yes only if all expected tasks joined, the declared model path was used, optimizer
steps advanced, and terminal checkpoint and export exist. Each fact is shown with the evidence it
was read from, and the answer is written to the run's record. Exit status 0: yes, 1: no.

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
    record = select_run(list_records(here.store()), flags.run)
    with gateway_if_running(here) as gateway:
        verification = verify_run(record, here.store(), here.object_root(), gateway)
    record_verification(here.store(), record.key, read_source_state(os.environ).who, verification)
    print(f"run: {record.key}")
    show_verification(verification, sys.stdout)
    return exit_codes.OK if verification.verified else exit_codes.FAILED
