"""What is on record of each point of a sweep."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tools.launcher.render.sweep import SweepPoint
from tools.launcher.store.object_store import ObjectStore, StoreError, StoreUnavailable
from tools.launcher.store.records import RecordEntry, RunRecord, RunState, list_entries, read_records
from tools.launcher.submit.gates.labels import experiment_name

PointState = Literal[
    "new",
    "unconfirmed",
    "refused",
    "conflict",
    "running",
    "succeeded",
    "not verified",
    "verified",
    "failed",
    "cancelled",
    "elsewhere",
    "unreadable",
]
"""Of a point by its record: `unconfirmed` was begun and may have a job; `succeeded` was not verified yet;
`elsewhere` is the run of another runtime, such as a rehearsal where the run itself is asked for."""

TO_SUBMIT: frozenset[PointState] = frozenset({"new", "unconfirmed", "refused", "conflict"})
"""What a launch submits."""

TO_RELAUNCH: frozenset[PointState] = frozenset({"failed", "cancelled"})
"""What a launch submits again if it is asked to."""

_WORDS: dict[RunState, PointState] = {
    RunState.INTENT: "unconfirmed",
    RunState.REFUSED: "refused",
    RunState.CONFLICT: "conflict",
    RunState.SUBMITTED: "running",
    RunState.RUNNING: "running",
    RunState.SUCCEEDED: "succeeded",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "cancelled",
}


class Standing(BaseModel):
    """A point by its record.

    Attributes:
        state: see PointState.
        run: the run that says so, as commands take it; "" if there is none.
        attempts: records of all attempts of the point's document, oldest first.
        problem: why the record cannot be read, "" if it can.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    state: PointState
    run: str = ""
    attempts: tuple[RunRecord, ...] = ()
    problem: str = ""

    @property
    def newest(self) -> RunRecord | None:
        """The newest attempt."""
        return self.attempts[-1] if self.attempts else None


def standings(
    store: ObjectStore, points: Sequence[SweepPoint], *, runtime: str, stage: str | None = None
) -> tuple[Standing, ...]:
    """Return what is on record of each point, in their order.

    One listing, and the events of the points' own runs. A run of the same recipe under another launch digest counts
    if it is verified: it was placed elsewhere, and what is learned is there.

    Args:
        store: of the records.
        points: of the sweep.
        runtime: who would train; a rehearsal is never taken for the run.
        stage: terminal stage, if it is not the default one of the points.

    Raises:
        StoreUnavailable: the store did not answer. A record that cannot be read is the standing of its point.
    """
    by_name: dict[str, list[RecordEntry]] = {}
    for entry in list_entries(store):
        by_name.setdefault(entry.key.experiment, []).append(entry)
    return tuple(_standing(store, point, by_name.get(_name(point, stage), []), runtime) for point in points)


def _name(point: SweepPoint, stage: str | None) -> str:
    """As `submit.request.run_key` calls the records."""
    suffix = "" if stage in (None, point.stage) else f".{stage}"
    return experiment_name(point.label) + suffix


def _standing(
    store: ObjectStore, point: SweepPoint, entries: Sequence[RecordEntry], runtime: str
) -> Standing:
    own = sorted(
        (entry for entry in entries if entry.key.launch_digest == point.launch),
        key=lambda entry: entry.key.ordinal,
    )
    try:
        if own:
            return _of_attempts(read_records(store, own), runtime)
        others = read_records(store, [entry for entry in entries if entry not in own])
    except StoreUnavailable:
        raise
    except StoreError as error:
        return Standing(state="unreadable", problem=str(error))
    for record in others:
        if (record.recipe_digest, record.runtime) == (point.recipe, runtime) and record.verification:
            return Standing(state="verified", run=record.key.short_name)
    return Standing(state="new")


def _of_attempts(attempts: tuple[RunRecord, ...], runtime: str) -> Standing:
    newest = attempts[-1]
    state = _WORDS[newest.state]
    # A record of an older launcher does not say its runtime.
    if newest.runtime not in (None, runtime):
        state = "elsewhere"
    elif newest.state is RunState.SUCCEEDED and newest.verification is not None:
        state = "verified"
    elif newest.state is RunState.SUCCEEDED and newest.verify_failure is not None:
        state = "not verified"
    return Standing(state=state, run=newest.key.short_name, attempts=attempts)
