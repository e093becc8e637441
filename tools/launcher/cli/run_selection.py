"""Naming a run on the command line: `cat_count`, `cat_count/2f1bbe6d` or `cat_count/2f1bbe6d/1`."""

from collections.abc import Callable, Sequence

from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import RunKey, RunRecord, list_records


class NoSuchRun(Exception):
    """No run, or more than one, fits what was asked. The message lists what there is."""


def find_run(store: ObjectStore, wanted: str | None) -> RunRecord:
    """Return the newest record of `store` that fits `wanted`, or the newest of all; see `select_run`.

    A damaged record of one experiment does not keep those of another from being read.

    Raises:
        NoSuchRun: nothing fits.
        StoreError: the store failed, or a record that was asked for is damaged.
    """
    return select_run(_records(store, wanted), wanted)


def find_unfinished_run(store: ObjectStore, wanted: str, is_over: Callable[[RunRecord], bool]) -> RunRecord:
    """Return the one record that fits `wanted` and is not over; if all are over, the newest.

    For what cannot be undone: where two would do, neither is taken.

    Raises:
        NoSuchRun: nothing fits, or more than one that is not over.
        StoreError: as `find_run`.
    """
    records = _records(store, wanted)
    unfinished = [record for record in records if fits(record.key, wanted) and not is_over(record)]
    if len(unfinished) > 1:
        names = ", ".join(sorted(map(short_name, unfinished)))
        raise NoSuchRun(
            f"'{wanted}' fits {len(unfinished)} runs that are not over: {names}. Name one of them"
        )
    return unfinished[0] if unfinished else select_run(records, wanted)


def _records(store: ObjectStore, wanted: str | None) -> tuple[RunRecord, ...]:
    experiment = (wanted or "").partition("/")[0]
    known = {key.split("/")[1] for key in store.list("runs/")}
    records = list_records(store, experiment if experiment in known else None)
    if not records:
        raise NoSuchRun(
            f"no run is on record yet in {store.url}. Launch one: tools/bazel run //experiments/cat_count:launch; or "
            "name the store that your runs are in with --store=gs://bucket/prefix"
        )
    return records


def select_run(records: Sequence[RunRecord], wanted: str | None) -> RunRecord:
    """Return the newest record that fits `wanted`, or the newest of all.

    Args:
        records: all records of the store.
        wanted: experiment, then optionally the beginning of its launch digest, then the ordinal.

    Raises:
        NoSuchRun: nothing fits.
    """
    fitting = [record for record in records if wanted is None or fits(record.key, wanted)]
    if not fitting:
        known = ", ".join(sorted({short_name(record) for record in records})) or "none"
        raise NoSuchRun(f"no run on record fits '{wanted}'. On record: {known}")
    return max(fitting, key=lambda record: (record.when, record.key.ordinal))


def short_name(record: RunRecord) -> str:
    """Return `experiment/digest8/ordinal`, which `select_run` understands."""
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
