"""The runs on record, newest first: which of them fit, read no further than needed."""

import datetime
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.observe.named_experiments import is_meant, may_be_meant, points_among
from tools.launcher.observe.spans import DAY, HOUR, MINUTE, moment
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import (
    RecordEntry,
    RecordError,
    RunEvent,
    RunRecord,
    RunState,
    list_entries,
    read_first_events,
    read_records,
)

_SPAN = re.compile(r"([1-9]\d{0,4})([mhdw])")
_SPAN_SECONDS = {"m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}

_Opened = tuple[RecordEntry, RunEvent | RecordError]
"""A record with its first event, or why that cannot be read."""


class SinceInvalid(ValueError):
    """A text is no moment to list runs from. The message says what is."""


class Wanted(BaseModel):
    """Which runs are asked for; a field that is None or empty asks for nothing.

    Attributes:
        experiment: its name; that of a sweep, for all its points; or a pattern of names such as `my_sweep*`.
        version: of the last artifact of the run's plan.
        states: by their records.
        runtime: beginning of the runtime's commit.
        since: launched at this moment or later.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    experiment: str | None = None
    version: str | None = None
    states: frozenset[RunState] = frozenset()
    runtime: str | None = None
    since: datetime.datetime | None = None

    def fits(self, record: RunRecord) -> bool:
        """True if the run is asked for."""
        return (not self.states or record.state in self.states) and self._may_fit(
            record.when, version_of(record), record.runtime_commit
        )

    def may_fit(self, first: RunEvent) -> bool:
        """False if a run with this first event cannot fit, whatever its other events say."""
        if first.kind != "intent":  # Nearly never: then only the whole record tells.
            return True
        commit = first.facts.get("runtime_commit")
        return self._may_fit(first.at, _version_in(first.facts), commit if isinstance(commit, str) else None)

    def _may_fit(self, launched: str, version: str, commit: str | None) -> bool:
        return (
            (self.since is None or moment(launched) >= self.since)
            and self.version in (None, version)
            and (self.runtime is None or (commit or "").startswith(self.runtime))
        )


class Listing(BaseModel):
    """What was found.

    Attributes:
        records: that fit, newest first, at most as many as were asked for.
        left_out: older ones that may fit too and were not read whole.
        damaged: why others could not be read.
        experiments: that have runs on record, whether they fit or not.
        meant: those of them that are asked for by name, whatever else is asked for.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    records: tuple[RunRecord, ...]
    left_out: int
    damaged: tuple[str, ...]
    experiments: tuple[str, ...]
    meant: tuple[str, ...]


def list_runs(store: ObjectStore, wanted: Wanted, most: int) -> Listing:
    """Return the newest runs that fit.

    Reads one listing of the store, the first event of each run of the experiment, and all events of as many
    runs as it takes to find `most` that fit: without `states`, of `most` runs. Where names begin like those of the
    points of a sweep that is asked for, one bundle more for each.

    Args:
        store: of the records.
        wanted: which runs.
        most: how many, at least 1.

    Raises:
        StoreError: the store failed.
    """
    every = list_entries(store)
    entries = [entry for entry in every if _may_be_meant(entry, wanted.experiment)]
    opened = list(zip(entries, read_first_events(store, entries), strict=True))
    meant = _meant(store, wanted.experiment, opened)
    damaged: list[str] = []
    candidates: list[tuple[str, RecordEntry]] = []
    for entry, first in meant:
        if isinstance(first, RecordError):
            damaged.append(str(first))
        elif wanted.may_fit(first):
            candidates.append((first.at, entry))
    candidates.sort(key=lambda found: (moment(found[0]), found[1].key.ordinal), reverse=True)
    left = [entry for _, entry in candidates]
    found: list[RunRecord] = []
    while left and len(found) < most:
        batch, left = left[: most - len(found)], left[most - len(found) :]
        found += [record for record in _readable(store, batch, damaged) if wanted.fits(record)]
    return Listing(
        records=tuple(found),
        left_out=len(left),
        damaged=tuple(damaged),
        experiments=tuple(sorted({entry.key.experiment for entry in every})),
        meant=tuple(sorted({entry.key.experiment for entry, _ in meant})),
    )


def _may_be_meant(entry: RecordEntry, asked: str | None) -> bool:
    return asked is None or may_be_meant(entry.key.experiment, asked)


def _meant(store: ObjectStore, asked: str | None, opened: Sequence[_Opened]) -> list[_Opened]:
    """Leave out records whose names only begin like those of the points of the sweep that is asked for."""
    if asked is None:
        return list(opened)
    doubtful = {
        (entry.key.experiment, _bundle_of(first))
        for entry, first in opened
        if not is_meant(entry.key.experiment, asked)
    }
    points = points_among(store, asked, doubtful) if doubtful else frozenset()
    return [
        (entry, first)
        for entry, first in opened
        if is_meant(entry.key.experiment, asked) or (entry.key.experiment, _bundle_of(first)) in points
    ]


def _bundle_of(first: RunEvent | RecordError) -> str | None:
    bundle = None if isinstance(first, RecordError) else first.facts.get("bundle")
    return bundle if isinstance(bundle, str) else None


def version_of(record: RunRecord) -> str:
    """Return the version of the last artifact that a run was to make, "" if its record does not say."""
    opening = next((event for event in record.events if event.kind == "intent"), None)
    return _version_in(opening.facts) if opening is not None else ""


def parse_since(text: str, now: datetime.datetime) -> datetime.datetime:
    """Return the moment that `--since` names.

    Args:
        text: a span before now (`90m`, `12h`, `7d`, `2w`), a date in UTC (`2026-11-30`) or a time with its
            offset (`2026-11-30T12:00:00Z`).
        now: with its offset.

    Raises:
        SinceInvalid: it is none of them.
    """
    span = _SPAN.fullmatch(text)
    try:
        if span is not None:
            return now - datetime.timedelta(seconds=int(span[1]) * _SPAN_SECONDS[span[2]])
        found = moment(text)
    except (ValueError, OverflowError):
        found = None
    if found is None or (found.tzinfo is None and len(text) != len("2026-11-30")):
        raise SinceInvalid(
            f"'{text}' is no moment. Give a span before now such as 12h or 7d, a date such as 2026-11-30 (UTC), or a "
            "time such as 2026-11-30T12:00:00Z"
        )
    return found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)


def _readable(store: ObjectStore, entries: Sequence[RecordEntry], damaged: list[str]) -> Iterator[RunRecord]:
    try:
        yield from read_records(store, entries)
        return
    except RecordError:
        # One of them is damaged: each by itself, so that it hides no other.
        pass
    for entry in entries:
        try:
            yield from read_records(store, (entry,))
        except RecordError as error:
            damaged.append(str(error))


def _version_in(facts: dict[str, Any]) -> str:
    artifacts = facts.get("artifacts")
    last = artifacts[-1] if isinstance(artifacts, list | tuple) and artifacts else ""
    return last.rpartition("@")[2] if isinstance(last, str) and "@" in last else ""
