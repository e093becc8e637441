"""Tests of the gateway against servers that fail in every way a scheduler can."""

import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tools.launcher.iris.gateway import connect, inside_job
from tools.launcher.iris.jobs import IrisUnreachable, JobNameTaken, JobRefused, JobRequest, ReplyLost
from tools.launcher.iris.sample_request_for_test import request

NOT_FOUND = (404, {"code": "not_found", "message": "Job not found"})
Answer = tuple[int, dict[str, str]] | None


@pytest.fixture
def serve() -> Iterator[Callable[[dict[str, list[Answer]]], tuple[str, list[str]]]]:
    """Starts a controller that gives the listed answers by method, the last one for ever; None hangs up."""
    servers = []

    def start(answers: dict[str, list[Answer]]) -> tuple[str, list[str]]:
        calls: list[str] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                method = self.path.rsplit("/", 1)[-1]
                calls.append(method)
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                left = answers[method]
                answer = left.pop(0) if len(left) > 1 else left[0]
                if answer is None:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                body = json.dumps(answer[1]).encode()
                self.send_response(answer[0])
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}", calls

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def closed_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def test_a_closed_port_is_unreachable_in_seconds(closed_port: str) -> None:
    begin = time.monotonic()
    with connect(closed_port, give_up_after_seconds=1.0) as gateway:
        for call in (
            lambda: gateway.submit(JobRequest(**request())),
            lambda: gateway.describe("/slipway/a"),
            lambda: gateway.children("/slipway/a"),
            lambda: gateway.logs("/slipway/a"),
            lambda: gateway.cancel("/slipway/a"),
            lambda: gateway.unfinished_jobs(),
        ):
            with pytest.raises(IrisUnreachable) as caught:
                call()
            assert caught.value.url == closed_port
    assert time.monotonic() - begin < 6 * 3


def test_a_lost_answer_is_not_taken_for_a_failure(serve: Any) -> None:
    url, calls = serve({"GetJobStatus": [NOT_FOUND], "LaunchJob": [None]})
    with (
        connect(url, give_up_after_seconds=5.0) as gateway,
        pytest.raises(ReplyLost, match="/slipway/cat_count"),
    ):
        gateway.submit(JobRequest(**request()))
    assert calls.count("LaunchJob") == 1


@pytest.mark.parametrize(("status", "code"), [(500, "internal"), (503, "unavailable"), (500, "unknown")])
def test_an_answer_that_says_nothing_is_a_lost_one(serve: Any, status: int, code: str) -> None:
    url, calls = serve({"GetJobStatus": [NOT_FOUND], "LaunchJob": [(status, {"code": code, "message": "?"})]})
    with connect(url, give_up_after_seconds=5.0) as gateway, pytest.raises(ReplyLost):
        gateway.submit(JobRequest(**request()))
    assert calls.count("LaunchJob") == 1


def test_shed_load_is_tried_again_then_given_up(serve: Any) -> None:
    busy = (429, {"code": "resource_exhausted", "message": "busy"})
    taken = (409, {"code": "already_exists", "message": "exists"})
    url, calls = serve({"GetJobStatus": [NOT_FOUND], "LaunchJob": [busy, busy, taken]})
    with connect(url, give_up_after_seconds=5.0) as gateway, pytest.raises(JobNameTaken):
        gateway.submit(JobRequest(**request()))
    assert calls.count("LaunchJob") == 3
    url, calls = serve({"GetJobStatus": [NOT_FOUND], "LaunchJob": [busy]})
    with connect(url, give_up_after_seconds=1.0) as gateway, pytest.raises(IrisUnreachable):
        gateway.submit(JobRequest(**request()))


def test_a_taken_name_is_named(serve: Any) -> None:
    taken = (409, {"code": "already_exists", "message": "exists"})
    url, _ = serve({"GetJobStatus": [NOT_FOUND], "LaunchJob": [taken]})
    with connect(url) as gateway, pytest.raises(JobNameTaken) as caught:
        gateway.submit(JobRequest(**request()))
    assert caught.value.job_id == "/slipway/cat_count-0123abcd-1"


def test_a_refusal_keeps_the_beginning_of_its_reason(serve: Any) -> None:
    refusal = (400, {"code": "failed_precondition", "message": "no group fits:\n" + "group " * 500})
    url, _ = serve({"GetJobStatus": [NOT_FOUND], "LaunchJob": [refusal]})
    with connect(url) as gateway, pytest.raises(JobRefused) as caught:
        gateway.submit(JobRequest(**request()))
    assert str(caught.value).startswith("Iris refused the request: no group fits: group group")
    assert len(str(caught.value)) < 400


def test_a_missing_parent_is_a_refusal(serve: Any) -> None:
    missing = (404, {"code": "not_found", "message": "parent /slipway/x not found"})
    url, _ = serve({"GetJobStatus": [NOT_FOUND], "LaunchJob": [missing]})
    with connect(url) as gateway, pytest.raises(JobRefused, match="parent /slipway/x not found"):
        gateway.submit(JobRequest(**request()))


def test_gpu_fields_go_together(closed_port: str) -> None:
    with connect(closed_port) as gateway:
        for changes in ({"gpu_variant": "H100"}, {"gpus_per_task": 8}):
            with pytest.raises(JobRefused, match="do not go together; give both, or None and 0"):
                gateway.submit(JobRequest(**request(**changes)))


def test_unparsable_memory_is_a_refusal(serve: Any) -> None:
    url, calls = serve({"GetJobStatus": [NOT_FOUND]})
    with connect(url) as gateway, pytest.raises(JobRefused, match=r"job cat_count-0123abcd-1: .*lots"):
        gateway.submit(JobRequest(**request(memory="lots")))
    assert "LaunchJob" not in calls


def test_a_job_nobody_knows(serve: Any) -> None:
    url, _ = serve({"GetJobStatus": [NOT_FOUND], "TerminateJob": [NOT_FOUND]})
    with connect(url) as gateway:
        assert gateway.describe("/slipway/nope") is None
        with pytest.raises(JobRefused, match=f"no job /slipway/nope at {url}; nothing to cancel"):
            gateway.cancel("/slipway/nope")


def test_a_configured_proxy_is_not_asked_about_loopback(serve: Any, closed_port: str) -> None:
    url, _ = serve({"GetJobStatus": [NOT_FOUND]})
    # The transport reads the environment once in a process, so this needs one of its own.
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import os\n"
        "from tools.launcher.iris.gateway import connect\n"
        f"with connect({url!r}, give_up_after_seconds=3.0) as gateway:\n"
        "    print(gateway.describe('/slipway/nope'), os.environ['NO_PROXY'], os.environ['no_proxy'])\n"
    )
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"), closed_port)
    environ = {name: value for name, value in os.environ.items() if name != "no_proxy"}
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**environ, **proxies, "NO_PROXY": "example.com"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.stdout.strip() == "None example.com,127.0.0.1 127.0.0.1", result.stderr


def test_job_ids(closed_port: str) -> None:
    with connect(closed_port) as gateway:
        assert gateway.job_id_of("slipway", "a-1") == "/slipway/a-1"


def test_inside_job_says_when_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IRIS_TASK_ID", raising=False)
    with pytest.raises(JobRefused, match="not inside an Iris task: IRIS_TASK_ID"):
        inside_job()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
