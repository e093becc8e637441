"""What the promises of a bucket cost, and what its failures look like. See conformance_test.py for the promises."""

import random
import sys
import time
from collections.abc import Iterator

import pytest
import requests
from google.api_core import exceptions as api
from google.auth import exceptions as auth

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.store.content import DigestMismatch, get_content, put_content
from tools.launcher.store.gcs_errors import explain, is_transient
from tools.launcher.store.gcs_store import RETRY_SECONDS, GcsStore
from tools.launcher.store.object_store import (
    ObjectConflict,
    ObjectDamaged,
    ObjectMissing,
    PutOutcome,
    StoreError,
    StoreUnavailable,
)
from tools.launcher.store.records import RunKey, append_event, list_records, load_record
from tools.launcher.store.testing.conformance_testlib import LARGE_BYTES, Place, fork_server
from tools.launcher.store.testing.fake_gcs_for_test import BUCKET, FakeGcs, LogEntry

URL = f"gs://{BUCKET}/team"
LOGIN = "Run `gcloud auth application-default login`, then run the command again"


@pytest.fixture
def server(monkeypatch) -> Iterator[FakeGcs]:
    with FakeGcs(page_size=4) as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        yield server


@pytest.fixture
def store(server) -> GcsStore:
    return GcsStore(BUCKET, "team", give_up_after_seconds=5, attempt_seconds=5)


@pytest.fixture
def hasty(server) -> GcsStore:
    """A store that gives up soon, but is patient with a busy machine."""
    return GcsStore(BUCKET, "team", give_up_after_seconds=0.3, attempt_seconds=10)


def statuses(server):
    return [(entry.method, entry.status) for entry in server.log]


def sentence(use):
    with pytest.raises(StoreUnavailable) as raised:
        use()
    return str(raised.value)


def every_use(store):
    return {
        "write k": lambda: store.put_if_absent("k", b"v"),
        "read k": lambda: store.get("k"),
        "look for k": lambda: store.exists("k"),
        "list runs/": lambda: store.list("runs/"),
    }


# --- requests -------------------------------------------------------------------


def test_each_use_is_one_request(server, store):
    assert store.put_if_absent("k", b"v") is PutOutcome.CREATED
    assert store.get("k") == b"v"
    assert store.exists("k")
    assert store.list("") == ("k",)
    assert store.put_if_absent("k", b"v") is PutOutcome.EQUAL
    assert server.log == (
        LogEntry("insert", "team/k", 200),
        LogEntry("get", "team/k", 200),
        LogEntry("stat", "team/k", 200),
        LogEntry("list", "team/", 200),
        LogEntry("insert", "team/k", 412),
        LogEntry("get", "team/k", 200),
    )


def test_a_record_is_listed_once_and_each_event_read_once(server, store):
    keys = [RunKey(experiment=name, launch_digest="a" * 64, ordinal=1) for name in ("one", "two")]
    for key in keys:
        for number in range(6):
            append_event(store, key, "step_started", "ann", {"n": number})
    before = len(server.log)
    record = load_record(store, keys[0])
    assert [event.facts["n"] for event in record.events] == list(range(6))
    assert statuses(server)[before:] == [("list", 200)] * 2 + [("get", 200)] * 6  # two pages of four
    before = len(server.log)
    records = list_records(store)
    assert [[event.facts["n"] for event in record.events] for record in records] == [list(range(6))] * 2
    assert sorted(statuses(server)[before:]) == [("get", 200)] * 12 + [("list", 200)] * 3


def test_what_others_put_into_the_bucket_is_passed_over(server, store):
    for name in ("team/", "team/runs/", "team/.hidden", "team/a b", "team", "other/k", "team2/k"):
        server.put(name, b"")
    store.put_if_absent("runs/k", b"")
    assert store.list("") == ("runs/k",)


def test_a_whole_bucket_is_a_store(server):
    store = GcsStore(BUCKET)
    assert store.url == f"gs://{BUCKET}"
    store.put_if_absent("a/k", b"")
    assert server.objects == {"a/k": b""}
    assert store.list("a") == ("a/k",)


# --- lost replies and preconditions ---------------------------------------------


