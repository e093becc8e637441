"""A man in the middle: stands before an Iris controller, holds, cuts and loses what goes through.

Only launchers go through it. What runs in the cluster reaches the controller directly.
"""

import http.client
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

When = Literal["before", "after"]
Answer = tuple[int, list[tuple[str, str]], bytes]
_UPSTREAM_SECONDS = 60.0
_HELD_SECONDS = 120.0


@dataclass(eq=False)
class Hold:
    """What happens to the requests that `matches` takes.

    Attributes:
        rpc: name of the method ("LaunchJob").
        about: bytes of the request, such as the name of a job.
        when: `before` the controller gets it, or `after` it has answered and nobody heard.
        left: how many more requests it takes.
        ends: `hold` them until told, or `cut` them at once.
    """

    rpc: str
    about: bytes
    when: When
    left: int
    ends: Literal["hold", "cut"]
    seen: int = 0
    _reached: threading.Event = field(default_factory=threading.Event)
    _told: threading.Event = field(default_factory=threading.Event)
    _cut: bool = False

    def wait_reached(self, seconds: float) -> None:
        """Wait until a request is held; AssertionError if none comes."""
        assert self._reached.wait(seconds), f"no {self.rpc} of {self.about!r} within {seconds} s"

    def release(self) -> None:
        """Let the held requests go on."""
        self._told.set()

    def cut(self) -> None:
        """Close the held connections without an answer."""
        self._cut = True
        self._told.set()

    def takes(self, rpc: str, body: bytes) -> bool:
        """True if a request is one of these."""
        return self.left > 0 and self.rpc == rpc and self.about in body

    def goes_on(self) -> bool:
        """Hold one request; True if it goes on."""
        self._reached.set()
        if self.ends == "cut":
            return False
        assert self._told.wait(_HELD_SECONDS), f"a held {self.rpc} was forgotten"
        return not self._cut


class IrisProxy:
    """A proxy on a free port of loopback. Use as a context manager."""

    def __init__(self, upstream: Callable[[], int]) -> None:
        """Begin to listen.

        Args:
            upstream: gives the port of the controller, which may change when it is restarted.
        """
        self.upstream = upstream
        self._lock = threading.Lock()
        self._holds: list[Hold] = []
        self._server = _server(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)

    def __enter__(self) -> "IrisProxy":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            for hold in self._holds:
                hold.cut()
        self._server.shutdown()
        self._server.server_close()

    def hold(self, rpc: str, about: str, *, when: When, count: int = 1) -> Hold:
        """Hold the next `count` requests of a method that speak of `about`."""
        return self._add(Hold(rpc, about.encode(), when, count, "hold"))

    def lose(self, rpc: str, about: str, *, when: When, count: int = 1) -> Hold:
        """Close the connection of the next `count` such requests: not applied, or applied and not answered."""
        return self._add(Hold(rpc, about.encode(), when, count, "cut"))

    def _add(self, hold: Hold) -> Hold:
        with self._lock:
            self._holds.append(hold)
        return hold

    def taken(self, rpc: str, body: bytes) -> Hold | None:
        """The hold for a request, which counts it; None if it just goes through."""
        with self._lock:
            for hold in self._holds:
                if hold.takes(rpc, body):
                    hold.left -= 1
                    hold.seen += 1
                    return hold
        return None


def _server(proxy: IrisProxy) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._pass()

        def do_POST(self) -> None:
            self._pass()

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            answer = self._answered(body)
            if answer is None:
                self._hang_up()
                return
            status, headers, data = answer
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _answered(self, body: bytes) -> Answer | None:
            """What to answer, None to hang up."""
            hold = proxy.taken(self.path.rsplit("/", 1)[-1], body)
            if hold is not None and hold.when == "before" and not hold.goes_on():
                return None
            try:
                answer = self._ask(body)
            except (OSError, http.client.HTTPException):
                return None
            if hold is not None and hold.when == "after" and not hold.goes_on():
                return None
            return answer

        def _ask(self, body: bytes) -> Answer:
            connection = http.client.HTTPConnection("127.0.0.1", proxy.upstream(), timeout=_UPSTREAM_SECONDS)
            try:
                headers = {
                    name: value
                    for name, value in self.headers.items()
                    if name.lower() not in ("host", "connection", "content-length")
                }
                connection.request(self.command, self.path, body=body, headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.getheaders(), answer.read()
            finally:
                connection.close()

        def _hang_up(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                return  # The launcher was killed.

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            return

    return Server(("127.0.0.1", 0), Handler)
