"""`verify`: did a run do what it was launched for?"""

import os
import sys
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.launch_waiting import said_if_slow
from tools.launcher.cli.record_file import add_record_argument, record_file, write_record
from tools.launcher.cli.run_objects import objects_of
from tools.launcher.cli.run_place import add_run_arguments, looking, place_of, store_of
from tools.launcher.cli.run_selection import NAMING, SHORTENING, find_run
from tools.launcher.cli.verification_answer import answered
from tools.launcher.observe.render_text import show_verification
from tools.launcher.observe.verify import verify_run
from tools.launcher.submit.settle import settle
from tools.launcher.submit.source_state import read_source_state

DESCRIPTION = f"""Answers yes only if all expected tasks joined, the declared model path was used, optimizer
steps advanced, and terminal checkpoint and export exist. Each fact is shown with the evidence it
was read from, and the answer about a run that has ended is written to its record.
Of a run on a real cluster it reads the buckets, with your own credentials for them. What cannot be read from
here is unknown, which makes the answer no; such an answer is not recorded, and one on record stands.
With --record the same facts are written as Markdown.

{NAMING} {SHORTENING}

Exit status: 0 yes, 1 no, 2 no such run or wrong usage, 4 the store or the files could not be read.

examples:
  tools/bazel run //tools/launcher -- verify
  tools/bazel run //tools/launcher -- verify cat_count
  tools/bazel run //tools/launcher -- verify gsm8k_grpo --store=gs://lab/slipway --record=run.md"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `verify`."""
    add_run_arguments(parser)
    add_record_argument(parser)


@reporting
def run(flags: Any) -> int:
    """Verify one run; see DESCRIPTION."""
    target = record_file(flags.record)
    store = store_of(flags, os.environ)
    record = find_run(store, flags.run)
    who = read_source_state(os.environ).who
    where = place_of(record, store, flags, os.environ, who)
    with looking(where) as (gateway, problem):
        if gateway is not None:
            record = settle(store, gateway, record, who)
        with said_if_slow("reading what the run left"):
            verification = verify_run(
                record, store, where.place.objects(), gateway, objects=objects_of(where.place)
            )
    print(f"run: {record.key}")
    notes: list[str] = []
    if record.state.is_final and not record.leaves_jobs:
        status = answered(store, record, who, verification)
    else:
        show_verification(verification, sys.stdout)
        notes.append(f"the run is {record.state}, so this is not its final answer and is not recorded")
        if problem and not where.place.is_local:
            notes.append(problem)
        sys.stdout.writelines(f"note: {note}\n" for note in notes)
        status = exit_codes.OK if verification.verified else exit_codes.FAILED
    if target is not None:
        from tools.launcher.observe.run_markdown import verification_markdown

        write_record(target, verification_markdown(record, verification, notes))
    return status
