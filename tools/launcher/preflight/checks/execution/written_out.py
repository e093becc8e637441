"""Large plans leave nothing to a fallback."""

import math
from collections.abc import Iterator

from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.execution.credentials import logs_to_wandb
from tools.launcher.preflight.checks.execution.reading import declared_credentials, filled
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.sizes import AUTOMATIC
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import counted, set_to, shown
from tools.launcher.rl.context_budget import (
    DEFAULT_GENERATED_BUDGET_FRACTION,
    DEFAULT_OVERLONG_CACHE_FRACTION,
)

_ALLOCATION = "iris.allocation"
_ENTITY = "iris.wandb_entity"
_PROJECT = "skyrl.trainer.project_name"
_BUDGET = "skyrl.context_budget"

_LAUNCHER_SHARE = 0.8
"""Of what a node offers, the launcher asks for where the document says auto (runtime-facts.md §14)."""

_DOCUMENT_POLICY = {"run.export_hf": True, "artifacts.resume_checkpoint_count": 2}
_RECIPE_POLICY = ("skyrl.trainer.ckpt_interval", "skyrl.trainer.resume_mode")


@check(
    "EXE-27",
    "a large plan is written out",
    area="execution",
    rule="more nodes than the cluster's smoke threshold: memory and disk, the credentials, the checkpoint and export policy, "
    "the W&B entity and project are written out, and of the context budget the fractions that are used (the rest: CTX-01)",
    prevents="Many GPUs run for days on a value that nobody chose.",
    inputs=("spec", "cluster", "runtime"),
    source="what is reviewed before large launches; nobody checks it",
)
def exe_27(subject: PreflightSubject) -> Iterator[Finding]:
    threshold = subject.cluster_fact("smoke_threshold_nodes")
    nodes = Geometry.of(subject).num_nodes
    if threshold is None or nodes <= threshold:
        return
    name = subject.cluster.name if subject.cluster is not None else ""
    large = f"{counted(nodes, 'node')} are above the smoke threshold of {threshold} on {name}"
    for path, fallback, repair in _missing(subject):
        yield Finding(path=path, message=f"{large}: write out {path}. {fallback}", repair=repair)


def _missing(subject: PreflightSubject) -> Iterator[tuple[str, str, str]]:
    """Yield (path, what would be used instead, repair) of everything that is left to a fallback."""
    for field in ("memory", "disk"):
        path = f"{_ALLOCATION}.{field}"
        if subject.get(path) == AUTOMATIC:
            yield path, "auto takes a share of what a node happens to offer", _written_size(subject, field)
    if subject.planned is not None and declared_credentials(subject) is None:
        yield (
            "execution.credentials",
            "Nobody says which secrets the run needs",
            "declare the names in the execution, () for none",
        )
    for path, value in _DOCUMENT_POLICY.items():
        if not subject.has(path):
            yield path, f"The launcher would take {shown(value)}", set_to(path, value)
    if subject.source_form:  # A resolved document holds every default.
        for path in _RECIPE_POLICY:
            if not subject.has(path):
                default = subject.value(path, str, int)
                yield path, f"The runtime would take {shown(default)}", set_to(path, default)
        for path, fraction in _used_fractions(subject):
            if not subject.has(path):
                yield path, f"The launcher would take {fraction}", set_to(path, fraction)
    if logs_to_wandb(subject):
        if filled(subject, _ENTITY) is None:
            yield _ENTITY, "The launch host would decide", f"write your entity in {_ENTITY}"
        if subject.source_form and not subject.has(_PROJECT):
            default = subject.text(_PROJECT)
            yield _PROJECT, f"The runtime would take {shown(default)}", f"write your project in {_PROJECT}"


def _used_fractions(subject: PreflightSubject) -> Iterator[tuple[str, float]]:
    """Yield the fractions of the context budget that this plan uses, with their defaults."""
    if subject.flag("skyrl.generator.trajectory_reward_shaping.enabled"):
        yield f"{_BUDGET}.overlong_cache_fraction", DEFAULT_OVERLONG_CACHE_FRACTION
        if subject.get(f"{_BUDGET}.max_turns") != 1:
            yield f"{_BUDGET}.generated_budget_fraction", DEFAULT_GENERATED_BUDGET_FRACTION


def _written_size(subject: PreflightSubject, field: str) -> str:
    path = f"{_ALLOCATION}.{field}"
    card = subject.cluster
    offered = getattr(card, f"{field}_per_node_gb") if card is not None else None
    return (
        set_to(path, f"{math.floor(offered * _LAUNCHER_SHARE)}GB") if offered else f"write a size in {path}"
    )


CHECKS = (exe_27,)
