"""Naming a run on the command line: `cat_count`, `cat_count/2f1bbe6d` or `cat_count/2f1bbe6d/1`."""

from collections.abc import Sequence

from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import RunRecord, list_records


class NoSuchRun(Exception):
    """No run, or more than one, fits what was asked. The message lists what there is."""


def find_run(store: ObjectStore, wanted: str | None) -> RunRecord:
    """Return the newest record of `store` that fits `wanted`, or the newest of all; see `select_run`.

    A damaged record of one experiment does not keep those of another from being read.

    Raises:
        NoSuchRun: nothing fits.
        StoreError: the store failed, or a record that was asked for is damaged.
    """
    experiment = (wanted or "").partition("/")[0]
    known = {key.split("/")[1] for key in store.list("runs/")}
    return select_run(list_records(store, experiment if experiment in known else None), wanted)


def select_run(records: Sequence[RunRecord], wanted: str | None) -> RunRecord:
    """Return the newest record that fits `wanted`, or the newest of all.

    Args:
        records: all records of the store.
        wanted: experiment, then optionally the beginning of its launch digest, then the ordinal.

    Raises:
        NoSuchRun: nothing fits.
    """
    fitting = [record for record in records if wanted is None or _fits(record, wanted)]
    if not fitting:
        known = ", ".join(sorted({short_name(record) for record in records})) or "none"
        raise NoSuchRun(
            f"no run on record fits '{wanted}'. On record: {known}"
            if records
            else "no run is on record yet. Launch one: tools/bazel run //experiments/cat_count:launch"
        )
    return max(fitting, key=lambda record: (record.when, record.key.ordinal))


def short_name(record: RunRecord) -> str:
    """Return `experiment/digest8/ordinal`, which `select_run` understands."""
    return f"{record.key.experiment}/{record.key.launch_digest[:8]}/{record.key.ordinal}"


def _fits(record: RunRecord, wanted: str) -> bool:
    experiment, _, rest = wanted.partition("/")
    digest, _, ordinal = rest.partition("/")
    return (
        record.key.experiment == experiment
        and record.key.launch_digest.startswith(digest)
        and ordinal in ("", str(record.key.ordinal))
    )
