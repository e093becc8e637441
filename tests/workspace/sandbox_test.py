"""What a test finds in its sandbox: the loopback device, and no way out."""

import os
import socket
import sys
from pathlib import Path

import pytest

in_sandbox = pytest.mark.skipif(
    "/linux-sandbox/" not in os.getcwd(),  # noqa: PTH109 (as Bazel spells it, links not followed)
    reason="not run in Bazel's linux-sandbox",
)


def test_sockets_on_loopback_work() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=5) as client,
        server.accept()[0] as connection,
    ):
        client.sendall(b"hello")
        assert connection.recv(5) == b"hello"


@in_sandbox
def test_there_is_no_other_network_device() -> None:
    lines = Path("/proc/net/dev").read_text().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]


@in_sandbox
def test_variables_of_the_caller_are_not_seen() -> None:
    assert "SSH_AUTH_SOCK" not in os.environ
    assert os.environ["PYTHONDONTWRITEBYTECODE"] == "1"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
