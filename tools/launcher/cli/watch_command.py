"""`watch`: a run until it ends."""

import os
import sys
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.run_following import checkpoints_of, follow_to_end
from tools.launcher.cli.run_place import add_run_arguments, looking, place_of, store_of
from tools.launcher.cli.run_selection import NAMING, SHORTENING, find_run
from tools.launcher.store.records import RunRecord, RunState
from tools.launcher.submit.source_state import read_source_state

DESCRIPTION = f"""Shows a run until it ends, whoever launched it and wherever, then verifies it as `verify`
does.

On a terminal a table changes in place; elsewhere, or with --plain, there is a line whenever something
changes. The time that is left comes from the steps that were seen to end meanwhile, so it is known from the
second one on. The MarinSkyRL runtime tells no steps before the end; there it is the steps of the newest
checkpoint that count. Ctrl-C ends the watching, not the run.

{NAMING} {SHORTENING}

Exit status: 0 the run is verified, 1 it failed, was cancelled, or is not verified, 2 no such run or wrong
usage, 4 it is not known what becomes of it, 130 interrupted. With --once: 0 it goes on or succeeded, 1 it
ended otherwise.

examples:
  tools/bazel run //tools/launcher -- watch
  tools/bazel run //tools/launcher -- watch cat_count/2f1bbe6d/1 --plain
  tools/bazel run //tools/launcher -- watch gsm8k_grpo --store=gs://lab/slipway
  tools/bazel run //tools/launcher -- watch cat_count --once"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `watch`."""
    add_run_arguments(parser)
    parser.add_argument("--plain", action="store_true", help="lines, also on a terminal")
    parser.add_argument("--once", action="store_true", help="one look, then end")


@reporting
def run(flags: Any) -> int:
    """Watch one run; see DESCRIPTION."""
    from tools.launcher.cli.progress_display import display_for, in_lines, show_once

    store = store_of(flags, os.environ)
    record = find_run(store, flags.run)
    who = read_source_state(os.environ).who
    where = place_of(record, store, flags, os.environ, who)
    place = where.place
    goes_on = record.state.is_live or record.leaves_jobs
    with looking(where) as (gateway, problem):
        if flags.once:
            from tools.launcher.observe.status import read_status

            found = read_status(record, store, place.objects(), gateway, checkpoints=checkpoints_of(place))
            show_once(sys.stdout, found, on_terminal=sys.stdout.isatty() and not flags.plain)
            if goes_on and gateway is None:
                print(f"note: {problem}")
            return exit_codes.FAILED if _ended_badly(record) else exit_codes.OK
        if goes_on and gateway is None:
            if place.is_local and not where.elsewhere:
                sys.stderr.write(
                    f"error: the run {record.key.short_name} is {record.state} and does not go on: {problem}. Or "
                    "launch the experiment again, which also finds out what became of the run\n"
                )
                return exit_codes.UNKNOWN
            sys.stderr.write(
                f"note: {problem}. Only the record is watched: if the coordinator dies without a word, this waits "
                "for ever\n"
            )
        display = in_lines if flags.plain else display_for(sys.stdout)
        return follow_to_end(record.key, place, store, gateway, who, display)


def _ended_badly(record: RunRecord) -> bool:
    return record.state.is_final and record.state is not RunState.SUCCEEDED
