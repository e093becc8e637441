"""Tests of the way to a cluster of others, with Iris's own configuration files and its own connecting."""

import contextlib
import http.server
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.launcher.iris.remote import ClusterNotOpened, find_config, open_cluster
from tools.launcher.iris.route import EMBEDDED, Route

MANUAL = """
name: lab
platform: {{manual: {{}}}}
controller: {{manual: {{host: 127.0.0.1, port: {port}}}}}
worker_provider: {{}}
defaults: {{worker: {{docker_image: any}}}}
"""

COREWEAVE = """
name: lab
platform: {{coreweave: {{region: X, namespace: iris, kubeconfig_path: {kubeconfig}}}}}
controller: {{coreweave: {{port: 10000}}}}
kubernetes_provider: {{controller_address: "http://iris-controller-svc.iris.svc.cluster.local:10000"}}
defaults: {{worker: {{docker_image: any}}}}
"""

IAP = """
name: lab
platform: {{local: {{}}}}
controller: {{local: {{}}}}
worker_provider: {{}}
auth: {{iap: {{url: "http://127.0.0.1:{port}", oauth_client_id: a, oauth_client_secret: b}}}}
"""


@pytest.fixture(autouse=True)
def nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "MARIN_CLUSTER_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@contextlib.contextmanager
def controller(status: int, answer: dict[str, Any]) -> Iterator[tuple[int, list[dict[str, str]]]]:
    """A server that gives one answer to everything; its port, and the headers it was sent."""
    sent: list[dict[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append({name.lower(): value for name, value in self.headers.items()})
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            body = b"" if status == 200 else json.dumps(answer).encode()
            self.send_response(status)
            kind = "application/proto" if status == 200 else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield int(server.server_address[1]), sent
    server.shutdown()
    server.server_close()


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def config(tmp_path: Path, text: str) -> Route:
    file = tmp_path / "lab.yaml"
    file.write_text(text)
    return Route(scheduler="iris", config=str(file))


def refusal(route: Route, *, opening_seconds: float = 20.0) -> str:
    with (
        pytest.raises(ClusterNotOpened) as caught,
        open_cluster(route, give_up_after_seconds=0.5, opening_seconds=opening_seconds),
    ):
        pass
    return str(caught.value)


def test_an_address_is_used_as_it_is() -> None:
    with controller(200, {}) as (port, sent):
        route = Route(scheduler="iris", config="unused", controller=f"http://127.0.0.1:{port}")
        with open_cluster(route, give_up_after_seconds=5.0) as gateway:
            assert gateway.url == f"http://127.0.0.1:{port}"
    assert "authorization" not in sent[0]


def test_a_configuration_leads_to_its_controller_and_a_token_goes_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_CLUSTER_TOKEN", "of-the-test")
    with controller(200, {}) as (port, sent):
        with open_cluster(config(tmp_path, MANUAL.format(port=port)), give_up_after_seconds=5.0) as gateway:
            assert gateway.url == f"http://127.0.0.1:{port}"
            gateway.backends()
        with open_cluster(
            Route(scheduler="iris", controller=f"http://127.0.0.1:{port}"), give_up_after_seconds=5.0
        ):
            pass
    assert [headers["authorization"] for headers in sent] == ["Bearer of-the-test"] * 3


def test_nobody_answers_at_an_address() -> None:
    port = closed_port()
    begin = time.monotonic()
    assert refusal(Route(scheduler="iris", controller=f"http://127.0.0.1:{port}")) == (
        f"the controller http://127.0.0.1:{port} could not be reached: http://127.0.0.1:{port} did not answer "
        "within 0.5 s. Check that the cluster runs and that this machine may reach it, or give the address of a "
        "way of your own with --controller=URL; then run the command again"
    )
    assert time.monotonic() - begin < 5


def test_nobody_answers_at_a_configured_controller(tmp_path: Path) -> None:
    port = closed_port()
    said = refusal(config(tmp_path, MANUAL.format(port=port)))
    assert said.startswith(
        f"cluster lab (Iris configuration {tmp_path}/lab.yaml) could not be reached: http://127.0.0.1:{port} did "
        "not answer within 0.5 s. Check that the cluster runs"
    )


@pytest.mark.parametrize("kind", ["config", "controller"])
def test_a_controller_that_wants_a_login(tmp_path: Path, kind: str) -> None:
    with controller(401, {"code": "unauthenticated", "message": "no token"}) as (port, _):
        if kind == "config":
            assert refusal(config(tmp_path, MANUAL.format(port=port))) == (
                f"cluster lab (Iris configuration {tmp_path}/lab.yaml) could not be reached: no token. Log in with "
                "`iris --cluster=lab login`, then run the command again"
            )
        else:
            assert refusal(Route(scheduler="iris", controller=f"http://127.0.0.1:{port}")) == (
                f"the controller http://127.0.0.1:{port} could not be reached: no token. Set MARIN_CLUSTER_TOKEN to "
                "a token of that cluster, then run the command again"
            )


def test_something_that_is_no_iris() -> None:
    with controller(404, {"code": "unimplemented", "message": "no such page"}) as (port, _):
        assert refusal(Route(scheduler="iris", controller=f"http://127.0.0.1:{port}")) == (
            f"the controller http://127.0.0.1:{port} could not be reached: it answers, but not as an Iris controller "
            "that lets you in: no such page. Check the address. Set MARIN_CLUSTER_TOKEN to a token of that cluster, "
            "if it is right"
        )


def test_behind_a_proxy_that_wants_a_login_nobody_has_logged_in(tmp_path: Path) -> None:
    with controller(200, {}) as (port, sent):
        said = refusal(config(tmp_path, IAP.format(port=port)))
    assert "could not be reached: No credentials to authenticate to this IAP-protected cluster" in said
    assert said.endswith("Log in with `iris --cluster=lab login`, then run the command again")
    assert sent == []


@pytest.mark.parametrize("named", ["lib/iris/config/elsewhere.yaml", "elsewhere"])
def test_a_name_nobody_knows(named: str) -> None:
    said = refusal(Route(scheduler="iris", config=named))
    assert said.startswith(
        f"cluster elsewhere could not be reached: there is no Iris configuration {named}, and none called elsewhere "
        "among the known ones: ci-coreweave-gpu-smoke, "
    )
    assert ", cw-us-east-02a, " in said
    assert said.endswith(
        "Put it at ~/.config/marin/clusters/elsewhere.yaml, correct the name in the cluster card, or give the "
        "address of the controller with --controller=URL"
    )


def test_a_path_of_a_checkout_that_is_not_there_means_the_configuration_of_that_name(tmp_path: Path) -> None:
    found = find_config("lib/iris/config/cw-us-east-02a.yaml")
    assert (found.parts[-3:], found.is_file()) == (("iris", "config", "cw-us-east-02a.yaml"), True)
    own = tmp_path / "home" / ".config" / "marin" / "clusters" / "cw-us-east-02a.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("")
    assert find_config("lib/iris/config/cw-us-east-02a.yaml") == own
    assert find_config(str(own)) == own


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "its configuration cannot be read: Config file is empty or invalid"),
        ("name: [", "its configuration cannot be read: while parsing a flow"),
        ("a list", "its configuration cannot be read: "),
        ("nonsense: 1", "its configuration cannot be read: "),
        ("\x00", "its configuration cannot be read: "),
        (
            "name: lab\nplatform: {local: {}}\ncontroller: {local: {}}\nworker_provider: {}\n",
            "its controller is `local`, one that would live and die with this command. Name a cluster that runs",
        ),
    ],
)
def test_a_configuration_that_leads_nowhere(tmp_path: Path, text: str, why: str) -> None:
    said = refusal(config(tmp_path, text))
    assert said.startswith(
        f"cluster lab (Iris configuration {tmp_path}/lab.yaml) could not be reached: {why}"
    )
    assert said.endswith("with --controller=URL")