@pytest.mark.parametrize("loss", ["lose_reply", "cut"])
def test_after_a_lost_reply_the_own_bytes_are_recognised(server, store, loss):
    getattr(server, loss)("insert", count=1)
    assert store.put_if_absent("k", b"v") is PutOutcome.EQUAL
    assert statuses(server) == [("insert", None), ("insert", 412), ("get", 200)]


def test_after_a_lost_reply_the_bytes_of_another_are_a_conflict(server, store):
    server.lose_reply("insert", count=1)
    server.put("team/k", b"theirs")
    with pytest.raises(ObjectConflict) as raised:
        store.put_if_absent("k", b"mine")
    assert str(raised.value) == (
        f"object k exists with other content: stored sha256:{sha256_hex(b'theirs')}, "
        f"offered sha256:{sha256_hex(b'mine')}. Objects are written once; use another key"
    )
    assert server.objects == {"team/k": b"theirs"}


@pytest.mark.parametrize("lost", ["start", "insert"])
def test_a_lost_reply_of_a_large_object(server, store, lost):
    data = random.Random(1).randbytes(LARGE_BYTES)
    server.lose_reply(lost, count=1)
    outcome = store.put_if_absent("k", data)
    assert outcome is (PutOutcome.CREATED if lost == "start" else PutOutcome.EQUAL)
    assert server.objects == {"team/k": data}


def test_a_rival_that_comes_first_at_the_last_moment(server, store):
    hold = server.hold("insert", "team/k")
    writer, answers = start_writer(server)
    hold.wait_reached(30)
    assert store.put_if_absent("k", b"theirs") is PutOutcome.CREATED
    hold.release()
    assert answers.get(timeout=30) == "ObjectConflict"
    writer.join(30)
    assert server.objects == {"team/k": b"theirs"}


def test_an_object_that_is_there_and_then_is_not(server, store):
    server.answer(412, method="insert")
    assert sentence(lambda: store.put_if_absent("k", b"v")) == (
        f"store {URL}: cannot write k: the service says that it exists and then that it does not. Objects of "
        "this store must not be deleted: check the bucket's lifecycle rules, then run the command again"
    )


# --- killed writers -------------------------------------------------------------


def write_mine(place, answers):
    try:
        answers.put(place.open().put_if_absent("k", b"mine").value)
    except StoreError as error:
        answers.put(type(error).__name__)


def start_writer(server):
    """Return a process that writes `mine` under `k`, and where its answer will be."""
    context = fork_server()
    answers = context.Queue()
    place = Place(URL, {"STORAGE_EMULATOR_HOST": server.url})
    writer = context.Process(target=write_mine, args=(place, answers), daemon=True)
    writer.start()
    return writer, answers


@pytest.mark.parametrize(
    ("when", "end", "then"),
    [
        ("before", "cut", PutOutcome.CREATED),
        ("before", "release", PutOutcome.EQUAL),
        ("after", "cut", PutOutcome.EQUAL),
    ],
)
def test_a_writer_killed_with_its_request_under_way(server, store, when, end, then):
    hold = server.hold("insert", "team/k", when)
    writer, _ = start_writer(server)
    hold.wait_reached(30)
    writer.kill()
    writer.join(30)
    getattr(hold, end)()
    deadline = time.monotonic() + 10
    while not server.log and time.monotonic() < deadline:
        time.sleep(0.01)
    assert store.put_if_absent("k", b"mine") is then
    assert server.objects == {"team/k": b"mine"}


# --- transient failures ---------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
def test_two_failures_and_then_success(server, store, status):
    server.put("team/k", b"v")
    for use in every_use(store).values():
        server.answer(status, count=2)
        use()
    assert [entry.status for entry in server.log] == [status, status, 412, 200] + [status, status, 200] * 3


@pytest.mark.parametrize("fault", ["lose_reply", "cut"])
def test_connections_that_break_are_tried_again(server, store, fault):
    server.put("team/k", b"v" * 1000)
    for use in (lambda: store.get("k"), lambda: store.exists("k"), lambda: store.list("")):
        getattr(server, fault)(count=2)
        assert use() in (b"v" * 1000, True, ("k",))
    assert [entry.status for entry in server.log] == [None, None, 200] * 3


