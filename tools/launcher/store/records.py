"""Run records in a store: write-once events below `runs/<experiment>/<launch digest>/<ordinal>/events/`.

The object of an event is named by its sequence number alone, so that creating the object is the
claim on the number: two writers can never hold one place, whatever kinds of event they write.
"""

import datetime
import json
import re
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tools.launcher.documents.canonical import CanonicalEncodingError, canonical_json, sha256_hex
from tools.launcher.store.numbered import numbered_key
from tools.launcher.store.object_store import ObjectConflict, ObjectStore, StoreError
from tools.launcher.store.run_events import (
    EVENT_KINDS,
    EVENT_SCHEMA,
    EventKind,
    RunEvent,
    RunKey,
    check_writable,
)
from tools.launcher.store.run_record import RunRecord, RunState, fold

__all__ = [
    "EVENT_KINDS",
    "EventKind",
    "RecordEntry",
    "RecordError",
    "RunEvent",
    "RunKey",
    "RunRecord",
    "RunState",
    "append_event",
    "append_event_once",
    "attempt_id_of",
    "list_entries",
    "list_records",
    "load_record",
    "put_first_event",
    "read_first_events",
    "read_records",
    "record_prefix",
    "reload_record",
    "utc_now",
]

_EVENT_KEY = re.compile(
    r"runs/(?P<experiment>[^/]+)/(?P<digest>[0-9a-f]{64})/(?P<ordinal>[1-9]\d*)/events/(?P<seq>\d{4,})\.json"
)

# A record has tens of events. The limit turns a writer gone wild into an error instead of a full disk.
MAX_EVENTS = 9999

# Objects read at a time. The HTTP client keeps ten connections.
_READERS = 8


class RecordError(StoreError):
    """A record cannot be read or written. The message names the object and the fix."""


def utc_now() -> str:
    """Return the time as RFC 3339 in UTC with milliseconds, ending in Z."""
    now = datetime.datetime.now(datetime.UTC)
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def attempt_id_of(key: RunKey) -> str:
    """Return the 12 hex digits that name the attempt of this run: the same on every call.

    They replace the placeholder of `run.attempt_id`, so a restarted coordinator writes the same attempt
    document.
    """
    return sha256_hex(f"{key.launch_digest}:{key.ordinal}".encode())[:12]


def record_prefix(key: RunKey) -> str:
    """Return the prefix of the record's events, ending with a slash."""
    return f"runs/{key.experiment}/{key.launch_digest}/{key.ordinal}/events/"


def append_event(
    store: ObjectStore, key: RunKey, kind: EventKind, by: str, facts: dict[str, Any]
) -> RunEvent:
    """Write an event at the next free place of the record and return it.

    Safe for any number of concurrent writers: none is lost, and no two get one `seq`.

    Args:
        store: where the record is.
        key: which record.
        kind: what happened.
        by: who or what says so.
        facts: JSON values. Names of credentials may be in it, values never.

    Raises:
        ValueError: an unknown kind, or facts that are not JSON.
        RecordError: more than MAX_EVENTS events.
        StoreUnavailable: the store failed.
    """
    event = _new_event(kind, by, facts)
    last = max((seq for seq, _ in _event_keys(store, key)), default=0)
    while True:
        last += 1
        event = _placed(key, event, last)
        if _took_its_place(store, key, event):
            return event


def append_event_once(
    store: ObjectStore, key: RunKey, kind: EventKind, by: str, facts: dict[str, Any]
) -> RunEvent:
    """Write an event unless the record has one of its kind, and return the one it has.

    Of any number of concurrent writers exactly one writes.

    Args, Raises:
        as `append_event`, and RecordError if an event cannot be read.
    """
    news = _new_event(kind, by, facts)
    seen: dict[int, RunEvent] = {}
    while True:
        for seq, name in _event_keys(store, key):
            if seq not in seen:
                seen[seq] = _decode(name, seq, store.get(name))
        for event in seen.values():
            if event.kind == kind:
                return event
        # If somebody takes the place it may be with the same news: look again.
        news = _placed(key, news, max(seen, default=0) + 1)
        if _took_its_place(store, key, news):
            return news


def put_first_event(
    store: ObjectStore, key: RunKey, kind: EventKind, by: str, facts: dict[str, Any]
) -> tuple[RunEvent, bool]:
    """Open the record with this event unless it is open already.

    Returns:
        the record's first event, and whether this call wrote it.

    Raises:
        as `append_event`, and RecordError if the present first event cannot be read.
    """
    event = _new_event(kind, by, facts)
    if _took_its_place(store, key, event):
        return event, True
    name = numbered_key(record_prefix(key), 1)
    return _decode(name, 1, store.get(name)), False


def load_record(store: ObjectStore, key: RunKey) -> RunRecord | None:
    """Return the record of `key`, or None if nothing was ever recorded.

    Raises:
        RecordError: an event cannot be read.
        StoreUnavailable: the store failed.
    """
    keys = _event_keys(store, key)
    contents = _read_all(store, [name for _, name in keys])
    events = [_decode(name, seq, data) for (seq, name), data in zip(keys, contents, strict=True)]
    return fold(key, events) if events else None


