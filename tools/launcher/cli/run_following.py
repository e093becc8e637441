"""Following a run until it ends, then verifying it: a launch after its submission, `watch` at any time.

What following needs is imported when it begins: after a submission the job is on its way by then, and Iris
takes longer to start it.
"""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tools.launcher.cli import exit_codes
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.cli.launch_waiting import said_if_slow
from tools.launcher.cli.run_ending import verify_and_show
from tools.launcher.documents.printable import printable_lines
from tools.launcher.iris.gateway import IrisGateway
from tools.launcher.iris.local.control import status
from tools.launcher.iris.local.state import LocalClusterError
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import RunKey, RunRecord, RunState, record_prefix, reload_record
from tools.launcher.store.remembered_reads import RememberedReads
from tools.launcher.submit.settle import settle

if TYPE_CHECKING:
    from tools.launcher.cli.progress_display import Display
    from tools.launcher.observe.newest_checkpoint import Checkpoints
    from tools.launcher.observe.progress import Progress

GLANCE_SECONDS = 0.05
"""How often a record in a folder of this machine is asked whether it has another event."""

QUIET_SHARE = 0.1
"""Pause between two looks at a run elsewhere, as a share of the time since the last change."""

LONGEST_PAUSE_SECONDS = 5.0
"""Longest such pause."""

FULL_DISK_BYTES = 2**20
"""Free space below which the local Iris can't write its database."""

CHECKPOINT_SECONDS = 5.0
"""How long a bucket may take to tell the newest checkpoint. Meanwhile nothing else is looked at."""

CANCELLED_SECONDS = 15.0
"""How long whoever cancels a run may take from the end of its coordinator to the last word."""

SETTLED_SECONDS = 0.5
"""Pause between two looks for that word."""


def follow_to_end(
    key: RunKey,
    place: LaunchPlace,
    store: ObjectStore,
    gateway: IrisGateway | None,
    who: str,
    display: "Display | None" = None,
    *,
    again: str | None = None,
) -> int:
    """Show a run until it ends, then verify it, and return the exit status of `verify`.

    Ctrl-C ends the watching and not the run, and says so.

    Args:
        key: which.
        place: where it is.
        store: of its record.
        gateway: the scheduler, None if it cannot be asked.
        who: who watches, for what is written to the record at the end.
        display: shows the looks on stdout; None: what suits it.
        again: the command line that relaunches the run, but for --authorize; None: as `verify_and_show`.

    Raises:
        StoreError: the store failed.
        LocalClusterError: the disk of the local Iris is full.
    """
    from tools.launcher.cli.progress_display import display_for
    from tools.launcher.observe.progress import FollowEnd, follow

    # Each look reads the whole record again, and in a bucket each event is a request.
    waiting = _Waiting(place, store, key)
    looks = follow(
        RememberedReads(store),
        key,
        place.objects(),
        gateway,
        checkpoints=checkpoints_of(place),
        sleep=waiting.sleep,
    )
    try:
        last = (display or display_for(sys.stdout))(sys.stdout, waiting.noticing(looks))
    except KeyboardInterrupt:
        sys.stderr.write(
            f"\ninterrupted: the run {key.short_name} goes on. To watch it again: {watch_command(key, place)}\n"
        )
        return exit_codes.INTERRUPTED
    if last.end in (FollowEnd.UNREACHABLE, FollowEnd.COORDINATOR_SILENT):
        help_ = "Launch again: that finds out what became of the run"
        if place.state is not None:
            help_ = (
                f"The local Iris: {status(place.state).note}. Launch again: that starts it if need be and "
                "finds out what became of the run"
            )
        sys.stderr.write(f"error: {printable_lines(last.message)}. {help_}\n")
        return exit_codes.UNKNOWN
    if last.end is FollowEnd.NOT_SUBMITTED:
        sys.stderr.write(f"error: {printable_lines(last.message)}\n")
        # One that is being submitted right now may yet go on.
        return exit_codes.UNKNOWN if last.status.state is RunState.INTENT else exit_codes.FAILED
    record = reload_record(store, key)
    if gateway is not None:
        record = settle(store, gateway, record, who)
    return verify_and_show(seen_cancelled(store, record), place, store, gateway, who, again=again)


