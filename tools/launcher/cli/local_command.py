"""`local`: the embedded Iris of this user."""

import os
import sys
import time
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.local_environment import LocalEnvironment, local_environment
from tools.launcher.cli.runfiles_paths import WrongFile
from tools.launcher.documents.printable import printable
from tools.launcher.iris.gateway import IrisGateway, connect
from tools.launcher.iris.jobs import IrisError
from tools.launcher.iris.local.control import ensure_running, status, stop
from tools.launcher.preflight.wording import counted, listed
from tools.launcher.store.object_store import StoreError
from tools.launcher.store.records import RunRecord, append_event, list_records
from tools.launcher.submit.source_state import read_source_state

DESCRIPTION = """Starts, shows or stops the local Iris: the real controller with workers that say they have
GPUs, on loopback, as a process of its own that outlives this command. State is kept in
$XDG_STATE_HOME/slipway (else ~/.local/state/slipway). A launch on the local cluster starts it.

`stop` is refused while jobs go on there, which it names with their runs, and where that cannot be asked. With
--end-runs it ends them too: the record of each run says that it failed, and a relaunch resumes from its newest
whole checkpoint.

Exit status: 0 done, and for `status` that it runs; 1 of `status`: it does not run; 2 wrong usage; 3 `stop` was
refused, and nothing was stopped.

examples:
  tools/bazel run //tools/launcher -- local start
  tools/bazel run //tools/launcher -- local status
  tools/bazel run //tools/launcher -- local stop
  tools/bazel run //tools/launcher -- local stop --end-runs"""

ENDING_SECONDS = 3.0
"""How long a job may take to end once its run is over, or before one without a run on record counts as at work."""

PAUSE_SECONDS = 0.2


def add_arguments(parser: Any) -> None:
    """Add the flags of `local`."""
    parser.add_argument("action", choices=("start", "status", "stop"))
    parser.add_argument(
        "--end-runs", action="store_true", help="of `stop`: end what goes on there, which fails those runs"
    )


@reporting
def run(flags: Any) -> int:
    """Start, show or stop; see DESCRIPTION. `status` exits with 1 if nothing runs."""
    here = local_environment(os.environ)
    if flags.action != "stop":
        if flags.end_runs:
            raise WrongFile(
                f"--end-runs is of `local stop`, and this is `local {flags.action}`. Leave it out"
            )
        return {"start": _start, "status": _status}[flags.action](here)
    going_on = "" if flags.end_runs else _going_on(here)
    if going_on:
        sys.stderr.write(
            f"refused: {printable(going_on)}. Nothing was stopped. To end everything: tools/bazel run //tools/launcher "
            "-- local stop --end-runs\n"
        )
        return exit_codes.REFUSED
    return _stop(here)


def _start(here: LocalEnvironment) -> int:
    cluster = ensure_running(here.state, on_progress=lambda line: print(line, flush=True))
    if cluster.note:
        print(cluster.note)
    print(
        f"local Iris: {cluster.url} (process {cluster.pid}, {'was running' if cluster.reused else 'started'})"
    )
    return exit_codes.OK


def _status(here: LocalEnvironment) -> int:
    found = status(here.state)
    print(f"local Iris: {found.note}")
    if found.pid is not None:
        print(f"address: {found.url}\nprocess: {found.pid}\nstarted: {found.started_at}")
        print(f"unfinished jobs: {', '.join(found.unfinished_jobs) or 'none'}")
    print(f"log: {found.log}")
    return exit_codes.OK if found.running else exit_codes.FAILED


def _going_on(here: LocalEnvironment) -> str:
    """Return what a stop would end, or why that is not known; "" if nothing goes on."""
    found = status(here.state)
    if found.pid is None:
        return ""
    if not found.running:
        return f"whether runs go on is not known: {found.note}"
    try:
        with connect(found.url) as gateway:
            return _at_work(here, gateway)
    except (IrisError, StoreError) as error:
        return f"whether runs go on is not known: {error}"


def _at_work(here: LocalEnvironment, gateway: IrisGateway) -> str:
    """As `_going_on`, of one that answers."""
    runs = {record.coordinator_job_id: record.key.short_name for record in _unfinished_runs(here)}
    end = time.monotonic() + ENDING_SECONDS
    while jobs := gateway.unfinished_jobs():
        if runs.keys() & set(jobs) or time.monotonic() > end:
            shown = [f"{job} of the run {runs[job]}" if job in runs else job for job in jobs]
            goes = "goes" if len(jobs) == 1 else "go"
            return (
                f"{counted(len(jobs), 'job')} {goes} on: {listed(shown)}. Wait for the end, or cancel the run"
            )
        time.sleep(PAUSE_SECONDS)
    return ""


def _stop(here: LocalEnvironment) -> int:
    outcome = stop(here.state, on_progress=lambda line: print(line, flush=True))
    if not outcome.was_running:
        print("local Iris: was not running")
        return exit_codes.OK
    print(f"local Iris: process {outcome.pid} {'had to be killed' if outcome.forced else 'stopped'}")
    print(f"jobs cancelled: {', '.join(outcome.ended_jobs) or 'none'}")
    _record_ended(here, outcome.ended_jobs)
    return exit_codes.OK


def _record_ended(here: LocalEnvironment, job_ids: tuple[str, ...]) -> None:
    """A coordinator that is ended from outside cannot say so itself, and nothing of its run works any more."""
    who = read_source_state(os.environ).who
    for record in _unfinished_runs(here):
        if record.coordinator_job_id in job_ids:
            facts = {"reason": "ended by `launcher local stop`", "job_id": record.coordinator_job_id}
            append_event(here.store(), record.key, "failed", who, facts)


def _unfinished_runs(here: LocalEnvironment) -> list[RunRecord]:
    """Of the local Iris's own store, by their records."""
    return [record for record in list_records(here.store()) if record.state.is_live or record.leaves_jobs]
