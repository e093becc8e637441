"""`local`: the embedded Iris of this user."""

import os
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.local_environment import LocalEnvironment, local_environment
from tools.launcher.iris.local.control import ensure_running, status, stop
from tools.launcher.store.records import append_event, list_records
from tools.launcher.submit.source_state import read_source_state

DESCRIPTION = """Starts, shows or stops the local Iris: the real controller with workers that say they have
GPUs, on loopback, as a process of its own that outlives this command. State is kept in
$XDG_STATE_HOME/slipway (else ~/.local/state/slipway). A launch on the local cluster starts it.

examples:
  tools/bazel run //tools/launcher -- local start
  tools/bazel run //tools/launcher -- local status
  tools/bazel run //tools/launcher -- local stop"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `local`."""
    parser.add_argument("action", choices=("start", "status", "stop"))


@reporting
def run(flags: Any) -> int:
    """Start, show or stop; see DESCRIPTION. `status` exits with 1 if nothing runs."""
    here = local_environment(os.environ)
    return {"start": _start, "status": _status, "stop": _stop}[flags.action](here)


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
    for record in list_records(here.store()):
        if (record.state.is_live or record.leaves_jobs) and record.coordinator_job_id in job_ids:
            facts = {"reason": "ended by `launcher local stop`", "job_id": record.coordinator_job_id}
            append_event(here.store(), record.key, "failed", who, facts)
