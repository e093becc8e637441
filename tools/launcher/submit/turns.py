"""Whose turn it is: of all runs of one artifact version, one at a time may write its checkpoints.

The checkpoint root of an RL step follows from name and version alone. Two placements of one version, or two
stages, are two launch documents with two records, and would write the same files. So before a run submits
it takes the version's turn: the next object of a write-once sequence,

    versions/<name>/<version>/turns/0001.json   {schema, run, by, at, after}

The run of the last object is the holder. `after` is the number of its last event when it took the turn: a run
that was refused before and tries again is not over because of what happened before its turn.
"""

import json
from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.launcher.documents.canonical import canonical_json
from tools.launcher.store.keys import InvalidKey
from tools.launcher.store.numbered import last_number, number_of, numbered_key
from tools.launcher.store.object_store import ObjectConflict, ObjectStore, StoreError
from tools.launcher.store.records import RunKey, RunRecord, RunState, utc_now

_SCHEMA = 1
MAX_TURNS = 9999

RecordOf = Callable[[RunKey], RunRecord | None]


class TurnRefused(Exception):
    """Another run has the version's turn. The message names it, its state and what resolves it."""


class TurnUnreadable(StoreError):
    """An object of the sequence is not what was written there. The message names it and the fix."""


class Turn(BaseModel):
    """One object of the sequence. Fields of newer writers are passed over.

    Attributes:
        place: its number, from 1.
        key: the run that took it.
        by, at: who took it, and when (RFC 3339, UTC).
        after: number of the run's last event at that time, 0 if it had none.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    place: int
    key: RunKey
    by: str
    at: str
    after: int = Field(ge=0)


def take_turn(store: ObjectStore, key: RunKey, name: str, version: str, by: str, record_of: RecordOf) -> None:
    """Make the run the holder of the artifact version, or find that it is.

    Safe for any number of callers at once: of two runs that want the turn one gets it, and the other is told
    which. The same run gets it as often as it asks.

    Args:
        store: where turns and records are.
        key: the run about to be submitted.
        name, version: of its RL step.
        by: who asks, `user@host`.
        record_of: reads the record of a key; one that also settles it (`settle.settled_record_of`) lets
            the turn of a run whose coordinator died without a word pass on.

    Raises:
        TurnRefused: another run holds the turn and is not over, or the version had all its turns.
        StoreError: the store failed, or an object cannot be read.
    """
    while True:
        holder = turn_holder(store, name, version)
        record = None if holder is None else record_of(holder.key)
        if holder is not None and not _is_over(holder, record):
            if holder.key == key:
                return
            raise TurnRefused(_refusal(holder, record, f"{name}@{version}", store.url))
        mine = record if holder is not None and holder.key == key else record_of(key)
        place = 1 if holder is None else holder.place + 1
        if place > MAX_TURNS:
            raise TurnRefused(
                f"{name}@{version} had {MAX_TURNS} turns, which is all there are. Give it a new version"
            )
        turn = {
            "schema": _SCHEMA,
            "run": f"{key.experiment}/{key.launch_digest}/{key.ordinal}",
            "by": by,
            "at": utc_now(),
            "after": mine.events[-1].seq if mine is not None else 0,
        }
        try:
            store.put_if_absent(numbered_key(_prefix(name, version), place), canonical_json(turn) + b"\n")
        except ObjectConflict:
            continue  # Somebody was faster, for this run or for another: look who.
        return


def turn_holder(store: ObjectStore, name: str, version: str) -> Turn | None:
    """Return the latest turn of an artifact version, None if nobody ever took one.

    Raises:
        TurnRefused: no store can hold a turn of that name.
        StoreError: the store failed, or the object cannot be read.
    """
    prefix = _prefix(name, version)
    try:
        place = last_number(store, prefix)
    except InvalidKey as error:
        raise TurnRefused(f"{name}@{version} cannot have a turn: {error}") from None
    if not place:
        return None
    latest = numbered_key(prefix, place)
    return _decode(latest, place, store.get(latest))


def runs_with_a_turn(store: ObjectStore) -> tuple[Turn, ...]:
    """Return the latest turn of every version: also of runs that have no record yet.

    Raises:
        StoreError: as `turn_holder`.
    """
    latest: dict[str, tuple[int, str]] = {}
    for key in store.list("versions/"):
        folder, _, name = key.rpartition("/")
        if folder.endswith("/turns") and (place := number_of(name)) is not None:
            latest[folder] = max(latest.get(folder, (0, "")), (place, key))
    return tuple(_decode(key, place, store.get(key)) for place, key in latest.values())


def is_over(record: RunRecord) -> bool:
    """True if no job of the run works, by its record alone, and none will under its key unasked.

    A failure that leaves jobs behind is not the end: a coordinator that was interrupted may be started again by
    Iris, and its child goes on meanwhile. `settle` closes such a record once all jobs are seen ended.
    """
    if record.state is RunState.FAILED:
        return not record.leaves_jobs
    return record.state.is_final or record.state in (RunState.REFUSED, RunState.CONFLICT)


def _is_over(turn: Turn, record: RunRecord | None) -> bool:
    if record is None or not is_over(record):
        return False
    # A refusal from before the turn: the run is being submitted again.
    return record.state.is_final or _last(record, ("refused", "conflict")) > turn.after


def _last(record: RunRecord, kinds: Sequence[str]) -> int:
    return max((event.seq for event in record.events if event.kind in kinds), default=0)


def _refusal(turn: Turn, record: RunRecord | None, artifact: str, store_url: str) -> str:
    run = turn.key.short_name
    begun = f"{artifact} is the turn of {run}, taken by {turn.by} at {turn.at}"
    # Neither command knows the cluster, whose card may name the store.
    run_there = f"{run} --store={store_url}"
    cancel = f'`launcher cancel {run_there} --authorize="who: why"`'
    rule = "Two runs would write the same checkpoints"
    if record is None or not (record.state.is_live or record.state is RunState.FAILED):
        state = "not begun to be recorded" if record is None else f"still {record.state}"
        return (
            f"{begun}, whose submission is not confirmed: it is {state}. {rule}. Launch that one again, which "
            f"finds out what became of it, or end it: {cancel}"
        )
    if record.state is RunState.FAILED:
        return (
            f"{begun}, which failed and may have left jobs that work: {record.reason or 'no reason recorded'}. "
            f"{rule}. Close it, which ends what is left of it: {cancel}"
        )
    return (
        f"{begun}, which is {record.state} as job {record.coordinator_job_id}. {rule}. Wait for its end "
        f"(`launcher status {run_there}`), or end it: {cancel}"
    )


def _prefix(name: str, version: str) -> str:
    return f"versions/{name}/{version}/turns/"


def _decode(key: str, place: int, data: bytes) -> Turn:
    try:
        fields = json.loads(data)
        experiment, digest, ordinal = fields["run"].rsplit("/", 2)
        run = RunKey(experiment=experiment, launch_digest=digest, ordinal=int(ordinal))
        return Turn(place=place, key=run, by=fields["by"], at=fields["at"], after=fields["after"])
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        raise TurnUnreadable(
            f"turn {key} cannot be read: {' '.join(str(error).split())[:200]}. It was not written by this "
            "launcher or is damaged; move it away and run the command again"
        ) from None
