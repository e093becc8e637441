import json
import multiprocessing
import sys

import pytest
from pydantic import ValidationError

from tools.launcher.store.file_store import FileStore
from tools.launcher.store.object_store import PutOutcome
from tools.launcher.store.records import (
    MAX_EVENTS,
    RecordError,
    RunKey,
    RunState,
    append_event,
    append_event_once,
    attempt_id_of,
    list_records,
    load_record,
    put_first_event,
    record_prefix,
    reload_record,
)

KEY = RunKey(experiment="cat_count", launch_digest="a" * 64, ordinal=1)


def test_events_come_back_in_order(tmp_path):
    store = FileStore(tmp_path)
    assert load_record(store, KEY) is None
    first = append_event(store, KEY, "intent", "ann@host", {"job_name": "cat_count-aaaaaaaa-1"})
    second = append_event(store, KEY, "submitted", "ann@host", {"job_id": "/slipway/cat_count-aaaaaaaa-1"})
    record = load_record(store, KEY)
    assert [first.seq, second.seq] == [1, 2]
    assert record.events == (first, second)
    assert record.state is RunState.SUBMITTED
    assert store.list(record_prefix(KEY)) == (
        f"runs/cat_count/{'a' * 64}/1/events/0001.json",
        f"runs/cat_count/{'a' * 64}/1/events/0002.json",
    )


def _append_some(arguments):
    root, number = arguments
    # Different kinds on purpose: a place must be exclusive whatever is written there.
    kinds = ["intent", "submitted", "step_started", "failed"]
    return [
        append_event(FileStore(root), KEY, kinds[number % 4], f"p{number}", {"n": n}).seq for n in range(5)
    ]


def test_eight_processes_lose_nothing(tmp_path):
    with multiprocessing.get_context("fork").Pool(8) as pool:
        places = [
            seq
            for seqs in pool.map(_append_some, [(tmp_path, n) for n in range(8)], chunksize=1)
            for seq in seqs
        ]
    assert sorted(places) == list(range(1, 41))
    events = load_record(FileStore(tmp_path), KEY).events
    assert {(event.by, event.facts["n"]) for event in events} == {
        (f"p{p}", n) for p in range(8) for n in range(5)
    }
    assert [event.seq for event in events] == list(range(1, 41))


def _open_record(arguments):
    root, number = arguments
    event, created = put_first_event(FileStore(root), KEY, "intent", f"p{number}", {})
    return event.by, created


def test_one_of_eight_processes_opens_the_record(tmp_path):
    with multiprocessing.get_context("fork").Pool(8) as pool:
        results = pool.map(_open_record, [(tmp_path, number) for number in range(8)], chunksize=1)
    assert [created for _, created in results].count(True) == 1
    assert len({by for by, _ in results}) == 1
    assert len(load_record(FileStore(tmp_path), KEY).events) == 1


def _say_once(arguments):
    root, number = arguments
    return append_event_once(FileStore(root), KEY, "submitted", f"p{number}", {}).by


def test_of_eight_processes_with_the_same_news_one_writes_it(tmp_path):
    append_event(FileStore(tmp_path), KEY, "intent", "ann", {})
    with multiprocessing.get_context("fork").Pool(8) as pool:
        said = pool.map(_say_once, [(tmp_path, number) for number in range(8)], chunksize=1)
    assert len(set(said)) == 1
    assert [event.kind for event in load_record(FileStore(tmp_path), KEY).events] == ["intent", "submitted"]


class _LosesReplies(FileStore):
    """Writes, then says it could not tell: the second attempt sees its own bytes."""

    def put_if_absent(self, key, data):
        super().put_if_absent(key, data)
        return super().put_if_absent(key, data)


def test_a_retried_write_is_recognised_as_ones_own(tmp_path):
    store = _LosesReplies(tmp_path)
    assert append_event(store, KEY, "intent", "ann", {}).seq == 1
    assert append_event(store, KEY, "intent", "ann", {}).seq == 2
    assert len(load_record(store, KEY).events) == 2
    assert FileStore(tmp_path).put_if_absent("x", b"") is PutOutcome.CREATED


def test_records_of_newer_writers_are_read_and_kept(tmp_path):
    store = FileStore(tmp_path)
    append_event(store, KEY, "intent", "ann", {})
    newer = {
        "schema": 7, "event_id": "0" * 32, "seq": 2, "kind": "paused", "at": "2027-01-01T00:00:00Z",
        "by": "future", "facts": {"why": "later"}, "signature": "xyz",
    }  # fmt: skip
    store.put_if_absent(f"{record_prefix(KEY)}0002.json", json.dumps(newer).encode())
    record = load_record(store, KEY)
    assert record.state is RunState.INTENT
    assert record.events[1].kind == "paused"
    assert record.events[1].model_extra == {"signature": "xyz"}
    assert append_event(store, KEY, "submitted", "ann", {"job_id": "/u/j"}).seq == 3