def test_no_kubeconfig(tmp_path: Path) -> None:
    assert refusal(Route(scheduler="iris", config="cw-us-east-02a")).endswith(
        "cw-us-east-02a.yaml) could not be reached: there is no kubeconfig ~/.kube/coreweave-iris, which its "
        "configuration names. Download it from the provider's console to that path, or give the address of the "
        "controller with --controller=URL"
    )


def test_no_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    (tmp_path / "kubeconfig").touch()
    said = refusal(config(tmp_path, COREWEAVE.format(kubeconfig=tmp_path / "kubeconfig")))
    assert "Could not connect to controller: [Errno 2] No such file or directory: 'kubectl'" in said
    assert "Try `iris --cluster=lab cluster status`, which takes the same way" in said


def test_a_tunnel_that_does_not_open_is_given_up_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text("#!/bin/sh\necho 'You must be logged in' >&2\nexit 1\n")
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{kubectl.parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "kubeconfig").touch()
    begin = time.monotonic()
    said = refusal(
        config(tmp_path, COREWEAVE.format(kubeconfig=tmp_path / "kubeconfig")), opening_seconds=2.0
    )
    assert time.monotonic() - begin < 6
    assert (
        "no way to it opened within 2 s (Port-forward exited (retrying): You must be logged in). Try `iris"
        in said
    )


def test_the_embedded_cluster_is_opened_elsewhere() -> None:
    with (
        pytest.raises(ValueError, match="the scheduler is embedded"),
        open_cluster(EMBEDDED, give_up_after_seconds=1.0),
    ):
        pass


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
