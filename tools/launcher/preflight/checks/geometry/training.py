"""Roles that this generation cannot place, and how ranks share attention heads."""

from collections.abc import Iterator

from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry, divisors, nearest
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import counted, delete, listed, set_to, shown

_CRITIC = "skyrl.trainer.critic.model.path"
_ESTIMATOR = "skyrl.trainer.algorithm.advantage_estimator"


@check(
    "GEO-15",
    "no critic",
    area="geometry",
    rule="trainer.critic.model.path is not set; advantage_estimator is not gae, which needs a critic",
    prevents="A critic's GPUs are not counted; gae without a critic stops in the trainer.",
    inputs=("spec",),
    source="catalogue GEO-15 (#30), failure row 44 (vime#41); Marin for the path, the trainer for gae",
)
def geo_15(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.get(_CRITIC):
        yield Finding(
            path=_CRITIC,
            message=f"critic model {shown(subject.get(_CRITIC))}: this generation cannot place a critic",
            repair=delete(_CRITIC),
        )
    if subject.get(_ESTIMATOR) == "gae":
        yield Finding(
            path=_ESTIMATOR,
            message="advantage_estimator gae needs a critic, which this generation cannot place",
            repair=set_to(_ESTIMATOR, "grpo", "rloo"),
        )


@check(
    "GEO-26",
    "sequence-parallel ranks share the attention heads evenly",
    area="geometry",
    rule="FSDP: W % sequence_parallel_size == 0 and heads % sequence_parallel_size == 0, for policy and reference",
    prevents="Ulysses splits the heads over the ranks; a rank would get a fraction of one.",
    inputs=("spec", "model", "runtime"),
    source="catalogue GEO-26 (new); the trainer, partly",
)
def geo_26(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if geometry.strategy == "megatron":
        return  # Megatron takes only size 1 there (BKD-05).
    roles = [("policy", geometry.policy_world)]
    if geometry.reference_active:
        roles.append(("ref", geometry.reference_world))
    sizes = [
        (role, world, subject.positive(f"skyrl.trainer.{role}.sequence_parallel_size"))
        for role, world in roles
    ]
    for role, world, size in sizes:
        if world % size:
            yield _finding(role, size, f"the {role} world of {counted(world, 'GPU')}", divisors(world))
    if all(size == 1 for _, _, size in sizes):
        return
    heads = subject.model_fact("num_attention_heads")
    for role, world, size in sizes:
        if heads % size and world % size == 0:
            common = [divisor for divisor in divisors(heads) if world % divisor == 0]
            yield _finding(role, size, counted(heads, "attention head"), common)


def _finding(role: str, size: int, what: str, valid: list[int]) -> Finding:
    path = f"skyrl.trainer.{role}.sequence_parallel_size"
    return Finding(
        path=path,
        message=f"sequence_parallel_size={size} does not divide {what}. Valid: {listed(valid)}",
        repair=set_to(path, nearest(valid, size)),
    )


CHECKS = (geo_15, geo_26)
