"""Where a launch happens: the store of its record, the cluster that takes its job, and who trains there."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from tools.launcher.catalog.cards import ClusterCard
from tools.launcher.cli.launch_problems import ControllerAddressError, PlaceRefused
from tools.launcher.cli.local_environment import LocalEnvironment, local_environment
from tools.launcher.iris.route import EMBEDDED, Route
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.open_store import open_store, path_of_file_url

STORE_VARIABLE = "SLIPWAY_STORE"
CONTROLLER_VARIABLE = "SLIPWAY_CONTROLLER"

# The Google client's own variable: another server than Google's. An address, no secret.
EMULATOR_VARIABLE = "STORAGE_EMULATOR_HOST"

UNKNOWN_STORE = "gs://store-not-given"
"""Stands in a dry run's requests for the store that a launch would need."""

LOCAL_CLUSTER = "local"
"""Name of the embedded cluster in records."""


class LaunchPlace(BaseModel):
    """One place.

    Attributes:
        cluster: its name, for people and for the record.
        route: how its controller is reached.
        runtime: who trains there.
        store_url: address of the store of bundles, records and claims.
        object_root_url: `file:///` address of the folder that stands for all buckets; None: the real ones.
        state: state folder of the embedded cluster, None for another.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    cluster: str
    route: Route
    runtime: Literal["rehearsal", "marinskyrl"]
    store_url: str
    object_root_url: str | None
    state: Path | None

    @property
    def is_local(self) -> bool:
        """True for the embedded cluster of the user who asks."""
        return self.state is not None

    @property
    def keeps_own_store(self) -> bool:
        """True if the store is the local Iris's own, which commands look into by themselves."""
        return self.state is not None and self.store_url == LocalEnvironment(state=self.state).store_url

    def store_arguments(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return what a later command needs to look into this store; nothing if it does so by itself."""
        return (
            () if self.keeps_own_store and not environ.get(STORE_VARIABLE) else (f"--store={self.store_url}",)
        )

    def open_store(self) -> ObjectStore:
        """Open the store. Raises StoreError if the address cannot be used."""
        return open_store(self.store_url)

    def objects(self) -> ObjectRoot | None:
        """Return where the run's files are, None if that is object storage, which is not read from here."""
        if self.object_root_url is None:
            return None
        return ObjectRoot(path_of_file_url(self.object_root_url, what="object root"))

    def store_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return what a task's environment needs to reach the same store."""
        value = environ.get(EMULATOR_VARIABLE)
        return {EMULATOR_VARIABLE: value} if value and self.store_url.startswith("gs://") else {}


def add_place_arguments(parser: Any) -> None:
    """Add `--store` and `--controller`."""
    group = parser.add_argument_group("place", "where the record is kept and who takes the job")
    add_store_argument(group)
    group.add_argument(
        "--controller",
        metavar="URL",
        help="address of the cluster's Iris controller, such as http://127.0.0.1:10000, if you have a way of "
        f"your own; else ${CONTROLLER_VARIABLE}, else the cluster's Iris configuration says it",
    )


def add_store_argument(parser: Any) -> None:
    """Add `--store`."""
    parser.add_argument(
        "--store",
        metavar="URL",
        help="store of bundles and records, gs://bucket/prefix or file:///folder; else "
        f"${STORE_VARIABLE}, else the cluster card's `store`, else, for the local Iris, its state folder",
    )


def rehearsal_place(flags: Any, environ: Mapping[str, str]) -> LaunchPlace:
    """Return the local Iris with the stand-in, whatever cluster the document is for.

    The card's store is the store of real runs, so a rehearsal goes there only if it is told to by `--store`.

    Raises:
        StoreAddressError: the address cannot be used.
        LocalClusterError: the environment names no state folder.
    """
    return _embedded(flags.store, local_environment(environ))


def launch_place(
    card: ClusterCard, iris: Mapping[str, Any], flags: Any, environ: Mapping[str, str]
) -> LaunchPlace:
    """Return the place of the document's own cluster.

    Args:
        card: the cluster's.
        iris: the launch document's `iris` section.
        flags: of `add_place_arguments`, and `dry_run`.
        environ: the process environment.

    Raises:
        PlaceRefused: there is no such place; a dry run may do without a store.
        ControllerAddressError: the controller given is no address.
        StoreAddressError: the store's address cannot be used.
        LocalClusterError: the environment names no state folder for the local Iris.
    """
    address = flags.store or environ.get(STORE_VARIABLE) or card.store
    if card.scheduler == "embedded":
        if flags.controller:
            raise PlaceRefused(
                f"--controller={flags.controller}: the cluster {card.name} is the local Iris, which the "
                "launcher finds and starts itself. Leave the flag out"
            )
        return _embedded(address, local_environment(environ))
    if card.scheduler is None:
        raise PlaceRefused(
            f"the cluster card '{card.name}' does not say its scheduler, so nothing can be submitted there. "
            "Write `scheduler: iris` into the card"
        )
    controller = controller_of(flags, environ)
    if not address:
        if not flags.dry_run:
            raise PlaceRefused(no_store(card.name))
        address = UNKNOWN_STORE
    if address.startswith("file:"):
        raise PlaceRefused(
            f"store {address}: the coordinator runs on the cluster {card.name} and cannot read a folder of "
            "this machine. Give --store=gs://bucket/prefix"
        )
    return LaunchPlace(
        cluster=card.name,
        route=Route(
            scheduler="iris",
            config=iris.get("parent_cluster_config") or iris.get("cluster_config"),
            controller=controller,
            target_cluster=iris.get("target_cluster"),
        ),
        runtime="marinskyrl",
        store_url=open_store(address).url,
        object_root_url=None,
        state=None,
    )


def no_store(cluster: str) -> str:
    """Return the sentence that says what a launch on `cluster` lacks, and who can give it."""
    return (
        f"the cluster {cluster} has no store: bundle, record and claims must lie where its jobs and "
        f"everybody else can read them. Give --store=gs://bucket/prefix, set ${STORE_VARIABLE}, or write "
        "`store:` into its cluster card"
    )


def _embedded(address: str | None, here: LocalEnvironment) -> LaunchPlace:
    return LaunchPlace(
        cluster=LOCAL_CLUSTER,
        route=EMBEDDED,
        runtime="rehearsal",
        store_url=open_store(address).url if address else here.store_url,
        object_root_url=here.object_root_url,
        state=here.state,
    )


def controller_of(flags: Any, environ: Mapping[str, str]) -> str | None:
    """Return the address of a controller that flags or environment give, None if they give none.

    Raises:
        ControllerAddressError: what they give is no such address.
    """
    url: str | None = flags.controller or environ.get(CONTROLLER_VARIABLE) or None
    if url is not None and not _is_controller(url):
        # A password before the host is nobody's to read in a log.
        shown = re.sub(r"//.*@", "//…@", url, flags=re.DOTALL)
        raise ControllerAddressError(
            f"controller {shown!r} is not the address of an Iris controller. Give one such as "
            "http://127.0.0.1:10000"
        )
    return url


def _is_controller(url: str) -> bool:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or half an IPv6 address
        return False
    # `urlsplit` passes over line breaks, and the client would not.
    plain = url.isprintable() and " " not in url
    return usable and plain and parts.path in ("", "/") and not parts.query and "@" not in parts.netloc