def reload_record(store: ObjectStore, key: RunKey) -> RunRecord:
    """Return a record that was seen or written before, as it is now.

    Raises:
        RecordError: it is gone, or an event cannot be read.
        StoreUnavailable: the store failed.
    """
    record = load_record(store, key)
    if record is None:
        raise RecordError(
            f"{key}: its record vanished from the store {store.url}, whose objects must not be deleted. Put it "
            "back, then run the command again"
        )
    return record


def list_records(store: ObjectStore, experiment: str | None = None) -> tuple[RunRecord, ...]:
    """Return all records, or those of one experiment, oldest first.

    Raises:
        as `load_record`.
    """
    records = read_records(store, list_entries(store, experiment))
    return tuple(sorted(records, key=lambda record: (record.when, str(record.key))))


class RecordEntry(BaseModel):
    """A record as far as a listing tells.

    Attributes:
        key: of the run.
        names: (sequence number, object) of its events, in their order.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    key: RunKey
    names: tuple[tuple[int, str], ...]


def list_entries(store: ObjectStore, experiment: str | None = None) -> tuple[RecordEntry, ...]:
    """Return what records there are, all or of one experiment, with one listing and nothing read.

    Raises:
        StoreUnavailable: the store failed.
    """
    names: dict[RunKey, list[tuple[int, str]]] = {}
    for name in store.list(f"runs/{experiment}/" if experiment else "runs/"):
        match = _EVENT_KEY.fullmatch(name)
        if match is None:
            continue  # Other things may lie beside events one day.
        try:
            key = RunKey(
                experiment=match["experiment"], launch_digest=match["digest"], ordinal=int(match["ordinal"])
            )
        except ValidationError:
            continue
        names.setdefault(key, []).append((int(match["seq"]), name))
    return tuple(RecordEntry(key=key, names=tuple(sorted(found))) for key, found in names.items())


def read_first_events(
    store: ObjectStore, entries: Sequence[RecordEntry]
) -> tuple[RunEvent | RecordError, ...]:
    """Return the first event of each record, nearly always its intent, with one read each. One that cannot be
    read stands as the error that says why, so that it hides no other.

    Raises:
        StoreUnavailable: the store failed.
    """
    places = [entry.names[0] for entry in entries]
    contents = _read_all(store, [name for _, name in places])
    return tuple(
        _decoded_or_error(name, seq, data) for (seq, name), data in zip(places, contents, strict=True)
    )


def read_records(store: ObjectStore, entries: Sequence[RecordEntry]) -> tuple[RunRecord, ...]:
    """Return the records of `entries`, in their order, with one read for each event.

    Raises:
        as `load_record`.
    """
    contents = iter(_read_all(store, [name for entry in entries for _, name in entry.names]))
    return tuple(
        fold(entry.key, [_decode(name, seq, next(contents)) for seq, name in entry.names])
        for entry in entries
    )


def _read_all(store: ObjectStore, names: Sequence[str]) -> Sequence[bytes]:
    """Return the objects of `names`, in their order. A bucket takes tens of milliseconds for each, so
    more than a few are read side by side."""
    if len(names) <= _READERS:
        return [store.get(name) for name in names]
    with ThreadPoolExecutor(_READERS) as readers:
        return list(readers.map(store.get, names))


def _decoded_or_error(name: str, seq: int, data: bytes) -> RunEvent | RecordError:
    try:
        return _decode(name, seq, data)
    except RecordError as error:
        return error


def _new_event(kind: EventKind, by: str, facts: dict[str, Any]) -> RunEvent:
    """Return an event of now, at the first place."""
    check_writable(kind, facts)
    return RunEvent(
        schema_version=EVENT_SCHEMA,
        event_id=uuid.uuid4().hex,
        seq=1,
        kind=kind,
        at=utc_now(),
        by=by,
        facts=facts,
    )


def _placed(key: RunKey, event: RunEvent, seq: int) -> RunEvent:
    if seq > MAX_EVENTS:
        raise RecordError(f"{key}: the record is full ({MAX_EVENTS} events). Launch again as a new ordinal")
    return event.model_copy(update={"seq": seq})


def _took_its_place(store: ObjectStore, key: RunKey, event: RunEvent) -> bool:
    """Write the event; False if another writer has its place. Equal bytes are ours: the event_id is in them."""
    try:
        store.put_if_absent(numbered_key(record_prefix(key), event.seq), _encode(event))
    except ObjectConflict:
        return False
    return True


def _event_keys(store: ObjectStore, key: RunKey) -> list[tuple[int, str]]:
    matches = [(_EVENT_KEY.fullmatch(name), name) for name in store.list(record_prefix(key))]
    return sorted((int(match["seq"]), name) for match, name in matches if match)


def _encode(event: RunEvent) -> bytes:
    fields = event.model_dump()
    fields["schema"] = fields.pop("schema_version")
    try:
        return canonical_json(fields) + b"\n"
    except CanonicalEncodingError as error:
        raise ValueError(f"the facts of a {event.kind} event are not JSON: {error}") from None


def _decode(name: str, seq: int, data: bytes) -> RunEvent:
    try:
        fields = json.loads(data)
        fields["schema_version"] = fields.pop("schema")
        event = RunEvent.model_validate(fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = " ".join(str(error).split())[:200]
        raise RecordError(
            f"event {name} cannot be read: {what}. It was not written by this launcher or is damaged; "
            "move it away and run the command again"
        ) from None
    if event.seq != seq:
        raise RecordError(
            f"event {name} says it is number {event.seq}. It was copied from another place; move it away"
        )
    return event
