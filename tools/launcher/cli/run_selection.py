"""Naming a run on the command line: `cat_count`, `cat_count/2f1bbe6d` or `cat_count/2f1bbe6d/1`."""

import datetime
from collections.abc import Callable, Iterable, Sequence

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

NAMING = (
    "A run is named by experiment, launch digest and ordinal, such as cat_count/2f1bbe6d/1. The digest may be cut to its "
    "first digits, and the ordinal, or both, left out."
)
"""How every command names one run, for its help."""

SHORTENING = (
    "So may the end of the experiment's name, as long as no other on record begins so. Of several runs that fit the newest "
    "is taken; without any name it is the newest of all."
)
"""What holds besides for the commands that only look."""

WHOLE = "The experiment's name has to be whole."
"""What holds besides for those that change something."""

_NEAR = 3
"""So many names are offered for one that is wrong."""


class NoSuchRun(Exception):
    """No run, or more than one, fits what was asked. The message lists what there is."""


def find_run(store: ObjectStore, wanted: str | None) -> RunRecord:
    """Return the newest record of `store` that fits `wanted`, or the newest of all. For what only looks.

    Of each run that fits the first event is read, and all events of the newest alone. A damaged record of one
    experiment does not keep those of another from being read.

    Args:
        store: of the records.
        wanted: experiment, or the beginning of its name where no other begins so; then optionally the beginning of
            its launch digest, then the ordinal.

    Raises:
        NoSuchRun: nothing fits, or several experiments do.
        StoreError: the store failed, or a record that was asked for is damaged.
    """
    with said_if_slow(f"reading the records in {store.url}"):
        entries = _on_record(store)
        whole = None if wanted is None else _completed(store, entries, wanted)
        return _newest(store, _fitting(store, entries, whole))


def find_named_run(store: ObjectStore, wanted: str) -> RunRecord:
    """As `find_run`, for what changes something: the experiment's name is whole."""
    with said_if_slow(f"reading the records in {store.url}"):
        return _newest(store, _fitting(store, _on_record(store), wanted))


def find_unfinished_run(store: ObjectStore, wanted: str, is_over: Callable[[RunRecord], bool]) -> RunRecord:
    """Return the one record that fits `wanted` and is not over; if all are over, the newest.

    For what cannot be undone: where two would do, neither is taken, and the experiment's name is whole.

    Raises:
        NoSuchRun: nothing fits, or more than one that is not over.
        StoreError: as `find_run`.
    """
    entries = _fitting(store, _on_record(store), wanted)
    unfinished = [record for record in read_records(store, entries) if not is_over(record)]
    if len(unfinished) > 1:
        names = listed(sorted(map(short_name, unfinished)))
        raise NoSuchRun(
            f"'{wanted}' fits {len(unfinished)} runs that are not over: {names}. Name one of them"
        )
    return unfinished[0] if unfinished else _newest(store, entries)


def near_names(wanted: str, known: Iterable[str]) -> list[str]:
    """Return names that may be meant by one that is none of them, the likeliest first: they begin so, are nearly
    so, or have it in them."""
    # Only for a word that is wrong.
    import difflib

    names = sorted(set(known))
    if not wanted:
        return []
    begun = [name for name in names if name.startswith(wanted)]
    alike = difflib.get_close_matches(wanted, names, n=_NEAR)
    within = [name for name in names if wanted in name]
    return list(dict.fromkeys([*begun, *alike, *within]))[:_NEAR]


def did_you_mean(names: Sequence[str]) -> str:
    """Return the question whether one of some names was meant."""
    return f". Did you mean {' or '.join(names)}?"


def _on_record(store: ObjectStore) -> tuple[RecordEntry, ...]:
    entries = list_entries(store)
    if not entries:
        raise NoSuchRun(
            f"no run is on record yet in {store.url}. Launch one: tools/bazel run //experiments/cat_count:launch; or "
            "name the store that your runs are in with --store=gs://bucket/prefix"
        )
    return entries


def _completed(store: ObjectStore, entries: Sequence[RecordEntry], wanted: str) -> str:
    """Return `wanted` with the whole name of the one experiment that begins so; as it is if none does."""
    experiment, slash, rest = wanted.partition("/")
    names = {entry.key.experiment for entry in entries}
    begun = sorted(name for name in names if experiment and name.startswith(experiment))
    if experiment in names or not begun:
        return wanted
    if len(begun) > 1:
        raise NoSuchRun(
            f"'{wanted}' begins the names of {len(begun)} experiments on record in {store.url}: {listed(begun)}. "
            "Give more of one"
        )
    return f"{begun[0]}{slash}{rest}"


def _fitting(
    store: ObjectStore, entries: Sequence[RecordEntry], wanted: str | None
) -> tuple[RecordEntry, ...]:
    fitting = tuple(entry for entry in entries if wanted is None or fits(entry.key, wanted))
    if fitting:
        return fitting
    # Those of the experiment that was meant, if there is one; a store may have thousands of others.
    experiment = (wanted or "").partition("/")[0]
    nothing, there = f"no run on record fits '{wanted}'", f"(in the store {store.url})"
    own = sorted({entry.key.short_name for entry in entries if entry.key.experiment == experiment})
    if own:
        raise NoSuchRun(f"{nothing}. On record: {listed(own)} {there}")
    names = sorted({entry.key.experiment for entry in entries})
    near = near_names(experiment, names)
    raise NoSuchRun(
        f"{nothing}{did_you_mean(near) if near else f'. There are runs of: {listed(names)}'} {there}"
    )


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
