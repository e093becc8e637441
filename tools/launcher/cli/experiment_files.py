"""The outputs of a built experiment, as a verb reads them: digests are checked before use."""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tools.launcher.catalog.cards import ClusterCard
from tools.launcher.catalog.load import load_cluster_card
from tools.launcher.cli.runfiles_paths import WrongFile, add_target_files, read_located
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.render.plan import LaunchPlan
from tools.launcher.store.bundles import BundleDigests, LaunchBundle, verify_bundle

# What a launch itself reads of the graph; the coordinator checks the rest.
_GRAPH_FIELDS: dict[str, type] = {
    "experiment_name": str,
    "default_stage": str,
    "stages": dict,
    "steps": list,
    "coordinator_timeout_hours": int,
    "max_retries": int,
    "credentials": list,
}


class ExperimentFiles(BaseModel):
    """Everything a launch reads, and nothing else."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    bundle: LaunchBundle
    digests: BundleDigests
    launch: dict[str, Any]
    graph: dict[str, Any]
    plan: LaunchPlan
    cluster: ClusterCard


def add_file_arguments(parser: Any) -> None:
    """Add the flags through which a verb's target names its files."""
    add_target_files(parser, ("launch", "digest", "graph", "plan", "cluster"))


def read_experiment_files(flags: Any) -> ExperimentFiles:
    """Read the files that `add_file_arguments` names.

    Raises:
        WrongFile: one is missing or not what it should be.
        BundleError: launch document and digest file do not agree.
        DocumentError: the launch document or the card cannot be read.
    """
    bundle = LaunchBundle(
        launch_yaml=read_located(flags.launch),
        graph_json=read_located(flags.graph),
        plan_json=read_located(flags.plan),
        digest_text=read_located(flags.digest).decode("utf-8", "replace"),
    )
    digests = verify_bundle(bundle)
    return ExperimentFiles(
        bundle=bundle,
        digests=digests,
        launch=load_yaml_mapping(bundle.launch_yaml, source=flags.launch),
        graph=_graph(bundle.graph_json, flags.graph),
        plan=_plan(bundle.plan_json, flags.plan),
        cluster=load_cluster_card(read_located(flags.cluster), source=flags.cluster),
    )


def files_of_bundle(bundle: LaunchBundle, cluster: ClusterCard, *, source: str) -> ExperimentFiles:
    """Return the files of a bundle that was launched before, as a store has them.

    Args:
        bundle: from the store, its digest checked.
        cluster: card of the cluster it was launched on.
        source: how messages call the bundle.

    Raises:
        WrongFile: a file of it is not of this launcher's making.
        BundleError: launch document and digest file do not agree.
        DocumentError: the launch document cannot be read.
    """
    return ExperimentFiles(
        bundle=bundle,
        digests=verify_bundle(bundle),
        launch=load_yaml_mapping(bundle.launch_yaml, source=f"launch.yaml of {source}"),
        graph=_graph(bundle.graph_json, f"graph.json of {source}"),
        plan=_plan(bundle.plan_json, f"plan.json of {source}"),
        cluster=cluster,
    )


def _graph(data: bytes, path: str) -> dict[str, Any]:
    try:
        graph = json.loads(data)
    except ValueError as error:
        raise _foreign(path, str(error)) from None
    if not isinstance(graph, dict):
        raise _foreign(path, f"it is a JSON {type(graph).__name__}, not an object")
    for name, kind in _GRAPH_FIELDS.items():
        if not isinstance(graph.get(name), kind):
            raise _foreign(path, f"{name} is {graph.get(name)!r}")
    return graph


def _plan(data: bytes, path: str) -> LaunchPlan:
    try:
        return LaunchPlan.model_validate_json(data)
    except ValidationError as error:
        finding = error.errors()[0]
        place = ".".join(str(part) for part in finding["loc"])
        raise _foreign(path, f"{place + ': ' if place else ''}{finding['msg']}") from None


def _foreign(path: str, problem: str) -> WrongFile:
    return WrongFile(f"{path} is not of this launcher's making: {problem}. Build the experiment again")