@pytest.mark.parametrize("status", [429, 503])
def test_a_service_that_stays_away_is_given_up_in_time(server, hasty, status):
    server.answer(status)
    for doing, use in every_use(hasty).items():
        began = time.monotonic()
        assert sentence(use) == (
            f"store {URL}: cannot {doing}: the service does not serve now (HTTP {status}: injected by the test); "
            "tried for 0.3 seconds. Run the command again in a minute: it finds what is stored"
        )
        assert time.monotonic() - began < 10
    assert server.objects == {}


def test_a_service_that_does_not_answer_is_given_up_in_time(server):
    hasty = GcsStore(BUCKET, "team", give_up_after_seconds=0.3, attempt_seconds=0.3)
    server.hold("insert", "", count=99)
    server.hold("get", "", count=99)
    server.hold("stat", "", count=99)
    server.hold("list", "", count=99)
    for doing, use in every_use(hasty).items():
        began = time.monotonic()
        assert sentence(use) == (
            f"store {URL}: cannot {doing}: {server.url} does not answer in time; tried for 0.3 seconds. "
            "Check the network, then run the command again: it finds what is stored"
        )
        assert time.monotonic() - began < 10


def test_connections_that_keep_breaking_are_given_up(server, hasty):
    server.put("team/k", b"v")
    server.cut()
    for doing, use in every_use(hasty).items():
        assert sentence(use) == (
            f"store {URL}: cannot {doing}: the connection to {server.url} broke before the whole answer came; "
            "tried for 0.3 seconds. Check the network, then run the command again: it finds what is stored"
        )


def test_the_time_of_real_launches_is_seconds():
    assert RETRY_SECONDS == 10


def test_what_is_tried_again():
    errors = {status: api.from_http_status(status, "text") for status in range(300, 600)}
    assert [status for status in errors if is_transient(errors[status])] == [408, 429, 500, 502, 503, 504]


# --- damage ---------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 1000, LARGE_BYTES])
@pytest.mark.parametrize("fault", ["truncate", "damage"])
def test_reads_that_are_cut_short_or_changed_are_refused(server, store, fault, size):
    data = random.Random(2).randbytes(size)
    server.put("team/k", data)
    getattr(server, fault)(count=4)  # each read is done twice
    arrived = size // 2 if fault == "truncate" else size
    with pytest.raises(
        ObjectDamaged, match=f"the {arrived} bytes that arrived have the checksum crc32c .*, stored is "
    ) as raised:
        store.get("k")
    assert str(raised.value).startswith(f"object k in the store {URL} cannot be trusted: ")
    assert str(raised.value).endswith(
        ". Run the command again; if the message stays, the object is damaged: move it away, then launch "
        "again, which writes it anew"
    )
    with pytest.raises(ObjectDamaged):  # never taken for another's bytes
        store.put_if_absent("k", data)
    assert store.get("k") == data


@pytest.mark.parametrize("fault", ["truncate", "damage"])
def test_what_was_lost_on_the_way_is_read_once_more(server, store, fault):
    server.put("team/k", b"whole")
    getattr(server, fault)(count=1)
    assert store.get("k") == b"whole"


def test_torn_content_is_refused_although_the_service_knows_no_better(server, store):
    digest = put_content(store, "bundles/sha256", b"whole bundle")
    server.put(f"team/bundles/sha256/{digest}", b"whole bun")
    with pytest.raises(DigestMismatch, match=f"is damaged: its bytes have sha256:{sha256_hex(b'whole bun')}"):
        get_content(store, "bundles/sha256", digest)
    with pytest.raises(DigestMismatch):
        put_content(store, "bundles/sha256", b"whole bundle")


def test_a_service_that_keeps_other_bytes_is_found_out(server, store, monkeypatch):
    resource = server._resource
    monkeypatch.setattr(
        server, "_resource", lambda *arguments: {**resource(*arguments), "crc32c": "AAAAAA=="}
    )
    with pytest.raises(ObjectDamaged, match="its checksum there is crc32c AAAAAA==, that of the bytes sent"):
        store.put_if_absent("k", b"v")


