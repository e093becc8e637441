"""The fake keeps its word: by plain HTTP, so that the client's ideas are not in between."""

import http.client
import json
import sys
import threading
import time
from collections.abc import Iterator
from urllib.parse import quote

import google_crc32c
import pytest

from tools.launcher.store.testing.fake_gcs_for_test import BUCKET, FakeGcs, LogEntry

UPLOAD = f"/upload/storage/v1/b/{BUCKET}/o"
OBJECTS = f"/storage/v1/b/{BUCKET}/o"


@pytest.fixture
def server() -> Iterator[FakeGcs]:
    with FakeGcs() as server:
        yield server


def ask(server, method, path, body=b"", headers=None, timeout=10.0):
    """Return status, headers and body of one request."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=timeout)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()
    finally:
        connection.close()


def multipart(server, name, data, query="", **metadata):
    described = json.dumps({"name": name, **metadata}).encode()
    body = b"\r\n".join(
        (b"--==x==", b"content-type: application/json", b"", described, b"--==x==", b"", data, b"--==x==--")
    )
    return ask(
        server,
        "POST",
        f"{UPLOAD}?uploadType=multipart{query}",
        body,
        {"content-type": 'multipart/related; boundary="==x=="'},
    )


def start(server, name, query=""):
    return ask(server, "POST", f"{UPLOAD}?uploadType=resumable{query}", json.dumps({"name": name}).encode())


def continue_upload(server, started, content_range, data):
    place = started[1]["Location"].removeprefix(server.url)
    return ask(server, "PUT", place, data, {"content-range": content_range})


def media(server, name):
    return ask(server, "GET", f"/download{OBJECTS}/{quote(name, safe='')}?alt=media")


def test_multipart_honours_the_precondition(server):
    assert multipart(server, "a/b", b"one", "&ifGenerationMatch=0")[0] == 200
    status, _, body = multipart(server, "a/b", b"two", "&ifGenerationMatch=0")
    assert status == 412
    assert json.loads(body)["error"]["code"] == 412
    assert server.objects == {"a/b": b"one"}
    assert multipart(server, "a/b", b"two", "&ifGenerationMatch=7")[0] == 412
    assert multipart(server, "a/b", b"two", "&ifGenerationMatch=1")[0] == 200
    assert multipart(server, "a/b", b"three")[0] == 200
    assert server.objects == {"a/b": b"three"}


def test_resumable_honours_the_precondition_at_both_ends(server):
    early, late = (start(server, "k", "&ifGenerationMatch=0") for _ in range(2))
    assert continue_upload(server, early, "bytes 0-3/*", b"half")[0] == 308
    status, headers, _ = continue_upload(server, early, "bytes */*", b"")
    assert (status, headers["Range"]) == (308, "bytes=0-3")
    assert server.objects == {}
    assert continue_upload(server, early, "bytes 4-7/8", b"more")[0] == 200
    assert server.objects == {"k": b"halfmore"}
    assert continue_upload(server, late, "bytes 0-4/5", b"other")[0] == 412
    assert start(server, "k", "&ifGenerationMatch=0")[0] == 412
    assert server.objects == {"k": b"halfmore"}
    assert [entry.method for entry in server.log] == [
        "start", "start", "chunk", "chunk", "insert", "insert", "start",
    ]  # fmt: skip


def test_a_gap_in_a_resumable_upload_is_refused(server):
    started = start(server, "k")
    assert continue_upload(server, started, "bytes 4-7/8", b"more")[0] == 503
    assert server.objects == {}


def test_of_many_threads_one_creates(server):
    answers = []
    threads = [
        threading.Thread(
            target=lambda n=n: answers.append(multipart(server, "k", b"%d" % n, "&ifGenerationMatch=0")[0])
        )
        for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] + [412] * 15


def test_wrong_checksums_are_refused(server):
    for metadata in ({"crc32c": "AAAAAA=="}, {"md5Hash": "AAAA"}):
        assert multipart(server, "k", b"data", **metadata)[0] == 400
    assert server.objects == {}


def test_an_object_has_metadata_and_bytes_with_their_checksum(server):
    server.put("a/b=c", b"123456789")
    described = json.loads(ask(server, "GET", f"{OBJECTS}/{quote('a/b=c', safe='')}?projection=noAcl")[2])
    # The check value of CRC-32C is e3069283 (RFC 3720).
    assert (described["name"], described["size"], described["crc32c"]) == ("a/b=c", "9", "4waSgw==")
    assert google_crc32c.value(b"123456789") == 0xE3069283
    status, headers, data = media(server, "a/b=c")
    assert (status, data) == (200, b"123456789")
    assert headers["X-Goog-Hash"] == "crc32c=4waSgw==,md5=JfnnlDI7RTiF9RgfG2JNCw=="
    assert headers["X-Goog-Generation"] == described["generation"] == "1"
    server.remove("a/b=c")
    assert media(server, "a/b=c")[0] == 404


def test_lists_have_pages(server):
    for name in ("b/1", "a/2", "a/1", "a/3"):
        server.put(name, b"")
    page = json.loads(ask(server, "GET", f"{OBJECTS}?prefix=a/&maxResults=2")[2])
    assert [item["name"] for item in page["items"]] == ["a/1", "a/2"]
    last = json.loads(
        ask(server, "GET", f"{OBJECTS}?prefix=a/&maxResults=2&pageToken={page['nextPageToken']}")[2]
    )
    assert [item["name"] for item in last["items"]] == ["a/3"]
    assert "nextPageToken" not in last


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("DELETE", f"{OBJECTS}/k", 501),
        ("PATCH", f"{OBJECTS}/k", 501),
        ("GET", f"/storage/v1/b/{BUCKET}", 501),
        ("GET", f"{OBJECTS}?delimiter=/", 501),
        ("GET", f"{OBJECTS}/k?ifGenerationMatch=1", 501),
        ("POST", f"{UPLOAD}?uploadType=media&name=k", 501),
        ("POST", f"{UPLOAD}?uploadType=multipart&ifMetagenerationMatch=0", 501),
        ("GET", "/storage/v1/b/other/o", 404),
        ("GET", "/download/storage/v1/b/other/o/k?alt=media", 404),
        ("PUT", f"{UPLOAD}?uploadType=resumable&upload_id=none", 404),
    ],
)
def test_what_it_does_not_do_it_refuses(server, method, path, status):
    server.put("k", b"v")
    assert ask(server, method, path)[0] == status
    assert server.objects == {"k": b"v"}
    assert server.log == (LogEntry(f"{method} {path}", "", status),)


def test_a_range_is_refused(server):
    server.put("k", b"v")
    assert ask(server, "GET", f"/download{OBJECTS}/k?alt=media", headers={"range": "bytes=0-0"})[0] == 501


@pytest.mark.parametrize("status", [403, 412, 429, 503])
def test_it_answers_with_errors_and_applies_nothing(server, status):
    server.answer(status, method="insert", key="^a", count=2)
    assert [multipart(server, name, b"v")[0] for name in ("a", "b", "a", "a")] == [status, 200, status, 200]
    assert server.log == tuple(LogEntry("insert", *entry) for entry in [
        ("a", status), ("b", 200), ("a", status), ("a", 200),
    ])  # fmt: skip


def test_it_is_slow(server):
    server.delay(0.2, method="insert")
    began = time.monotonic()
    assert multipart(server, "k", b"v")[0] == 200
    assert time.monotonic() - began >= 0.2


def test_a_lost_reply_was_applied(server):
    server.lose_reply("insert", count=1)
    with pytest.raises(http.client.RemoteDisconnected):
        multipart(server, "k", b"v", "&ifGenerationMatch=0")
    assert server.objects == {"k": b"v"}
    assert multipart(server, "k", b"v", "&ifGenerationMatch=0")[0] == 412
    assert [entry.status for entry in server.log] == [None, 412]


def test_a_reply_is_cut_in_the_middle(server):
    server.put("k", b"0123456789")
    server.cut("get", count=1)
    with pytest.raises(http.client.IncompleteRead) as raised:
        media(server, "k")
    assert raised.value.partial == b"01234"
    assert media(server, "k")[2] == b"0123456789"


def test_an_empty_reply_is_cut_in_its_head(server):
    server.put("k", b"")
    server.cut("get", count=1)
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    connection.request("GET", f"/download{OBJECTS}/k?alt=media")
    assert connection.sock.makefile("rb").read().endswith(b"identity\r\n\r")
    connection.close()


def test_bodies_are_truncated_and_damaged_under_the_right_checksum(server):
    server.put("k", b"0123456789")
    _, whole, _ = media(server, "k")
    server.truncate("k", count=1)
    server.damage("k", count=1)
    status, headers, data = media(server, "k")
    assert (status, data, headers["X-Goog-Hash"]) == (200, b"01234", whole["X-Goog-Hash"])
    status, headers, data = media(server, "k")
    assert (status, len(data), headers["X-Goog-Hash"]) == (200, 10, whole["X-Goog-Hash"])
    assert data != b"0123456789"
    assert media(server, "k")[2] == b"0123456789"


class Caller(threading.Thread):
    """One upload in the background; `outcome` is its status or its error."""

    def __init__(self, server, name="k", data=b"v"):
        super().__init__(daemon=True)
        self._arguments = server, name, data
        self.outcome = None
        self.start()

    def run(self):
        try:
            self.outcome = multipart(*self._arguments, "&ifGenerationMatch=0")[0]
        except OSError as error:
            self.outcome = type(error).__name__

    def ended(self):
        self.join(10)
        return self.outcome


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("end", ["release", "cut"])
def test_holds(server, when, end):
    hold = server.hold("insert", "^k$", when)
    caller = Caller(server)
    hold.wait_reached(10)
    assert hold.reached == 1
    assert server.objects == ({} if when == "before" else {"k": b"v"})
    assert multipart(server, "other", b"")[0] == 200
    getattr(hold, end)()
    assert caller.ended() == (200 if end == "release" else "RemoteDisconnected")
    assert server.objects.get("k") == (None if (when, end) == ("before", "cut") else b"v")
    assert multipart(server, "k", b"v")[0] == 200  # no longer held


def test_a_hold_takes_as_many_as_it_says(server):
    hold = server.hold("insert", "", count=2)
    first = Caller(server, data=b"1")
    with pytest.raises(TimeoutError, match=r"1 of 2 requests insert '' arrived in 0.3 s"):
        hold.wait_reached(0.3)
    second = Caller(server, data=b"2")
    hold.wait_reached(10)
    assert multipart(server, "third", b"")[0] == 200
    hold.release()
    assert sorted([first.ended(), second.ended()]) == [200, 412]


def test_what_a_client_asked_for_that_is_gone_happens_late(server):
    hold = server.hold("insert", "k")
    with pytest.raises(TimeoutError):
        ask(
            server, "POST", f"{UPLOAD}?uploadType=multipart", timeout=0.2,
            body=b'--x\r\n\r\n{"name": "k"}\r\n--x\r\n\r\nv\r\n--x--',
            headers={"content-type": "multipart/related; boundary=x"},
        )  # fmt: skip
    assert hold.reached == 1
    assert server.objects == {}
    hold.release()
    for _ in range(500):
        if server.objects:
            break
        time.sleep(0.01)
    assert server.objects == {"k": b"v"}


def test_clear_ends_faults_and_holds(server):
    server.answer(503, method="list")
    hold = server.hold("insert", "k")
    caller = Caller(server)
    hold.wait_reached(10)
    server.clear()
    assert caller.ended() == 200
    assert ask(server, "GET", OBJECTS)[0] == 200


def test_leaving_cuts_what_is_held():
    with FakeGcs() as server:
        hold = server.hold("insert", "k")
        caller = Caller(server)
        hold.wait_reached(10)
    assert caller.ended() == "RemoteDisconnected"
    assert server.objects == {}


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
