"""From a reviewed bundle to the facts of a launch: read from the bundle, never from flags."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationError

from tools.launcher.documents.strict_yaml import load_yaml
from tools.launcher.iris.route import Route
from tools.launcher.store.bundles import LaunchBundle
from tools.launcher.submit.request import LaunchFacts, LaunchMismatch


def launch_facts(
    bundle: LaunchBundle,
    *,
    stage: str,
    ordinal: int,
    cluster: str,
    store_url: str,
    object_root_url: str | None,
    route: Route,
    runtime: Literal["rehearsal", "marinskyrl"],
    credentials: tuple[str, ...] = (),
    shape: Mapping[str, Any] | None = None,
    gates: Mapping[str, Any] | None = None,
    authorized: str | None = None,
    rehearsal_variables: Mapping[str, str] | None = None,
    store_variables: Mapping[str, str] | None = None,
    requirements: bytes = b"",
) -> LaunchFacts:
    """Return the facts of a launch of `bundle`.

    Name, stages, deadline and retries are the bundle's. The priority is its too, except on the embedded
    cluster, where nobody competes.

    Args:
        bundle: checked with `verify_bundle`.
        stage ... requirements: as the attributes of `LaunchFacts`.

    Raises:
        LaunchMismatch: the bundle's graph or document lacks one of them.
    """
    try:
        graph = json.loads(bundle.graph_json)
        priority = load_yaml(bundle.launch_yaml, source="launch.yaml")["iris"]["priority"]
        return LaunchFacts(
            experiment_name=graph["experiment_name"],
            stage=stage,
            default_stage=graph["default_stage"],
            ordinal=ordinal,
            cluster=cluster,
            store_url=store_url,
            object_root_url=object_root_url,
            coordinator_timeout_hours=graph["coordinator_timeout_hours"],
            max_retries=graph["max_retries"],
            priority=None if route.scheduler == "embedded" else priority,
            credentials=tuple(sorted(credentials)),
            runtime=runtime,
            route=route,
            shape=dict(shape or {}),
            gates=dict(gates or {}),
            authorized=authorized,
            rehearsal_variables=dict(rehearsal_variables or {}),
            store_variables=dict(store_variables or {}),
            requirements=requirements,
        )
    except ValidationError as error:
        finding = error.errors()[0]
        place = ".".join(str(part) for part in finding["loc"])
        raise LaunchMismatch(
            f"the bundle's {place} cannot be launched: {finding['msg']}. Build the experiment again"
        ) from None
    except (KeyError, TypeError, ValueError) as error:
        raise LaunchMismatch(
            f"the bundle's graph or launch document lacks what a launch needs ({type(error).__name__}: "
            f"{error}). Build the experiment again"
        ) from None


def declared_credentials(bundle: LaunchBundle) -> tuple[str, ...]:
    """Return the names of the credentials that the bundle's execution declares.

    Raises:
        LaunchMismatch: the graph does not say.
    """
    try:
        return tuple(str(name) for name in json.loads(bundle.graph_json)["credentials"])
    except (KeyError, TypeError, ValueError) as error:
        raise LaunchMismatch(
            f"the bundle's graph lacks its credentials ({type(error).__name__}: {error}). "
            "Build the experiment again"
        ) from None
