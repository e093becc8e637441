"""A gateway to the local Iris for commands that only look."""

import contextlib
from collections.abc import Iterator

from tools.launcher.cli.local_environment import LocalEnvironment
from tools.launcher.iris.gateway import IrisGateway, connect
from tools.launcher.iris.local.control import status


@contextlib.contextmanager
def gateway_if_running(here: LocalEnvironment) -> Iterator[IrisGateway | None]:
    """Yield a gateway if the local Iris runs; None otherwise, so that looking never starts it."""
    cluster = status(here.state)
    if not cluster.running:
        yield None
        return
    with connect(cluster.url) as gateway:
        yield gateway
