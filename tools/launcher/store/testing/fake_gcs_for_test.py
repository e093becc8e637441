"""A small Google Cloud Storage on the loopback device, with faults.

    with FakeGcs() as server:
        environment["STORAGE_EMULATOR_HOST"] = server.url
        open_store(server.store_url("team"))

It speaks the part of the JSON API that google-cloud-storage uses to create, read and list objects,
multipart and resumable, honours `ifGenerationMatch` on both, and answers 501 to everything else
instead of ignoring it: a fake that passes over a precondition proves nothing. One bucket.
"""

import base64
import contextlib
import hashlib
import json
import socket
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, cast
from urllib.parse import parse_qs, unquote, urlsplit

import google_crc32c

from tools.launcher.store.testing.gcs_faults_for_test import Fault, Faults, Hold, Method, Request

BUCKET: Final = "slipway-test"

_DAMAGE = bytes(255 - byte for byte in range(256))


class LogEntry(NamedTuple):
    """One request.

    Attributes:
        method: a `Method`, or the HTTP method and path of a request that is not known.
        key: the object's name (of a list, its prefix).
        status: of the reply; None if the connection was closed without a whole one.
    """

    method: str
    key: str
    status: int | None


class _Stored(NamedTuple):
    data: bytes
    generation: int


class _Reply(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str] = MappingProxyType({})


