"""`cancel`: end a run's coordinator and children, for a reason that is recorded."""

import os
import sys
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.launch_arguments import AUTHORIZE_HELP
from tools.launcher.cli.launch_waiting import said_if_slow
from tools.launcher.cli.run_checkpoints import remaining_text
from tools.launcher.cli.run_place import (
    ClusterOutOfReach,
    RunPlace,
    add_run_arguments,
    asking,
    credentials_of,
    place_of,
    store_of,
)
from tools.launcher.cli.run_selection import NAMING, WHOLE, NoSuchRun, find_unfinished_run, fits, short_name
from tools.launcher.documents.printable import printable, printable_lines
from tools.launcher.iris.gateway import IrisGateway
from tools.launcher.iris.jobs import IrisError, JobFacts
from tools.launcher.observe.status import read_status
from tools.launcher.store.bundles import BUNDLE_PREFIX, unpack
from tools.launcher.store.content import get_content
from tools.launcher.store.object_store import ObjectStore, StoreError
from tools.launcher.store.records import RunKey, RunRecord, load_record
from tools.launcher.submit.authorization import Authorization, parse_authorization
from tools.launcher.submit.cancel import (
    CancelEnd,
    CancelOutcome,
    cancel_run,
    cancel_unrecorded,
    coordinator_id_of,
    job_words,
    jobs_of,
    request_cancel,
    works,
)
from tools.launcher.submit.gates.credentials import refuse_values_in
from tools.launcher.submit.source_state import read_source_state
from tools.launcher.submit.turns import is_over, runs_with_a_turn

DESCRIPTION = f"""Ends a run: its coordinator and every child. Says what was running and which checkpoint
remains, and records who answers for it and why. Called again after a failure, it goes on. A run that is over
stays as it is.

{NAMING} {WHOLE} Where more than one run fits that is not over, none is taken.

examples:
  tools/bazel run //tools/launcher -- cancel cat_count --dry-run
  tools/bazel run //tools/launcher -- cancel cat_count --authorize="ann: node fault, agreed with ops"
  tools/bazel run //tools/launcher -- cancel gsm8k/2f1bbe6d/1 --store=gs://lab/rl --authorize="ann: quota"
"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `cancel`."""
    add_run_arguments(parser)
    parser.add_argument("--authorize", metavar="WHO: WHY", help=AUTHORIZE_HELP)
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be ended and remain; end and write nothing"
    )


@reporting
def run(flags: Any) -> int:
    """Cancel one run; see DESCRIPTION."""
    if not flags.run:
        raise NoSuchRun(
            "name the run to cancel: experiment[/launch digest[/ordinal]]; `launcher status` shows them"
        )
    authorization = None if flags.dry_run else parse_authorization(flags.authorize)
    who = read_source_state(os.environ).who
    store = store_of(flags, os.environ)
    try:
        record = find_unfinished_run(store, flags.run, is_over)
    except NoSuchRun:
        key = _unrecorded(store, flags.run)
        if key is None:
            raise
        record_now = _cancel_unrecorded(store, key, authorization, who)
        if record_now is None:
            return exit_codes.OK
        record = record_now
    return _cancel(record, store, flags, authorization, who)


def _cancel(
    record: RunRecord, store: ObjectStore, flags: Any, authorization: Authorization | None, who: str
) -> int:
    print(f"run: {record.key} ({record.state})")
    if record.state.is_final and is_over(record):
        why = f": {record.reason}" if record.reason else ""
        _say(f"over already, nothing to cancel: {record.state}{why}")
        return exit_codes.OK
    refuse_values_in("--authorize", str(authorization), credentials_of(record), os.environ)
    place = place_of(record, store, flags, os.environ, who)
    try:
        with asking(place) as gateway:
            with said_if_slow("asking Iris for its jobs"):
                jobs = jobs_of(store, gateway, record)
            reached = _show_what_runs(record, store, place, gateway, jobs)
            if authorization is None:
                print(f"would remain: {_remaining(record, store, place)}")
                print("dry run: nothing was ended or written")
                return exit_codes.OK
            outcome = cancel_run(
                store, gateway, record, by=who, authorized=str(authorization), say=_say, reached=reached
            )
    except (IrisError, ClusterOutOfReach) as error:
        if authorization is None or place.elsewhere:
            raise
        request_cancel(store, record, by=who, authorized=str(authorization))
        sys.stderr.write(
            f"error: {printable_lines(str(error))}. The request to cancel is on record: call this again, which goes on\n"
        )
        return exit_codes.UNKNOWN
    return _show_outcome(outcome, store, place)


def _show_what_runs(
    record: RunRecord, store: ObjectStore, place: RunPlace, gateway: IrisGateway, jobs: tuple[JobFacts, ...]
) -> str:
    """Print the run's jobs and how far it came, and return the latter."""
    coordinator_id = coordinator_id_of(gateway, record)
    for job in jobs:
        _say(f"{'coordinator' if job.job_id == coordinator_id else 'child'}: {job_words(job)}")
    if not works(jobs):
        print("no job of it works")
    status = read_status(record, store, place.place.objects(), gateway)
    reached = f"step {status.step}/{'?' if status.steps_expected is None else status.steps_expected}"
    if record.child_job_ids and place.place.objects() is not None:
        print(f"reached: {reached}")
        return reached
    return ""


def _show_outcome(outcome: CancelOutcome, store: ObjectStore, place: RunPlace) -> int:
    if outcome.end in (CancelEnd.UNREACHABLE, CancelEnd.STILL_WORKS):
        sys.stderr.write(f"error: {printable_lines(outcome.message)}\n")
        return exit_codes.UNKNOWN
    _say(outcome.message)
    if outcome.end is CancelEnd.CANCELLED:
        was = works(outcome.was)
        print(f"was running: {', '.join(job.job_id for job in was) or 'nothing'}")
        print(f"remains: {_remaining(outcome.record, store, place)}")
        store_flag = "".join(f" {argument}" for argument in place.place.store_arguments(os.environ))
        print(
            f"to run the same document again: tools/bazel run //tools/launcher -- relaunch "
            f'{short_name(outcome.record)}{store_flag} --authorize="who: why"'
        )
    return exit_codes.OK


def _remaining(record: RunRecord, store: ObjectStore, place: RunPlace) -> str:
    if not record.bundle_digest:
        return "nothing is known, the record names no bundle"
    try:
        bundle = unpack(get_content(store, BUNDLE_PREFIX, record.bundle_digest))
    except StoreError as error:
        return f"unknown which checkpoint: {error}"
    return remaining_text(bundle, record.key, place.place.objects())


def _unrecorded(store: ObjectStore, wanted: str) -> RunKey | None:
    """The run that holds a turn and has no record, if what was asked for fits one."""
    fitting = [turn.key for turn in runs_with_a_turn(store) if fits(turn.key, wanted)]
    return next((key for key in fitting if load_record(store, key) is None), None)


def _cancel_unrecorded(
    store: ObjectStore, key: RunKey, authorization: Authorization | None, who: str
) -> RunRecord | None:
    """Close the run and return None, or return its record if it has one by now."""
    print(f"run: {key} (it took its turn and is not begun to be recorded)")
    if authorization is None:
        print("dry run: nothing was ended or written")
        return None
    outcome = cancel_unrecorded(store, key, by=who, authorized=str(authorization))
    if outcome is None:
        return load_record(store, key)
    _say(outcome.message)
    return None


def _say(line: str) -> None:
    print(printable(line), flush=True)