def event_at(time: str) -> bytes:
    event = {
        "event_id": "0" * 32,
        "seq": 1,
        "kind": "intent",
        "at": time,
        "by": "ann",
        "facts": {},
        "schema": 1,
    }
    return json.dumps(event).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"null",
        b'{"schema":1}',
        b'{"schema":1,"seq":"1"}',
        b"\xff",
        b"[" * 100_000,
        *map(
            event_at,
            ("2026-13-01T00:00:00Z", "0000-01-01T00:00:00Z", "2026-11-30T24:00:01Z", "٢٠٢٦-11-30T10:00:00Z"),
        ),
    ],
    ids=range(13),
)
def test_a_damaged_event_is_named(tmp_path, data):
    store = FileStore(tmp_path)
    name = f"{record_prefix(KEY)}0001.json"
    store.put_if_absent(name, data)
    with pytest.raises(RecordError) as raised:
        load_record(store, KEY)
    assert str(raised.value).startswith(f"event {name} cannot be read: ")
    assert str(raised.value).endswith("move it away and run the command again")


def test_an_event_in_the_wrong_place_is_named(tmp_path):
    store = FileStore(tmp_path)
    append_event(store, KEY, "intent", "ann", {})
    store.put_if_absent(f"{record_prefix(KEY)}0005.json", store.get(f"{record_prefix(KEY)}0001.json"))
    with pytest.raises(RecordError, match=r"0005.json says it is number 1. It was copied from another place"):
        load_record(store, KEY)


def test_strict_writing(tmp_path):
    store = FileStore(tmp_path)
    with pytest.raises(
        ValueError,
        match=r"event kind 'paused' is unknown. Use one of cancel_requested, cancelled, child_submitted",
    ):
        append_event(store, KEY, "paused", "ann", {})
    with pytest.raises(ValueError, match=r"the facts of a failed event are not JSON: \$.facts.x is nan"):
        append_event(store, KEY, "failed", "ann", {"x": float("nan")})
    with pytest.raises(ValueError, match=r"the facts of a failed event are a list. Give a dict"):
        append_event(store, KEY, "failed", "ann", [])
    assert store.list("") == ()


def test_a_full_record_is_a_sentence(tmp_path):
    store = FileStore(tmp_path)
    store.put_if_absent(f"{record_prefix(KEY)}{MAX_EVENTS}.json", b"{}")
    with pytest.raises(
        RecordError, match=r"the record is full \(9999 events\). Launch again as a new ordinal"
    ):
        append_event(store, KEY, "failed", "ann", {})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"experiment": "//a:b"}, "experiment '//a:b' is not a record name"),
        ({"experiment": ".."}, "experiment '..' is not a record name"),
        ({"launch_digest": "A" * 64}, "is not 64 lower-case hex digits. Copy it from <name>.digest"),
        ({"ordinal": 0}, "ordinal 0 is outside 1 to 9999. The first launch of a document is 1"),
    ],
)
def test_keys_are_checked(change, sentence):
    with pytest.raises(ValidationError) as raised:
        RunKey(**{**KEY.model_dump(), **change})
    assert sentence in str(raised.value)


def test_list_records(tmp_path):
    store = FileStore(tmp_path)
    other = RunKey(experiment="gsm8k", launch_digest="b" * 64, ordinal=2)
    append_event(store, KEY, "intent", "ann", {})
    append_event(store, other, "intent", "bob", {})
    append_event(store, KEY, "failed", "ann", {"reason": "x"})
    store.put_if_absent("runs/README", b"not a record")
    assert [record.key for record in list_records(store)] == [KEY, other]
    assert [record.key for record in list_records(store, "gsm8k")] == [other]
    assert list_records(store, "gsm") == ()


def test_a_record_that_vanished_is_a_sentence(tmp_path):
    store = FileStore(tmp_path)
    append_event(store, KEY, "intent", "ann", {})
    assert reload_record(store, KEY) == load_record(store, KEY)
    with pytest.raises(RecordError) as raised:
        reload_record(FileStore(tmp_path / "other"), KEY)
    assert str(raised.value) == (
        f"cat_count launch sha256:aaaaaaaa ordinal 1: its record vanished from the store file://{tmp_path}/other, "
        "whose objects must not be deleted. Put it back, then run the command again"
    )


def test_the_short_name_is_what_commands_take():
    assert KEY.short_name == "cat_count/aaaaaaaa/1"


def test_the_attempt_id_is_twelve_hex_of_digest_and_ordinal():
    assert attempt_id_of(KEY) == "b275cc3e1fd5"  # sha256("aaa…:1"), fixed by design
    assert attempt_id_of(KEY) != attempt_id_of(KEY.model_copy(update={"ordinal": 2}))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
