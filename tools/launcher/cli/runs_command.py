"""`runs`: what is on record."""

import argparse
import datetime
import os
import re
import shlex
import sys
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.command_output import write_json
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.launch_waiting import said_if_slow
from tools.launcher.cli.run_place import add_record_store_argument, store_of
from tools.launcher.cli.run_selection import did_you_mean, near_names
from tools.launcher.observe.render_runs import runs_json, runs_markdown, show_runs
from tools.launcher.observe.run_listing import Listing, SinceInvalid, Wanted, list_runs, parse_since
from tools.launcher.preflight.wording import counted, listed
from tools.launcher.store.records import RunState

DESCRIPTION = """Lists the runs on record, newest first.

--experiment takes the name of an experiment, for its runs at every stage; the name of a sweep, for those of all its
points; or a pattern such as 'my_sweep*' in quotes, with * for any letters and ? for any one.

The state is by the record: a run whose coordinator died without a word is still `running` here; `status` and
`watch` ask Iris. Of each run of the experiment the first event is read, and all events (about ten) of the
runs that are shown; reads go eight at a time. --state needs all events of a run to tell whether it fits. Of a run
whose name begins with that of the sweep, the stored bundle tells whether it is one of its points.

Exit status: 0 listed, also if none fits; 2 wrong usage, 4 the store did not answer.

examples:
  tools/bazel run //tools/launcher -- runs
  tools/bazel run //tools/launcher -- runs --experiment=cat_count --state=running --state=submitted
  tools/bazel run //tools/launcher -- runs --experiment=gsm8k_sweep
  tools/bazel run //tools/launcher -- runs --runtime=81ae0ef7 --since=7d --format=markdown
  tools/bazel run //tools/launcher -- runs --version=2026.11.30 --format=json --store=gs://lab/slipway"""

DEFAULT_LIMIT = 50
_COMMIT = re.compile(r"[0-9a-f]{4,40}")


def add_arguments(parser: Any) -> None:
    """Add the flags of `runs`."""
    # No argument of it: only to say what is meant by one.
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument(
        "--experiment",
        metavar="NAME",
        help="of this experiment or sweep, or of all whose names fit this pattern",
    )
    parser.add_argument("--version", metavar="VERSION", help="of this version, such as 2026.11.30")
    parser.add_argument(
        "--state",
        action="append",
        default=[],
        choices=[state.value for state in RunState],
        help="in this state by its record; repeatable",
    )
    parser.add_argument("--runtime", metavar="COMMIT", help="of this runtime: the beginning of its commit")
    parser.add_argument(
        "--since",
        metavar="WHEN",
        help="launched since then: a span before now (12h, 7d), a date (UTC) or a time with its offset",
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=DEFAULT_LIMIT,
        metavar="N",
        help=f"at most so many; default {DEFAULT_LIMIT}",
    )
    parser.add_argument(
        "--format", choices=("table", "json", "markdown"), default="table", help="form of the list"
    )
    add_record_store_argument(parser)


@reporting
def run(flags: Any) -> int:
    """List runs; see DESCRIPTION."""
    try:
        wanted = _wanted(flags)
    except _WrongFlag as problem:
        sys.stderr.write(f"error: {problem}\n")
        return exit_codes.USAGE
    store = store_of(flags, os.environ)
    with said_if_slow(f"reading the records in {store.url}"):
        listing = list_runs(store, wanted, flags.limit)
    if flags.format == "json":
        write_json(runs_json(listing.records))
    elif flags.format == "markdown":
        sys.stdout.write(runs_markdown(listing.records))
    elif listing.records:
        show_runs(listing.records, sys.stdout)
    sys.stdout.flush()
    for note in _notes(listing, flags, store.url):
        sys.stderr.write(f"note: {note}\n")
    return exit_codes.OK


class _WrongFlag(Exception):
    """A flag has a value that cannot be meant."""


def _wanted(flags: Any) -> Wanted:
    if flags.words:
        word = flags.words[0]
        raise _WrongFlag(f"'{word}' is no flag. Did you mean --experiment={shlex.quote(word)}?")
    if flags.limit < 1:
        raise _WrongFlag(f"--limit={flags.limit}: nothing would be shown. Give a number from 1")
    if flags.runtime is not None and not _COMMIT.fullmatch(flags.runtime):
        raise _WrongFlag(
            f"--runtime={flags.runtime}: that begins no commit. Give at least 4 of its lower-case hex digits"
        )
    try:
        since = parse_since(flags.since, datetime.datetime.now(datetime.UTC)) if flags.since else None
    except SinceInvalid as problem:
        raise _WrongFlag(f"--since: {problem}") from None
    return Wanted(
        experiment=flags.experiment,
        version=flags.version,
        states=frozenset(map(RunState, flags.state)),
        runtime=flags.runtime,
        since=since,
    )


def _notes(listing: Listing, flags: Any, url: str) -> list[str]:
    notes = [f"left out: {problem}" for problem in listing.damaged]
    if listing.left_out:
        were = "was" if listing.left_out == 1 else "were"
        notes.append(
            f"{counted(listing.left_out, 'older run')} {were} not read; --limit={flags.limit * 4} shows more"
        )
    if listing.records:
        return notes
    if not listing.experiments:
        return [*notes, f"no run is on record yet in {url}"]
    if not listing.meant:
        nothing = f"no run of '{flags.experiment}' is on record in {url}"
        near = near_names(flags.experiment, listing.experiments)
        if near:
            begun = any(name.startswith(flags.experiment) for name in near)
            every = f" All that begin so: --experiment='{flags.experiment}*'" if begun else ""
            return [*notes, f"{nothing}{did_you_mean(near)}{every}"]
        return [*notes, f"{nothing}. There are runs of: {listed(listing.experiments)}"]
    return [*notes, f"no run on record in {url} fits"]