class _Refusal(Exception):
    """A request that is answered with an error; nothing was applied."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


@dataclass
class _Upload:
    """A resumable upload that is not complete."""

    metadata: dict[str, Any]
    precondition: int | None
    data: bytearray = field(default_factory=bytearray)


class FakeGcs:
    """The server; a context manager. All methods may be called from any thread while it serves.

    Attributes:
        url: value for STORAGE_EMULATOR_HOST.
        bucket: name of its only bucket.
    """

    def __init__(self, bucket: str = BUCKET, page_size: int = 1000) -> None:
        """Bind a free port of the loopback device.

        Args:
            bucket: the bucket that exists.
            page_size: names per page of a list, whatever more the client asks for.
        """
        self.bucket = bucket
        self._page_size = page_size
        self._lock = threading.Lock()
        self._stored: dict[str, _Stored] = {}
        self._uploads: dict[str, _Upload] = {}
        self._generation = 0
        self._log: list[LogEntry] = []
        self._faults = Faults()
        self._http = _Server(self)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._faults.close()
        self._http.shutdown()
        self._thread.join()
        self._http.close_connections()
        self._http.server_close()
        assert not self._http.failures, f"the fake itself failed: {self._http.failures}"

    def store_url(self, prefix: str = "") -> str:
        """Return the address of a store in the bucket, below `prefix`."""
        return f"gs://{self.bucket}/{prefix}".rstrip("/")

    @property
    def objects(self) -> dict[str, bytes]:
        """A copy of what is stored: object name (with the store's prefix) to bytes."""
        with self._lock:
            return {name: stored.data for name, stored in self._stored.items()}

    @property
    def log(self) -> tuple[LogEntry, ...]:
        """All requests so far, in the order in which they were decided."""
        with self._lock:
            return tuple(self._log)

    def put(self, name: str, data: bytes) -> None:
        """Store `data` under the object name, without any condition."""
        with self._lock:
            self._put(name, data)

    def remove(self, name: str) -> None:
        """Delete an object that exists."""
        with self._lock:
            del self._stored[name]

    def hold(
        self, method: Method, key: str, when: Literal["before", "after"] = "before", count: int = 1
    ) -> Hold:
        """Stop the next `count` requests `method` whose object name matches the regex `key`. See `Hold`."""
        return self._faults.hold(method, key, when, count)

    def answer(
        self, status: int, method: Method | None = None, key: str = "", count: int | None = None
    ) -> Fault:
        """Answer with an error such as 503; nothing is applied.

        Here and below, returned is what happens: its `left` may be watched, and set to 0 to end it; `method` None
        is any, `key` is a regex for the object name, `count` requests are affected (None: all from now on).
        """
        return self._faults.add(Fault("answer", method, key, count, status=status))

    def delay(
        self, seconds: float, method: Method | None = None, key: str = "", count: int | None = None
    ) -> Fault:
        """Wait before the request is applied."""
        return self._faults.add(Fault("delay", method, key, count, seconds=seconds))

    def cut(self, method: Method | None = None, key: str = "", count: int | None = None) -> Fault:
        """Apply, send half of the reply, and close the connection."""
        return self._faults.add(Fault("cut", method, key, count))

    def lose_reply(self, method: Method | None = None, key: str = "", count: int | None = None) -> Fault:
        """Apply, and close the connection without a reply."""
        return self._faults.add(Fault("lose_reply", method, key, count))

    def truncate(self, key: str = "", count: int | None = None) -> Fault:
        """Answer reads with half of the bytes, as if these were all; the checksum is the whole object's."""
        return self._faults.add(Fault("truncate", "get", key, count))

    def damage(self, key: str = "", count: int | None = None) -> Fault:
        """Answer reads with the right number of wrong bytes; the checksum is the object's."""
        return self._faults.add(Fault("damage", "get", key, count))

    def clear(self) -> None:
        """Forget all faults; held requests go on."""
        self._faults.clear()

    # What follows is called by the connections' threads.

    def handle(self, handler: "_Handler", body: bytes) -> None:
        """Answer one request."""
        try:
            request, parts, query = self._read_request(handler)
        except _Refusal as refusal:
            self._finish(handler, f"{handler.command} {handler.path}", "", _error(refusal), None)
            return
        fault = self._faults.take(request)
        if not self._faults.pass_holds(request, "before"):
            self._finish(handler, request.method, request.key, None, None)
            return
        if fault and fault.kind == "delay":
            time.sleep(fault.seconds)
        if fault and fault.kind == "answer":
            reply = _error(_Refusal(fault.status, "injected by the test"))
        else:
            try:
                reply = self._apply(request, parts, query, handler, body)
            except _Refusal as refusal:
                reply = _error(refusal)
        kept = self._faults.pass_holds(request, "after")
        self._finish(handler, request.method, request.key, reply if kept else None, fault)

    def _finish(
        self, handler: "_Handler", method: str, key: str, reply: _Reply | None, fault: Fault | None
    ) -> None:
        kind = fault.kind if fault else None
        if kind == "lose_reply":
            reply = None
        whole = reply is not None and kind != "cut"
        with self._lock:
            self._log.append(LogEntry(method, key, reply.status if reply and whole else None))
        if reply is None:
            handler.hang_up()
        elif kind == "cut":
            handler.send_half(reply)
        elif kind == "truncate" and reply.status == HTTPStatus.OK:
            handler.send(reply._replace(body=reply.body[: len(reply.body) // 2]))
        elif kind == "damage" and reply.status == HTTPStatus.OK:
            handler.send(reply._replace(body=reply.body.translate(_DAMAGE)))
        else:
            handler.send(reply)

    def _read_request(self, handler: "_Handler") -> tuple[Request, list[str], dict[str, str]]:
        """Tell what is asked for, or refuse what this fake does not do."""
        url = urlsplit(handler.path)
        query = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        match handler.command, parts:
            case "POST", ["upload", "storage", "v1", "b", bucket, "o"]:
                _only(query, {"uploadType", "ifGenerationMatch", "prettyPrint", "name", "alt"})
                if query.get("uploadType") == "multipart":
                    name = str(_parts_of_multipart(handler)[0].get("name", ""))
                    request = Request("insert", name)
                elif query.get("uploadType") == "resumable":
                    request = Request("start", str(json.loads(handler.body).get("name", "")))
                else:
                    raise _Refusal(501, f"uploadType {query.get('uploadType')} is not known to this fake")
            case "PUT", ["upload", "storage", "v1", "b", bucket, "o"]:
                _only(query, {"uploadType", "upload_id"})
                upload = self._uploads.get(query.get("upload_id", ""))
                if upload is None:
                    raise _Refusal(404, "no such upload")
                last = not handler.headers.get("content-range", "").endswith("/*")
                total = handler.headers.get("content-range", "").rpartition("/")[2]
                end = handler.headers.get("content-range", "").partition("-")[2].partition("/")[0]
                last = last and (end == "" or int(end) + 1 == int(total))
                request = Request("insert" if last else "chunk", str(upload.metadata["name"]))
            case "GET", ["storage", "v1", "b", bucket, "o"]:
                _only(
                    query, {"prefix", "pageToken", "maxResults", "projection", "fields", "prettyPrint", "alt"}
                )
                request = Request("list", query.get("prefix", ""))
            case "GET", ["storage", "v1", "b", bucket, "o", name] if query.get("alt") != "media":
                _only(query, {"projection", "fields", "prettyPrint", "alt"})
                request = Request("stat", name)
            case "GET", ["download", "storage", "v1", "b", bucket, "o", name]:
                _only(query, {"alt", "generation", "ifGenerationMatch"})
                request = Request("get", name)
            case _:
                raise _Refusal(501, f"{handler.command} {url.path} is not known to this fake")
        if bucket != self.bucket:
            raise _Refusal(404, "The specified bucket does not exist.")
        return request, parts, query

    def _apply(
        self, request: Request, parts: list[str], query: dict[str, str], handler: "_Handler", body: bytes
    ) -> _Reply:
        match request.method:
            case "insert" if handler.command == "POST":
                metadata, data = _parts_of_multipart(handler)
                return self._insert(metadata, data, _precondition(query))
            case "start":
                return self._start(json.loads(body), _precondition(query))
            case "insert" | "chunk":
                return self._continue(query["upload_id"], handler.headers.get("content-range", ""), body)
            case "list":
                return self._list(query)
            case "stat":
                return self._stat(request.key)
            case _:
                if handler.headers.get("range"):
                    raise _Refusal(501, "reading a range is not known to this fake")
                return self._get(request.key, query.get("generation"), _precondition(query))

    def _put(self, name: str, data: bytes) -> _Stored:
        self._generation += 1
        stored = _Stored(data, self._generation)
        self._stored[name] = stored
        return stored

    def _check_precondition(self, name: str, precondition: int | None) -> None:
        present = self._stored.get(name)
        if precondition is not None and precondition != (present.generation if present else 0):
            raise _Refusal(412, "At least one of the pre-conditions you specified did not hold.")

    def _insert(self, metadata: Mapping[str, Any], data: bytes, precondition: int | None) -> _Reply:
        for field_name, value in (("crc32c", _crc32c(data)), ("md5Hash", _md5(data))):
            if metadata.get(field_name, value) != value:
                raise _Refusal(400, f"Provided {field_name} does not match the calculated one.")
        name = metadata["name"]
        with self._lock:
            self._check_precondition(name, precondition)
            return _json(self._resource(name, self._put(name, data)))

    def _start(self, metadata: dict[str, Any], precondition: int | None) -> _Reply:
        upload_id = uuid.uuid4().hex
        with self._lock:
            self._check_precondition(metadata["name"], precondition)
            self._uploads[upload_id] = _Upload(metadata, precondition)
        place = f"{self.url}/upload/storage/v1/b/{self.bucket}/o?uploadType=resumable&upload_id={upload_id}"
        return _Reply(200, b"", {"Location": place})

    def _continue(self, upload_id: str, content_range: str, body: bytes) -> _Reply:
        with self._lock:
            upload = self._uploads[upload_id]
            place, _, total = content_range.removeprefix("bytes ").partition("/")
            if place != "*" and int(place.partition("-")[0]) != len(upload.data):
                raise _Refusal(503, "this part of the upload does not follow the last")
            upload.data += body
            complete = total.isdigit() and int(total) == len(upload.data)
            received = {"Range": f"bytes=0-{len(upload.data) - 1}"} if upload.data else {}
        if not complete:
            return _Reply(308, b"", received)
        return self._insert(upload.metadata, bytes(upload.data), upload.precondition)

    def _list(self, query: Mapping[str, str]) -> _Reply:
        with self._lock:
            stored = dict(self._stored)
        token = query.get("pageToken", "")
        after = base64.urlsafe_b64decode(token).decode() if token else ""
        names = sorted(name for name in stored if name.startswith(query.get("prefix", "")) and name > after)
        size = min(self._page_size, int(query.get("maxResults", self._page_size)))
        page: dict[str, Any] = {
            "kind": "storage#objects",
            "items": [self._resource(name, stored[name]) for name in names[:size]],
        }
        if len(names) > size:
            page["nextPageToken"] = base64.urlsafe_b64encode(names[size - 1].encode()).decode()
        return _json(page)

    def _found(self, name: str) -> _Stored:
        with self._lock:
            stored = self._stored.get(name)
        if stored is None:
            raise _Refusal(404, f"No such object: {self.bucket}/{name}")
        return stored

    def _stat(self, name: str) -> _Reply:
        return _json(self._resource(name, self._found(name)))

    def _get(self, name: str, generation: str | None, precondition: int | None) -> _Reply:
        stored = self._found(name)
        if generation not in (None, str(stored.generation)):
            raise _Refusal(404, "There is no such generation of the object.")
        if precondition not in (None, stored.generation):
            raise _Refusal(412, "At least one of the pre-conditions you specified did not hold.")
        headers = {
            "Content-Type": "application/octet-stream",
            "X-Goog-Generation": str(stored.generation),
            "X-Goog-Metageneration": "1",
            "X-Goog-Hash": f"crc32c={_crc32c(stored.data)},md5={_md5(stored.data)}",
            "X-Goog-Stored-Content-Length": str(len(stored.data)),
            "X-Goog-Stored-Content-Encoding": "identity",
        }
        return _Reply(200, stored.data, headers)

    def _resource(self, name: str, stored: _Stored) -> dict[str, str]:
        return {
            "kind": "storage#object",
            "id": f"{self.bucket}/{name}/{stored.generation}",
            "bucket": self.bucket,
            "name": name,
            "generation": str(stored.generation),
            "metageneration": "1",
            "contentType": "application/octet-stream",
            "size": str(len(stored.data)),
            "crc32c": _crc32c(stored.data),
            "md5Hash": _md5(stored.data),
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, fake: FakeGcs) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.fake = fake
        self.failures: list[str] = []
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        # Clients are killed and give up while they wait: that is what this server is for.
        if not isinstance(error, ConnectionError):
            self.failures.append(repr(error))

    def close_connections(self) -> None:
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm: ClassVar[bool] = True
    body: bytes

    def _answer(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("content-length") or 0))
        cast(_Server, self.server).fake.handle(self, self.body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _answer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing: `FakeGcs.log` has it."""

    def _encode(self, reply: _Reply) -> bytes:
        headers = {"Content-Length": str(len(reply.body)), **reply.headers}
        lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + reply.body

    def send(self, reply: _Reply) -> None:
        self.wfile.write(self._encode(reply))

    def send_half(self, reply: _Reply) -> None:
        data = self._encode(reply)
        # At least the last byte of the reply is missing, and of a body as much as half.
        self.wfile.write(data[: len(data) - max(1, len(reply.body) - len(reply.body) // 2)])
        self.hang_up()

    def hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _only(query: Mapping[str, str], known: set[str]) -> None:
    if unknown := sorted(query.keys() - known):
        raise _Refusal(501, f"the parameters {', '.join(unknown)} are not known to this fake")


def _precondition(query: Mapping[str, str]) -> int | None:
    value = query.get("ifGenerationMatch")
    return None if value is None else int(value)


def _parts_of_multipart(handler: _Handler) -> tuple[dict[str, Any], bytes]:
    """Return the metadata and the bytes of a multipart/related upload."""
    boundary = handler.headers.get_param("boundary")
    if not isinstance(boundary, str):
        raise _Refusal(400, "a multipart upload without boundary")
    sections = handler.body.split(b"--" + boundary.encode())
    if len(sections) != 4:
        raise _Refusal(400, f"a multipart upload of {len(sections) - 2} parts")
    described, content = (
        section.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n") for section in sections[1:3]
    )
    return json.loads(described), content


def _json(value: Any) -> _Reply:
    return _Reply(200, json.dumps(value).encode(), {"Content-Type": "application/json; charset=UTF-8"})


def _error(refusal: _Refusal) -> _Reply:
    described = {"error": {"code": refusal.status, "message": refusal.message}}
    return _json(described)._replace(status=refusal.status)


def _crc32c(data: bytes) -> str:
    return base64.b64encode(google_crc32c.value(data).to_bytes(4, "big")).decode()


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
