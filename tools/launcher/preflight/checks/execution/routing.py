"""How a job reaches its cluster."""

from collections.abc import Iterable, Iterator
from typing import Any

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.execution.reading import bare, filled, integer, rl_steps, runtime_fact
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import also, listed, set_to, shown

_CLUSTER = "iris.cluster"
_CONFIG = "iris.cluster_config"
_TARGET = "iris.target_cluster"
_PARENT = "iris.parent_cluster_config"
_TIMEOUT = "iris.timeout"


@check(
    "EXE-01",
    "there is one complete route to the cluster",
    area="execution",
    rule="target_cluster and parent_cluster_config both or neither; target_cluster == cluster; timeout >= 0; "
    "coordinator_timeout_hours > 0",
    prevents="No route: the job is refused, or goes where nobody looks.",
    inputs=("spec",),
    source="catalogue EXE-01 (#100); Marin at build time",
)
def exe_01(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.planned is not None:
        for step, payload in rl_steps(subject):
            if payload.execution.coordinator_timeout_hours <= 0:
                yield Finding(
                    path=step.address,
                    message=f"coordinator_timeout_hours={shown(payload.execution.coordinator_timeout_hours)} must be "
                    "positive: it bounds the whole run",
                    repair="write the hours that queue and run need together",
                )
    timeout = integer(subject, _TIMEOUT)
    if timeout is not None and timeout < 0:
        yield Finding(
            path=_TIMEOUT,
            message=f"timeout={shown(timeout)} seconds is negative; 0 means no limit",
            repair=set_to(_TIMEOUT, 0),
        )
    target, parent = filled(subject, _TARGET), filled(subject, _PARENT)
    cluster = subject.text(_CLUSTER)
    if target is not None and parent is None:
        yield Finding(
            path=_PARENT,
            message=f"target_cluster {shown(target)} is set without parent_cluster_config: no hub passes the job on",
            repair=set_to(_TARGET, "null"),
        )
    elif parent is not None and target is None:
        yield Finding(
            path=_TARGET,
            message=f"parent_cluster_config {shown(parent)} is set without target_cluster: the hub does not know where to",
            repair=set_to(_PARENT, "null"),
        )
    elif target is not None and target != cluster:
        yield Finding(
            path=_TARGET,
            message=f"target_cluster {shown(target)} is not the cluster {shown(cluster)} that the plan is made for",
            repair=set_to(_TARGET, bare(cluster)) if cluster.strip() else set_to(_CLUSTER, bare(target)),
        )


@check(
    "EXE-02",
    "all steps of an experiment go the same way",
    area="execution",
    rule="the graph has an RL step; all of them have one route and one priority",
    prevents="The coordinator, which is one job, cannot run them.",
    inputs=("spec",),
    source="catalogue EXE-02 (#101); Marin at build time",
)
def exe_02(subject: PreflightSubject) -> Iterator[Finding]:
    steps = rl_steps(subject)
    if not steps:
        yield Finding(
            path="iris",
            message="the graph has no RL step: there is nothing to launch",
            repair="return the result of skyrl_step(...) from main()",
        )
    routes: dict[Any, str] = {}
    priorities: dict[Any, str] = {}
    for step, payload in steps:
        execution = payload.execution
        hub = execution.parent_cluster_config or execution.cluster_config
        routes.setdefault((hub, execution.target_cluster), step.address)
        priorities.setdefault(execution.priority, step.address)
    for what, found in (("routes", routes), ("priorities", priorities)):
        if len(found) > 1:
            named = " and ".join(
                f"{_words(value)} ({address})" for value, address in sorted(found.items(), key=str)
            )
            yield Finding(
                path="iris.priority" if found is priorities else _TARGET,
                message=f"the steps use the {what} {named}",
                repair="make an experiment of each, or give the steps one execution",
            )


def _words(value: object) -> str:
    if not isinstance(value, tuple):
        return shown(value)
    hub, target = value
    return f"{shown(hub)} to {shown(target)}" if target else f"{shown(hub)} directly"


@check(
    "EXE-20",
    "the hub reaches the target",
    area="execution",
    rule="target_cluster is a peer of the hub in parent_cluster_config, which is not cluster_config",
    prevents="The hub refuses the job: cw-us-west-04a, for one, is reached through the development hub only.",
    inputs=("spec", "cluster", "runtime"),
    source="catalogue EXE-20 (new), contract clusters-and-models.md §1.1; Iris, late",
)
def exe_20(subject: PreflightSubject) -> Iterator[Finding]:
    target, parent = filled(subject, _TARGET), filled(subject, _PARENT)
    if target is None or parent is None:
        return
    federation = (subject.runtime.federation if subject.runtime is not None else None) or {}
    hubs = [hub for hub, peers in federation.items() if target in peers]
    if hubs and parent == subject.get(_CONFIG) and not _among(parent, federation):
        yield Finding(
            path=_PARENT,
            message=f"parent_cluster_config {shown(parent)} is the configuration of {bare(target)} itself, which is no hub",
            repair=set_to(_PARENT, *hubs),
        )
        return
    if not hubs or not _among(parent, federation):
        # Nobody knows this cluster, or this hub, by name: the card knows its own.
        card = subject.cluster
        if card is None or not {"hub", "parents"} & card.model_fields_set:
            raise MissingFact("a cluster card with hub or parents")
        hubs = sorted({*card.parents, *([card.hub] if card.hub else [])})
        if "parents" not in card.model_fields_set and not _among(parent, hubs):
            raise MissingFact(
                f"parents in the cluster card '{card.name}', which names the hub {card.hub} only"
            )
    if not _among(parent, hubs):
        peers = next((peers for hub, peers in federation.items() if _file(hub) == _file(parent)), ())
        other = f" Peers: {listed(peers)}" if peers else ""
        yield Finding(
            path=_TARGET,
            message=f"{bare(target)} is not a peer of {shown(parent)}.{other}",
            repair=set_to(_PARENT, *hubs) if hubs else also(set_to(_TARGET, "null"), set_to(_PARENT, "null")),
        )


def _file(path: str) -> str:
    """What a configuration is known by: the folder that holds it differs from host to host."""
    return path.rpartition("/")[2]


def _among(path: str, others: Iterable[str]) -> bool:
    return _file(path) in {_file(other) for other in others}


@check(
    "EXE-39",
    "cluster_config describes the cluster",
    area="execution",
    rule="cluster_config is the configuration of the cluster's card; without it, a file named cw-* is named after cluster",
    prevents="The job goes to another cluster than the one that the plan was judged for.",
    inputs=("spec", "cluster"),
    source="contract launch-document.md §4.4; nobody checks it",
)
def exe_39(subject: PreflightSubject) -> Iterator[Finding]:
    config, cluster = subject.text(_CONFIG), subject.text(_CLUSTER)
    card = subject.cluster
    stem = _file(config).removesuffix(".yaml").removesuffix(".yml")
    wanted = config
    if card is not None and card.config is not None and card.name == cluster:
        wanted = config if _file(config) == _file(card.config) else card.config
    elif stem.startswith("cw-") and cluster.startswith("cw-"):
        wanted = config.replace(stem, cluster)
    if wanted != config:
        yield Finding(
            path=_CONFIG,
            message=f"cluster_config {shown(config)} is not the configuration of {bare(cluster)}",
            repair=set_to(_CONFIG, bare(wanted)),
            severity="warning",
        )


@check(
    "EXE-40",
    "the default stage ends where the cluster's runtime can go",
    area="execution",
    rule="the target's stage has no evaluate step, or the cluster is the embedded one",
    prevents="Every launch that asks for no stage is refused: MarinSkyRL trains and exports, and evaluates nothing.",
    inputs=("spec", "cluster"),
    source="contract README.md (what the launcher does); a launch refuses it too",
)
def exe_40(subject: PreflightSubject) -> Iterator[Finding]:
    stage = subject.planned.stage if subject.planned is not None else None
    if subject.planned is None or stage != "evaluate":
        return
    scored = [step for step in subject.planned.graph.steps if step.kind == "evaluate"]
    made = [step for step in scored if step.recorded_fingerprint is None]
    if made and subject.cluster_fact("scheduler") != "embedded":
        yield Finding(
            path=made[0].address,
            message=f"stage 'evaluate' on {subject.text(_CLUSTER)}: MarinSkyRL, which works there, evaluates nothing",
            repair='write stage = "rl" at the target; `:rehearse -- --stage=evaluate` makes a stand-in of the rest',
        )


@check(
    "EXE-10",
    "sandboxes reach the engines through the controller",
    area="execution",
    rule="controller ingress: a cw-* cluster needs target_cluster, and host iris.oa.dev or none; elsewhere host is the "
    "cluster's dashboard",
    prevents="Sandboxes cannot reach the engines: no trial is made while the nodes run on.",
    inputs=("spec", "cluster", "runtime"),
    source="catalogue EXE-10 (#109), failure row 14; the launcher, at submission",
)
def exe_10(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.get("ingress.mode") != "controller":
        return
    rules = runtime_fact(subject, "controller_ingress")
    cluster = subject.text(_CLUSTER)
    host = filled(subject, "ingress.host")
    if cluster.startswith(rules.federated_cluster_prefix):
        if filled(subject, _TARGET) is None:
            yield Finding(
                path=_TARGET,
                message=f"controller ingress on {bare(cluster)} needs submission through the hub: target_cluster is not set",
                repair=_through_the_hub(subject, cluster),
            )
        if host not in (None, rules.host):
            yield Finding(
                path="ingress.host",
                message=f"controller ingress on {bare(cluster)} uses the host {rules.host}, ingress.host is {shown(host)}",
                repair=set_to("ingress.host", rules.host),
            )
        return
    dashboard = subject.cluster_fact("public_host")
    if dashboard is not None and host != dashboard:
        yield Finding(
            path="ingress.host",
            message=f"controller ingress on {bare(cluster)} uses the dashboard {dashboard}, ingress.host is {shown(host)}",
            repair=set_to("ingress.host", dashboard),
            # Whether the launcher fills in an empty host there is not known.
            severity="error" if host is not None else "warning",
        )


def _through_the_hub(subject: PreflightSubject, cluster: str) -> str:
    """The repair which routes the job through a hub that has `cluster` as a peer, else direct ingress."""
    hub = subject.cluster.hub if subject.cluster is not None else None
    federation = subject.manifest().federation or {}
    hub = next((name for name, peers in federation.items() if cluster in peers), hub)
    if hub is None:
        return set_to("ingress.mode", "direct")
    return also(set_to(_TARGET, bare(cluster)), set_to(_PARENT, hub))


CHECKS = (exe_01, exe_02, exe_10, exe_20, exe_39, exe_40)
