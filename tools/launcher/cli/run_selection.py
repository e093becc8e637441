"""Naming a run on the command line: `cat_count`, `cat_count/2f1bbe6d` or `cat_count/2f1bbe6d/1`."""

import datetime
from collections.abc import Callable, Sequence

from tools.launcher.cli.launch_waiting import said_if_slow
from tools.launcher.observe.spans import moment
from tools.launcher.preflight.wording import listed
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import (
    RecordEntry,
    RecordError,
    RunKey,
    RunRecord,
    list_entries,
    read_first_events,
    read_records,
)


class NoSuchRun(Exception):
    """No run, or more than one, fits what was asked. The message lists what there is."""


def find_run(store: ObjectStore, wanted: str | None) -> RunRecord:
    """Return the newest record of `store` that fits `wanted`, or the newest of all.

    Of each run that fits the first event is read, and all events of the newest alone. A damaged record of one
    experiment does not keep those of another from being read.

    Args:
        store: of the records.
        wanted: experiment, then optionally the beginning of its launch digest, then the ordinal.

    Raises:
        NoSuchRun: nothing fits.
        StoreError: the store failed, or a record that was asked for is damaged.
    """
    with said_if_slow(f"reading the records in {store.url}"):
        return _newest(store, _fitting(store, wanted))


def find_unfinished_run(store: ObjectStore, wanted: str, is_over: Callable[[RunRecord], bool]) -> RunRecord:
    """Return the one record that fits `wanted` and is not over; if all are over, the newest.

    For what cannot be undone: where two would do, neither is taken.

    Raises:
        NoSuchRun: nothing fits, or more than one that is not over.
        StoreError: as `find_run`.
    """
    entries = _fitting(store, wanted)
    unfinished = [record for record in read_records(store, entries) if not is_over(record)]
    if len(unfinished) > 1:
        names = listed(sorted(map(short_name, unfinished)))
        raise NoSuchRun(
            f"'{wanted}' fits {len(unfinished)} runs that are not over: {names}. Name one of them"
        )
    return unfinished[0] if unfinished else _newest(store, entries)


def _fitting(store: ObjectStore, wanted: str | None) -> tuple[RecordEntry, ...]:
    entries = list_entries(store)
    if not entries:
        raise NoSuchRun(
            f"no run is on record yet in {store.url}. Launch one: tools/bazel run //experiments/cat_count:launch; or "
            "name the store that your runs are in with --store=gs://bucket/prefix"
        )
    fitting = tuple(entry for entry in entries if wanted is None or fits(entry.key, wanted))
    if not fitting:
        # Those of the experiment that was meant, if there is one; a store may have thousands of others.
        experiment = (wanted or "").partition("/")[0]
        near = [entry for entry in entries if entry.key.experiment == experiment] or entries
        known = listed(sorted({entry.key.short_name for entry in near}))
        raise NoSuchRun(f"no run on record fits '{wanted}'. On record: {known} (in the store {store.url})")
    return fitting


def _newest(store: ObjectStore, entries: Sequence[RecordEntry]) -> RunRecord:
    if len(entries) == 1:
        return read_records(store, entries)[0]
    begun: list[tuple[datetime.datetime, RecordEntry]] = []
    for entry, first in zip(entries, read_first_events(store, entries), strict=True):
        if isinstance(first, RecordError):
            raise first
        # Of a run that did not begin with its intent only the whole record tells.
        at = first.at if first.kind == "intent" else read_records(store, (entry,))[0].when
        begun.append((moment(at), entry))
    _, newest = max(begun, key=lambda found: (found[0], found[1].key.ordinal))
    return read_records(store, (newest,))[0]


def short_name(record: RunRecord) -> str:
    """Return `experiment/digest8/ordinal`, which `find_run` understands."""
    return record.key.short_name


def fits(key: RunKey, wanted: str) -> bool:
    """True if `wanted` (experiment, then optionally the beginning of the digest, then the ordinal) names `key`."""
    experiment, _, rest = wanted.partition("/")
    digest, _, ordinal = rest.partition("/")
    return (
        key.experiment == experiment
        and key.launch_digest.startswith(digest)
        and ordinal in ("", str(key.ordinal))
    )
