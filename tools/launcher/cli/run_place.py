"""Where a recorded run is: its store, its cluster, its files. All of it is in its record."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tools.launcher.cli.launch_cluster import remote_gateway
from tools.launcher.cli.launch_place import (
    CONTROLLER_VARIABLE,
    LOCAL_CLUSTER,
    STORE_VARIABLE,
    LaunchPlace,
    controller_of,
)
from tools.launcher.cli.local_environment import LocalEnvironment, local_environment
from tools.launcher.cli.local_gateway import gateway_if_running
from tools.launcher.documents.printable import printable_lines
from tools.launcher.iris.gateway import IrisGateway
from tools.launcher.iris.jobs import IrisError
from tools.launcher.iris.local.state import LocalClusterError
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.open_store import open_store
from tools.launcher.store.records import RunRecord
from tools.launcher.submit.settle import is_own_machine, route_of


class ClusterOutOfReach(LocalClusterError):
    """The local Iris that has a run's jobs cannot be asked. The message says why and what to do."""


class RunPlace(BaseModel):
    """Where one recorded run is, seen from here.

    Attributes:
        place: as its launch had it.
        elsewhere: why its jobs cannot be asked about from here, "" if they can.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    place: LaunchPlace
    elsewhere: str


def add_store_and_run_arguments(parser: Any) -> None:
    """Add RUN and `--store`."""
    parser.add_argument("run", nargs="?", metavar="RUN", help="experiment[/launch digest[/ordinal]]")
    add_record_store_argument(parser)


def add_record_store_argument(parser: Any) -> None:
    """Add `--store` of a command that looks at records."""
    parser.add_argument(
        "--store",
        metavar="URL",
        help=f"store of the record, gs://bucket/prefix or file:///folder; else ${STORE_VARIABLE}, else the local "
        "Iris's own",
    )


def add_run_arguments(parser: Any) -> None:
    """Add RUN, `--store` and `--controller`."""
    add_store_and_run_arguments(parser)
    parser.add_argument(
        "--controller",
        metavar="URL",
        help="address of the Iris controller that has the run's jobs, such as http://127.0.0.1:10000, if you have a "
        f"way to it of your own; else ${CONTROLLER_VARIABLE}, else as the run was launched",
    )


def store_of(flags: Any, environ: Mapping[str, str]) -> ObjectStore:
    """Open the store that flags and environment name, else that of the local Iris.

    Raises:
        StoreError: the address cannot be used.
        LocalClusterError: none is named and the environment names no state folder.
    """
    address = flags.store or environ.get(STORE_VARIABLE)
    return open_store(address) if address else local_environment(environ).store()


def place_of(
    record: RunRecord, store: ObjectStore, flags: Any, environ: Mapping[str, str], who: str
) -> RunPlace:
    """Return where the run is.

    Args:
        record: of the run. One from before routes were recorded is of the local Iris.
        store: where the record is.
        flags: of `add_run_arguments`.
        environ: the process environment.
        who: who asks, `user@host`.

    Raises:
        RecordError: the record's route cannot be read.
        PlaceRefused: the controller given is no address.
        LocalClusterError: the environment names no state folder for the local Iris.
    """
    route = route_of(record)
    recorded = record.events[0].facts.get("object_root")
    runtime: Literal["rehearsal", "marinskyrl"] = (
        "marinskyrl" if record.runtime == "marinskyrl" else "rehearsal"
    )
    if route.scheduler == "iris":
        controller = controller_of(flags, environ)
        if controller is not None:
            route = route.model_copy(update={"controller": controller})
        place = LaunchPlace(
            cluster=record.cluster or "unknown",
            route=route,
            runtime=runtime,
            store_url=store.url,
            object_root_url=recorded if isinstance(recorded, str) else None,
            state=None,
        )
        return RunPlace(place=place, elsewhere="")
    here = local_environment(environ)
    is_own = is_own_machine(store, record, who)
    place = LaunchPlace(
        cluster=record.cluster or LOCAL_CLUSTER,
        route=route,
        runtime=runtime,
        store_url=store.url,
        object_root_url=(recorded if isinstance(recorded, str) else here.object_root_url) if is_own else None,
        state=here.state,
    )
    elsewhere = (
        "" if is_own else f"the run is on the local Iris of {record.who}, which cannot be asked from here"
    )
    return RunPlace(place=place, elsewhere=elsewhere)


def credentials_of(record: RunRecord) -> tuple[str, ...]:
    """Return the names of the credentials that a run was given."""
    names = record.events[0].facts.get("credentials")
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


@contextlib.contextmanager
def asking(run: RunPlace) -> Iterator[IrisGateway]:
    """Yield a gateway to the cluster that has the run's jobs. It is never started for that.

    Raises:
        ClusterOutOfReach: it is on another machine, or the local Iris does not run.
        IrisError: the way to it could not be opened.
    """
    if run.elsewhere:
        raise ClusterOutOfReach(f"{run.elsewhere}. Run the command there")
    with contextlib.ExitStack() as stack:
        if run.place.state is None:
            gateway = stack.enter_context(remote_gateway(run.place.route, run.place.cluster))
        else:
            found = stack.enter_context(gateway_if_running(LocalEnvironment(state=run.place.state)))
            if found is None:
                raise ClusterOutOfReach(
                    "the local Iris does not run, and neither does anything on it. Start it: tools/bazel run "
                    "//tools/launcher -- local start"
                )
            gateway = found
        yield gateway


@contextlib.contextmanager
def looking(run: RunPlace) -> Iterator[tuple[IrisGateway | None, str]]:
    """Yield a gateway, or None and why there is none: for commands that only show.

    Only what keeps the gateway from being opened is caught; what it is asked later is the caller's.
    """
    with contextlib.ExitStack() as stack:
        try:
            found: tuple[IrisGateway | None, str] = stack.enter_context(asking(run)), ""
        except (ClusterOutOfReach, IrisError) as error:
            found = None, printable_lines(str(error))
        yield found
