"""`status`: where a run stands."""

import os
import sys
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.record_file import add_record_argument, record_file, write_record
from tools.launcher.cli.run_place import add_run_arguments, looking, place_of, store_of
from tools.launcher.cli.run_selection import NAMING, SHORTENING, find_run
from tools.launcher.observe.render_text import show_status
from tools.launcher.observe.status import read_status
from tools.launcher.submit.source_state import read_source_state

DESCRIPTION = f"""Shows the newest run on record, or the one that is named, and where it stands.

{NAMING} {SHORTENING} `runs` lists them all, `watch` shows one until it ends. With --record the same facts are
written as Markdown.

Exit status: 0 shown, 2 no such run or wrong usage, 4 the store did not answer.

examples:
  tools/bazel run //tools/launcher -- status
  tools/bazel run //tools/launcher -- status cat_count
  tools/bazel run //tools/launcher -- status cat_count/2f1bbe6d/1
  tools/bazel run //tools/launcher -- status gsm8k_grpo --store=gs://lab/slipway --record=run.md"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `status`."""
    add_run_arguments(parser)
    add_record_argument(parser)


@reporting
def run(flags: Any) -> int:
    """Show one run; see DESCRIPTION."""
    target = record_file(flags.record)
    store = store_of(flags, os.environ)
    record = find_run(store, flags.run)
    where = place_of(record, store, flags, os.environ, read_source_state(os.environ).who)
    with looking(where) as (gateway, problem):
        found = read_status(record, store, where.place.objects(), gateway)
    show_status(found, sys.stdout)
    if record.state.is_live and gateway is None:
        if where.place.is_local and not where.elsewhere:
            print(
                "note: the local Iris is not running, so this run does not go on. Launch the experiment again: "
                "that starts it and finds out what became of the run"
            )
        else:
            print(f"note: {problem}")
    if target is not None:
        from tools.launcher.observe.run_markdown import status_markdown

        write_record(target, status_markdown(record, found))
    return exit_codes.OK
