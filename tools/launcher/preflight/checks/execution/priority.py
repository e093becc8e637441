"""Priority bands, the user's budget and what a person has to look at before a launch."""

import difflib
from collections.abc import Iterator
from typing import Any

from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.artifacts.sources import is_hub_name
from tools.launcher.preflight.checks.execution.reading import (
    bare,
    integer,
    is_embedded,
    runs_agents,
    runtime_fact,
)
from tools.launcher.preflight.findings import Finding, Reminder
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.wording import counted, listed, set_to, shown

_PRIORITY = "iris.priority"
_DEFAULT = "interactive"
"""What the launcher takes where the document names no priority (launch-document.md §4.4)."""

_RAY_PORT = "ray.port"
_HTTP_PORT = "ingress.vllm_http_port"


def _priority(subject: PreflightSubject) -> str:
    value = subject.get(_PRIORITY)
    if value is None:
        return _DEFAULT
    if type(value) not in (str, int, float, bool):
        raise UnreadableValue(f"{_PRIORITY} as str, it is {shown(value)}")
    return value if isinstance(value, str) else shown(value)


@check(
    "EXE-03",
    "the priority is a band that the user may ask for",
    area="execution",
    rule="priority in {interactive, batch}; production and system are for administrators",
    prevents="An unknown word is a KeyError when the child job is submitted, after the coordinator started.",
    inputs=("spec", "cluster", "runtime"),
    source="catalogue EXE-03 (#102), cases n165, n166; nobody checks it",
)
def exe_03(subject: PreflightSubject) -> Iterator[Finding]:
    bands = runtime_fact(subject, "priority_bands")
    priority = _priority(subject)
    usual = [band for band, audience in bands.items() if audience == "users"]
    listing = listed(band for band, audience in bands.items() if audience != "internal")
    if priority not in bands:
        same = [band for band in bands if band.upper() == priority.upper()]
        near = same or difflib.get_close_matches(priority.strip().lower(), bands, n=1, cutoff=0.6)
        repair = set_to(_PRIORITY, *dict.fromkeys((*(band for band in near if band in usual), *usual)))
        if same:
            yield Finding(
                path=_PRIORITY,
                message=f"priority {shown(priority)} is written {shown(same[0])}; Iris looks it up in upper case",
                repair=repair,
                severity="warning",
            )
        else:
            yield Finding(
                path=_PRIORITY,
                message=f"priority {shown(priority)} is unknown. Known: {listing}",
                repair=repair,
            )
    elif bands[priority] == "internal":
        yield Finding(
            path=_PRIORITY,
            message=f"priority {shown(priority)} is Iris' own word for the band of the parent job. Known: {listing}",
            repair=set_to(_PRIORITY, *usual),
            severity="warning",
        )
    elif bands[priority] == "administrators" or _above_the_highest(subject, priority, tuple(bands)):
        card = subject.cluster
        highest = card.default_highest_band if card is not None else None
        of_card = (
            f"; the highest band of a user on {card.name} is {highest}"
            if card is not None and highest
            else ""
        )
        yield Finding(
            path=_PRIORITY,
            message=f"priority {shown(priority)} is for administrators{of_card}",
            repair=set_to(_PRIORITY, *(usual if highest not in usual else usual[usual.index(highest) :])),
            severity="warning",
        )


def _above_the_highest(subject: PreflightSubject, priority: str, bands: tuple[str, ...]) -> bool:
    """Whether the cluster gives users a lower band at most. `bands` are in order, highest first."""
    highest = subject.cluster.default_highest_band if subject.cluster is not None else None
    return highest in bands and bands.index(priority) < bands.index(highest)


@check(
    "EXE-21",
    "interactive work stays within the budget",
    area="execution",
    rule="priority interactive: num_nodes * node_cost <= default_user_budget",
    prevents="Work above the budget is treated as batch, without a message.",
    inputs=("spec", "cluster"),
    source="catalogue EXE-21 (new), contract clusters-and-models.md §1; nobody checks it",
)
def exe_21(subject: PreflightSubject) -> Iterator[Finding | Reminder]:
    if is_embedded(subject) or _priority(subject).lower() != "interactive":
        return
    nodes = Geometry.of(subject).num_nodes
    cost, budget = subject.cluster_fact("node_cost"), subject.cluster_fact("default_user_budget")
    if cost is None or budget is None:
        return
    sum_of = f"{counted(nodes, 'node')} at {cost} each cost {nodes * cost}"
    if nodes * cost > budget:
        yield Finding(
            path=_PRIORITY,
            message=f"{sum_of}, more than the budget of {budget} that a user has by default; the job will run as batch",
            repair=set_to(_PRIORITY, "batch"),
            severity="warning",
        )
    else:
        yield Reminder(
            message=f"{sum_of} of your budget, {budget} by default; above it the job will run as batch"
        )


@check(
    "EXE-18",
    "ports do not collide, and what nobody can decide is looked at",
    area="execution",
    rule="ray.port != ingress.vllm_http_port; free nodes, sandbox quota and downloads are on the checklist",
    prevents="The second server on the host's network does not start; or the run waits for outside reasons.",
    inputs=("spec", "cluster", "runtime"),
    source="catalogue EXE-18 (#117); nobody checks it",
)
def exe_18(subject: PreflightSubject) -> Iterator[Finding | Reminder]:
    port, http_port = integer(subject, _RAY_PORT), integer(subject, _HTTP_PORT)
    if port is not None and port == http_port:
        yield Finding(
            path=_HTTP_PORT,
            message=f"{_RAY_PORT} and {_HTTP_PORT} are both {shown(port)}; tasks share the network of their host",
            repair=set_to(_HTTP_PORT, 8000 if port != 8000 else 8001),
            severity="warning",
        )
    if is_embedded(subject):
        return
    geometry = Geometry.of(subject)
    nodes, gpus = geometry.num_nodes, geometry.gpus_per_node
    together = " together" if nodes > 1 else ""
    gpu, cluster = (
        shown(subject.get(path)).strip("'") for path in ("iris.allocation.gpu_variant", "iris.cluster")
    )
    yield Reminder(message=f"{counted(nodes, 'node')} of {gpus} {gpu} must be free{together} on {cluster}")
    tokenizer = subject.get("inputs.model.tokenizer_uri")
    if is_hub_name(tokenizer) and integer(subject, "iris.max_retries") == 0:
        yield Reminder(
            message=f"max_retries is 0: a failed download of {shown(tokenizer)} from the hub ends the run"
        )
    if runs_agents(subject):
        quota = runtime_fact(subject, "sandbox_snapshot_quota")
        yield Reminder(
            message=f"the sandbox service keeps {quota} snapshots at a time: make room for those of this run"
        )


def _named(value: Any) -> str:
    return bare(value) if isinstance(value, str) else shown(value)


CHECKS = (exe_03, exe_18, exe_21)
