"""The scheduler of a place: the local Iris, started if need be, or a cluster of others."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.cli.launch_waiting import said_if_slow
from tools.launcher.iris.gateway import IrisGateway, connect
from tools.launcher.iris.jobs import IrisError
from tools.launcher.iris.local.control import ensure_running
from tools.launcher.iris.local.shapes import GangShape
from tools.launcher.iris.remote import open_cluster
from tools.launcher.iris.route import Route

IRIS_GIVE_UP_SECONDS = 10.0
"""How long one question to a controller may take. The Iris client itself would try for 30 minutes."""


@contextlib.contextmanager
def opened(place: LaunchPlace, shape: GangShape) -> Iterator[IrisGateway | IrisError]:
    """Yield a gateway to the place's scheduler, or why there is no way to it.

    Args:
        place: where.
        shape: the gang that is going to be asked for.

    Raises:
        LocalClusterError: the local Iris could not be started, or offers no such gang.
    """
    with contextlib.ExitStack() as stack:
        yield _local(place.state, shape, stack) if place.state is not None else _remote(place, stack)


def _local(state: Path, shape: GangShape, stack: contextlib.ExitStack) -> IrisGateway:
    cluster = ensure_running(state, shape=shape, on_progress=lambda line: print(line, flush=True))
    if cluster.note:
        print(cluster.note)
    print(
        f"local Iris: {cluster.url} (process {cluster.pid}, {'running' if cluster.reused else 'started'})",
        flush=True,
    )
    return stack.enter_context(connect(cluster.url, give_up_after_seconds=IRIS_GIVE_UP_SECONDS))


def _remote(place: LaunchPlace, stack: contextlib.ExitStack) -> IrisGateway | IrisError:
    try:
        return stack.enter_context(remote_gateway(place.route, place.cluster))
    except IrisError as error:
        return error


@contextlib.contextmanager
def remote_gateway(route: Route, cluster: str) -> Iterator[IrisGateway]:
    """Yield a gateway to a cluster of others.

    Args:
        route: the way to it.
        cluster: its name, for whoever waits.

    Raises:
        ClusterNotOpened: there is no way to it.
    """
    with contextlib.ExitStack() as stack:
        with said_if_slow(f"opening the way to {cluster}"):
            gateway = stack.enter_context(open_cluster(route, give_up_after_seconds=IRIS_GIVE_UP_SECONDS))
        yield gateway
