"""The gates of a launch: reading their facts from files, environment, store and cluster."""

from collections.abc import Mapping, Sequence
from typing import Any

from tools.launcher.cli.cluster_gates import cluster_gates
from tools.launcher.cli.experiment_files import ExperimentFiles
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.cli.runfiles_paths import read_located
from tools.launcher.iris.gateway import IrisGateway
from tools.launcher.iris.jobs import IrisError
from tools.launcher.iris.local.shapes import GangShape
from tools.launcher.rehearsal.limits import FORWARDED_PREFIX
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.store.records import RunRecord, list_records
from tools.launcher.submit.gates.budget import BudgetFacts, budget_gate, load_budget
from tools.launcher.submit.gates.clean_tree import clean_tree
from tools.launcher.submit.gates.credentials import credentials_gate
from tools.launcher.submit.gates.evaluate import evaluate
from tools.launcher.submit.gates.fixed_version import VersionFacts, fixed_version
from tools.launcher.submit.gates.gate import Gate, GateId, GateReport
from tools.launcher.submit.gates.labels import experiment_name
from tools.launcher.submit.gates.overrides import collect_overrides
from tools.launcher.submit.gates.shape import shape_of
from tools.launcher.submit.gates.smoke import SmokeFacts, smoke_gate
from tools.launcher.submit.source_state import SourceState
from tools.launcher.submit.stage_steps import RL_KIND, steps_of_stage

_LOCAL = "the local Iris: nothing is at stake"
_AT_STAKE: tuple[GateId, ...] = ("clean-tree", "fixed-version", "budget", "smoke")
"""Gates of a cluster that others use and pay for."""

_REHEARSAL = "a rehearsal contacts none of the services they are for"


def launch_gates(
    files: ExperimentFiles,
    flags: Any,
    *,
    place: LaunchPlace,
    stage: str,
    source: SourceState,
    credentials: Sequence[str],
    environ: Mapping[str, str],
    store: ObjectStore | None,
    gateway: IrisGateway | IrisError | None,
) -> GateReport:
    """Read the facts of every gate, and judge them all.

    Args:
        files: the built experiment.
        flags: of `launch_arguments`; `budget`, `allow_dirty`, `override`, `authorize` are read.
        place: where the launch goes.
        stage: terminal stage; one that trains nothing takes no GPU.
        source: who launches from what.
        credentials: names of what is handed on; none of a rehearsal, whatever the experiment declares.
        environ: the process environment.
        store: where smoke runs are on record; None in a dry run, which reads nothing.
        gateway: the cluster; the error if it could not be opened; None in a dry run.

    Raises:
        OverrideError: an override that cannot be taken.
        WrongFile, DocumentError: the budget file cannot be read.
        StoreError: the store failed.
    """
    overrides = collect_overrides(flags.override, allow_dirty=source.who if flags.allow_dirty else None)
    gang = gang_of(files)
    steps = steps_of_stage(files.bundle.graph_json, stage)
    reachable, placeable = cluster_gates(files.cluster, place, gang, gateway)
    if place.is_local:
        own = tuple(_not_needed(gate, _LOCAL) for gate in _AT_STAKE)
    else:
        own = (clean_tree(source), fixed_version(_versions(files, steps)))
        if all(step["kind"] != RL_KIND for step in steps):
            no_gpu = f"stage {stage} trains nothing and takes no GPU"
            own += (_not_needed("budget", no_gpu), _not_needed("smoke", no_gpu))
            placeable = _not_needed("placeable", no_gpu)
        else:
            own += (_budget(files, gang, flags.budget), _smoke(files, gang, store))
    return evaluate(
        (*own, _credentials(files, flags, place, credentials, environ), reachable, placeable), overrides
    )


def gang_of(files: ExperimentFiles) -> GangShape:
    """Return the gang that the launch document asks for."""
    allocation = files.launch["iris"]["allocation"]
    return GangShape(
        gpu_variant=allocation["gpu_variant"],
        gpus_per_node=allocation["gpus_per_node"],
        num_nodes=allocation["num_nodes"],
    )


def _not_needed(gate_id: GateId, why: str) -> Gate:
    return Gate(id=gate_id, state="not_needed", found=why)


def _versions(files: ExperimentFiles, steps: Sequence[Mapping[str, Any]]) -> VersionFacts:
    runs = [step["address"] for step in steps if step["kind"] == RL_KIND]
    return VersionFacts(
        label=files.plan.experiment,
        # Only what is trained is pinned: an import is known by its own revision.
        step=runs[0] if runs else steps[-1]["address"],
        made=tuple(step["address"] for step in steps if not step["adopted"]),
        pinned=files.graph.get("pinned") if runs else None,
    )


def _budget(files: ExperimentFiles, gang: GangShape, path: str | None) -> Gate:
    facts = BudgetFacts(
        cluster=files.cluster.name,
        nodes=gang.num_nodes,
        gpus_per_node=gang.gpus_per_node,
        job_timeout_seconds=files.launch["iris"]["timeout"],
        max_retries=files.launch["iris"]["max_retries"],
        coordinator_timeout_hours=files.graph["coordinator_timeout_hours"],
    )
    if path is None:
        return budget_gate(facts, None)
    data = read_located(path, fix="Name the repository's budget file")
    return budget_gate(facts, load_budget(data, source=path))


def _smoke(files: ExperimentFiles, gang: GangShape, store: ObjectStore | None) -> Gate:
    facts = SmokeFacts(
        label=files.plan.experiment,
        cluster=files.cluster.name,
        nodes=gang.num_nodes,
        threshold=files.cluster.smoke_threshold_nodes,
        smoke=files.plan.smoke,
        shape=shape_of(files.launch, files.graph, files.plan.model_dump(mode="json")),
        store_url="" if store is None else store.url,
    )
    if facts.smoke is None or facts.threshold is None or facts.nodes <= facts.threshold:
        return smoke_gate(facts, ())
    if store is None:
        return Gate(
            id="smoke", state="not_asked", found=f"dry run: the records of {facts.smoke} are not read"
        )
    return smoke_gate(facts, _records(store, experiment_name(facts.smoke)))


def _records(store: ObjectStore, experiment: str) -> tuple[RunRecord, ...]:
    """The records of an experiment; a launch with another stage than the default has a name of its own."""
    names = {key.split("/")[1] for key in store.list(f"runs/{experiment}")}
    return tuple(
        record
        for name in sorted(names)
        if name == experiment or name.startswith(f"{experiment}.")
        for record in list_records(store, name)
    )


def _credentials(
    files: ExperimentFiles,
    flags: Any,
    place: LaunchPlace,
    names: Sequence[str],
    environ: Mapping[str, str],
) -> Gate:
    if files.graph["credentials"] and not names:
        return _not_needed("credentials", _REHEARSAL)
    public = {
        "the launch document": files.launch,
        "the graph": files.graph,
        "the plan": files.plan.model_dump(mode="json"),
        "the command line": [
            *flags.override,
            flags.authorize or "",
            place.store_url,
            place.route.controller or "",
        ],
        "the request's environment": {
            **{name: value for name, value in environ.items() if name.startswith(FORWARDED_PREFIX)},
            **place.store_variables(environ),
        },
    }
    return credentials_gate(names, environ, public)