# --- permanent failures ---------------------------------------------------------


def test_no_permission(server, hasty):
    server.answer(403)
    for doing, use in every_use(hasty).items():
        assert sentence(use) == (
            f"store {URL}: cannot {doing}: access is denied (HTTP 403: injected by the test). Have the bucket's "
            "owner grant storage.objects.create, storage.objects.get and storage.objects.list "
            "(docs/stores.md), or log in as somebody who has them: `gcloud auth application-default login`; "
            "then run the command again"
        )
    assert len(server.log) == 4  # not tried again


def test_no_bucket(server):
    for doing, use in every_use(GcsStore("no-such-bucket")).items():
        assert sentence(use) == (
            f"store gs://no-such-bucket: cannot {doing}: there is no such bucket. "
            "Check the store's address or make the bucket, then run the command again"
        )


def test_any_other_refusal(server, hasty):
    server.put("team/k", b"v")
    server.answer(400)
    for doing, use in every_use(hasty).items():
        assert sentence(use) == (
            f"store {URL}: cannot {doing}: the service refuses (HTTP 400: injected by the test). "
            "Check the store's address, then run the command again"
        )


def test_no_object_is_not_no_bucket(server, store):
    with pytest.raises(ObjectMissing):
        store.get("k")
    assert not store.exists("k")


def test_nobody_listens(monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    for doing, use in every_use(GcsStore("bucket", give_up_after_seconds=0.2)).items():
        assert sentence(use) == (
            f"store gs://bucket: cannot {doing}: http://127.0.0.1:9 refuses the connection; tried for 0.2 "
            "seconds. Check the network, then run the command again: it finds what is stored"
        )


def test_an_unknown_name(monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://no-such-host.invalid")
    assert sentence(lambda: GcsStore("bucket", give_up_after_seconds=0.2).get("k")) == (
        "store gs://bucket: cannot read k: the name of http://no-such-host.invalid is not found; tried for 0.2 "
        "seconds. Check the network, then run the command again: it finds what is stored"
    )


@pytest.fixture
def no_credentials(monkeypatch, tmp_path):
    for name in ("STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")  # no question to a metadata server


def test_no_credentials(no_credentials):
    for doing, use in every_use(GcsStore("bucket")).items():
        assert sentence(use) == (
            f"store gs://bucket: cannot {doing}: there are no Google credentials to use: Your default "
            f"credentials were not found. {LOGIN}"
        )


@pytest.mark.parametrize("content", [None, b"", b"{", b"{}", b'{"type": "service_account"}', b"[]", b"\xff"])
def test_a_credentials_file_that_is_none(no_credentials, monkeypatch, tmp_path, content):
    file = tmp_path / "key.json"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    text = sentence(lambda: GcsStore("bucket", give_up_after_seconds=0.2).get("k"))
    assert text.startswith("store gs://bucket: cannot read k: there are no Google credentials to use: ")
    assert text.endswith(LOGIN)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            auth.RefreshError(
                "invalid_grant: Token has been expired or revoked.", {"error": "invalid_grant"}
            ),
            "Google does not accept the credentials: invalid_grant: Token has been expired or revoked",
        ),
        (
            api.Unauthorized("Invalid Credentials"),
            "Google does not accept the credentials (HTTP 401: Invalid Credentials)",
        ),
    ],
)
def test_credentials_that_are_refused(error, reason):
    assert explain(error, server="s") == (reason, LOGIN)


def test_other_connection_failures():
    assert not is_transient(requests.exceptions.SSLError("certificate verify failed. More."))
    assert explain(requests.exceptions.SSLError("certificate verify failed. More."), server="s").reason == (
        "no secure connection to s: certificate verify failed"
    )
    lost = auth.TransportError(requests.ConnectionError("Connection aborted."))
    assert is_transient(lost)
    assert explain(lost, server="s").reason == (
        "the connection to Google's server of access tokens broke before the whole answer came"
    )
    assert (
        explain(requests.exceptions.InvalidURL("no host. More."), server="s").reason == "no use of s: no host"
    )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