def seen_cancelled(store: ObjectStore, record: RunRecord) -> RunRecord:
    """Return a run that ended while it was being cancelled as whoever cancels it leaves it.

    Its coordinator fails for want of a child that was ended; that it was cancelled is written down once every job
    has ended, a moment later.
    """
    deadline = time.monotonic() + CANCELLED_SECONDS
    with said_if_slow(f"{record.key.short_name} is being cancelled: waiting for its jobs to be seen ended"):
        while record.state is RunState.FAILED and record.cancel_requests and time.monotonic() < deadline:
            time.sleep(SETTLED_SECONDS)
            record = reload_record(store, record.key)
    return record


def watch_command(key: RunKey, place: LaunchPlace) -> str:
    """Return the command that watches a run from anywhere that has its store."""
    words = ["tools/bazel", "run", "//tools/launcher", "--", "watch", key.short_name]
    words += place.store_arguments(os.environ)
    if not place.is_local and place.route.controller is not None:
        words.append(f"--controller={place.route.controller}")
    return shlex.join(words)


def checkpoints_of(place: LaunchPlace) -> "Checkpoints | None":
    """Return what looks for checkpoints in buckets; None if a folder stands for them or they are elsewhere."""
    if place.object_root_url is not None or place.is_local:
        return None
    from tools.launcher.cli.run_objects import ImpatientObjects
    from tools.launcher.observe.newest_checkpoint import PatientCheckpoints
    from tools.launcher.store.objects import ObjectReader

    def buckets() -> ObjectReader:
        # The libraries take seconds, and until there is a child nobody looks.
        from tools.launcher.coordinator.bucket_objects import BucketObjects

        return ImpatientObjects(BucketObjects(), CHECKPOINT_SECONDS)

    return PatientCheckpoints(buckets)


class _Waiting:
    """The pauses between two looks at a run."""

    def __init__(self, place: LaunchPlace, store: ObjectStore, key: RunKey) -> None:
        self._place, self._store, self._prefix = place, store, record_prefix(key)
        self._seen = 0
        self._changed_at = time.monotonic()

    def noticing(self, looks: "Iterable[Progress]") -> "Iterator[Progress]":
        """Yield the looks: each of them is a change."""
        for look in looks:
            self._changed_at = time.monotonic()
            yield look

    def sleep(self, seconds: float) -> None:
        """Wait that long, or less if the record has another event, where looking for one costs nothing.

        Where each look is several requests, the longer nothing has changed the longer is the wait: a run takes
        hours, and others ask the same servers.
        """
        if not self._store.url.startswith("file:"):
            quiet = time.monotonic() - self._changed_at
            self._pause(max(seconds, min(quiet * QUIET_SHARE, LONGEST_PAUSE_SECONDS)))
            return
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            # Of the last pause: what came during the look after it ends this one at once.
            before, self._seen = self._seen, len(self._store.list(self._prefix))
            if self._seen != before:
                return
            self._pause(min(left, GLANCE_SECONDS))

    def _pause(self, seconds: float) -> None:
        # A run on the local Iris of somebody else fills no disk of this machine.
        if self._place.state is not None and self._place.state.is_dir():
            wait_on_disk(self._place.state, seconds)
        else:
            time.sleep(seconds)


def wait_on_disk(state: Path, seconds: float) -> None:
    """Wait, unless the disk is full: then Iris can write no change of state down and answers the old one
    for ever.

    Args:
        state: the state folder of the local Iris.
        seconds: how long.

    Raises:
        LocalClusterError: the disk of the state folder is full.
    """
    if shutil.disk_usage(state).free < FULL_DISK_BYTES:
        raise LocalClusterError(
            f"the disk of the state folder {state} is full, and neither the local Iris nor the run can go "
            "on. Free some space, then launch again: that finds out what became of the run"
        )
    time.sleep(seconds)
