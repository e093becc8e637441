"""What FSDP asks of its own sizes, and sizes that the chosen strategy does not read."""

from collections.abc import Iterator

from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.backend.roles import (
    TRAINED_ROLES,
    VALIDATED_ROLES,
    active_roles,
    fsdp_config,
    megatron_config,
    word,
)
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry, divisors, nearest
from tools.launcher.preflight.subject import PreflightSubject, is_count
from tools.launcher.preflight.wording import counted, delete, listed, set_to, shown

_PACKING = "skyrl.trainer.use_sample_packing"
_FSDP = ("fsdp", "fsdp2")

_MEGATRON_SIZES = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "expert_tensor_parallel_size",
)
_FSDP_SIZES = ("expert_model_parallel_size", "expert_tensor_parallel_size", "fsdp_size")
"""Without context_parallel_size, which the trainer refuses elsewhere (BKD-13)."""


@check(
    "BKD-13",
    "FSDP context parallelism has what it needs",
    area="backend",
    rule="fsdp_config.context_parallel_size > 1: strategy fsdp2, sequence_parallel_size == 1, use_sample_packing: false, "
    "W % cp == 0, a known cp_style and cp_rotate_method",
    prevents="The trainer refuses the run after the GPUs were allocated.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-13 (#62); the trainer, utils.py@004e15f9",
)
def bkd_13(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    for role in VALIDATED_ROLES:
        path = f"{fsdp_config(role)}.context_parallel_size"
        size = subject.positive(path)
        if size > 1:
            yield from _context_parallel_problems(subject, geometry, role, path, size)


def _context_parallel_problems(
    subject: PreflightSubject, geometry: Geometry, role: str, path: str, size: int
) -> Iterator[Finding]:
    has = f"trainer.{role}.fsdp_config.context_parallel_size={size}"
    if geometry.strategy != "fsdp2":
        yield Finding(
            path=path,
            message=f"{has} needs strategy fsdp2, got {word(geometry.strategy)}"
            + (". Megatron has its own size, in megatron_config" if geometry.strategy == "megatron" else ""),
            repair=set_to(path, 1),
        )
        return
    ulysses = f"skyrl.trainer.{role}.sequence_parallel_size"
    if subject.positive(ulysses) != 1:
        yield Finding(
            path=ulysses,
            message=f"{has} excludes sequence_parallel_size={subject.get(ulysses)}: both split the sequence",
            repair=set_to(ulysses, 1),
        )
    if subject.flag(_PACKING):
        written = "is true" if subject.has(_PACKING) else "is true where it is left out"
        yield Finding(
            path=_PACKING,
            message=f"{has} needs use_sample_packing: false; it {written}",
            repair=set_to(_PACKING, False),
        )
    world = _world(subject, geometry, role)
    if world % size:
        yield Finding(
            path=path,
            message=f"{has} does not divide the {role} world of {counted(world, 'GPU')} "
            f"({world} % {size} = {world % size}). Valid: {listed(divisors(world))}",
            repair=set_to(path, nearest(divisors(world), size)),
        )
    for setting in ("cp_style", "cp_rotate_method"):
        place = f"{fsdp_config(role)}.{setting}"
        known = subject.manifest().recipe_enums.get(place.removeprefix("skyrl."))
        chosen = subject.text(place)
        if known is not None and chosen not in known:
            yield Finding(
                path=place,
                message=f"{has} with {setting}={shown(chosen)}. Known: {listed(known)}",
                repair=set_to(place, *known),
            )


def _world(subject: PreflightSubject, geometry: Geometry, role: str) -> int:
    """GPUs by which the trainer divides; those of a critic are its defaults, which nobody places."""
    if role == "critic":
        placement = "skyrl.trainer.placement.critic_num_"
        return subject.positive(f"{placement}nodes") * subject.positive(f"{placement}gpus_per_node")
    return geometry.policy_world if role == "policy" else geometry.reference_world


@check(
    "BKD-18",
    "FSDP shards over the whole role",
    area="backend",
    rule="FSDP: fsdp_size is -1 or the role's world W",
    prevents="Hybrid shards hold several copies of the states, which doubles the memory or worse.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-18 (#67), case n102; a branch tool only",
)
def bkd_18(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if geometry.strategy not in _FSDP:
        return
    for role, world in active_roles(geometry):
        path = f"{fsdp_config(role)}.fsdp_size"
        size = subject.integer(path)
        if size not in (-1, world):
            yield Finding(
                path=path,
                message=f"fsdp_size={size}, the {role} world is {world}",
                repair=set_to(path, world, -1),
            )


@check(
    "BKD-35",
    "no size belongs to the other strategy",
    area="backend",
    rule="megatron: no fsdp_config size other than its default; fsdp, fsdp2: no megatron_config size other than 1",
    prevents="The model is split otherwise than the recipe reads: the size is ignored without a message.",
    inputs=("spec", "runtime"),
    source="case 75; megatron_worker.py@008da072 reads megatron_config only, the FSDP workers fsdp_config only",
)
def bkd_35(subject: PreflightSubject) -> Iterator[Finding]:
    strategy = Geometry.of(subject).strategy
    if strategy == "megatron":
        unread = [f"{fsdp_config(role)}.{size}" for role in TRAINED_ROLES for size in _FSDP_SIZES]
        own = "megatron_config"
    elif strategy in _FSDP:
        unread = [f"{megatron_config(role)}.{size}" for role in TRAINED_ROLES for size in _MEGATRON_SIZES]
        own = "fsdp_config"
    else:
        return
    for path in unread:
        size = subject.get(path)
        if is_count(size) and size != 1:
            yield Finding(
                path=path,
                message=f"strategy {strategy} does not read {path.removeprefix('skyrl.')}={size}; its sizes are in {own}",
                repair=delete(path),
                severity="warning",
            )


@check(
    "BKD-37",
    "FSDP expert groups fill the role",
    area="backend",
    rule="FSDP: W % (expert_model_parallel_size * expert_tensor_parallel_size) == 0",
    prevents="The device mesh of the experts cannot be built.",
    inputs=("spec", "runtime"),
    source="ppo_base_config.yaml@008da072 (keys of fsdp_config); a device mesh has as many places as the role has GPUs",
)
def bkd_37(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if geometry.strategy not in _FSDP:
        return
    for role, world in active_roles(geometry):
        config = fsdp_config(role)
        ep = subject.positive(f"{config}.expert_model_parallel_size")
        etp = subject.positive(f"{config}.expert_tensor_parallel_size")
        if world % (ep * etp):
            valid = divisors(world // etp) if world % etp == 0 else []
            yield Finding(
                path=f"{config}.expert_model_parallel_size",
                message=f"{role}: world {world} is not divisible by expert_model_parallel_size*"
                f"expert_tensor_parallel_size={ep}*{etp}={ep * etp}",
                repair=set_to(f"{config}.expert_model_parallel_size", nearest(valid, ep))
                if valid
                else set_to(f"{config}.expert_tensor_parallel_size", 1)
                + " and "
                + set_to(f"{config}.expert_model_parallel_size", nearest(divisors(world), ep)),
            )


CHECKS = (bkd_13, bkd_18, bkd_35, bkd_37)
