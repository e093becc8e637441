"""What Megatron asks of back end, switches and sizes."""

from collections.abc import Iterator
from typing import Any

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.backend.roles import (
    TRAINED_ROLES,
    MegatronRole,
    fsdp_config,
    megatron_config,
    megatron_roles,
)
from tools.launcher.preflight.checks.geometry.in_step import placement_repair
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry, divisors, nearest
from tools.launcher.preflight.subject import MAX_COUNT, PreflightSubject, is_count
from tools.launcher.preflight.wording import also, below, counted, delete, listed, set_to, shown

_BACKEND = "skyrl.generator.backend"
_SYNC = "skyrl.generator.weight_sync_backend"
_LORA_RANK = "skyrl.trainer.policy.model.lora.rank"
_PACKING = "skyrl.trainer.use_sample_packing"
_POLICY_KWARGS = f"{megatron_config('policy')}.transformer_config_kwargs"
_SEQUENCE_PARALLEL = f"{_POLICY_KWARGS}.sequence_parallel"
_FUSION = "moe_router_fusion"
_OFFLOAD_FRACTION = f"{megatron_config('policy')}.optimizer_config_kwargs.optimizer_offload_fraction"


@check(
    "BKD-05",
    "Megatron runs with vLLM and nccl, and without what it does not support",
    area="backend",
    rule="strategy megatron: backend vllm, weight_sync_backend nccl, sequence_parallel_size == 1, LoRA rank 0; no fused "
    "router while routes are replayed (no critic: GEO-15)",
    prevents="The trainer refuses the run, partly at the first weight sync.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-05 (#54), cases 70, 71, 72, n38; the trainer, utils.py@004e15f9",
)
def bkd_05(subject: PreflightSubject) -> Iterator[Finding]:
    if Geometry.of(subject).strategy != "megatron":
        return
    if subject.text(_BACKEND) != "vllm":
        yield Finding(
            path=_BACKEND,
            message=f"megatron needs backend vllm, got {shown(subject.text(_BACKEND))}",
            repair=set_to(_BACKEND, "vllm"),
        )
    if subject.text(_SYNC) != "nccl":
        yield Finding(
            path=_SYNC,
            message=f"megatron needs weight_sync_backend nccl, got {shown(subject.text(_SYNC))}",
            repair=set_to(_SYNC, "nccl"),
        )
    for role in TRAINED_ROLES:
        path = f"skyrl.trainer.{role}.sequence_parallel_size"
        if subject.positive(path) != 1:
            yield Finding(
                path=path,
                message=f"megatron has no Ulysses: trainer.{role}.sequence_parallel_size={subject.get(path)} must be 1",
                repair=set_to(path, 1),
            )
    if subject.integer(_LORA_RANK) > 0:
        yield Finding(
            path=_LORA_RANK,
            message=f"megatron trains no LoRA, rank is {subject.get(_LORA_RANK)}",
            repair=set_to(_LORA_RANK, 0),
        )
    yield from _fused_routers(subject)


def _fused_routers(subject: PreflightSubject) -> Iterator[Finding]:
    for role in TRAINED_ROLES:
        switches = [f"{config(role)}.moe_router_replay" for config in (fsdp_config, megatron_config)]
        if not any(subject.get(switch) is True for switch in switches):
            continue
        for kwargs in ("transformer_config_kwargs", "model_config_kwargs"):
            place = f"{megatron_config(role)}.{kwargs}"
            for path in _fusion_paths(subject.get(place), place):
                yield Finding(
                    path=path,
                    message=f"{_FUSION} must stay off with moe_router_replay: the fused router bypasses the replay",
                    repair=delete(path),
                )


def _fusion_paths(node: Any, place: str) -> Iterator[str]:
    for key, value in node.items() if isinstance(node, dict) else ():
        if key == _FUSION and value and not isinstance(value, dict):
            yield below(place, key)
        yield from _fusion_paths(value, below(place, key))


@check(
    "BKD-06",
    "the model-parallel size divides the role",
    area="backend",
    rule="Megatron: W % (tp*pp*cp) == 0, for policy and active reference",
    prevents="The data-parallel size is not whole.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-06 (#55), failure row 50 (NeMo Speech#11480); the trainer",
)
def bkd_06(subject: PreflightSubject) -> Iterator[Finding]:
    for role in megatron_roles(subject):
        if not role.whole:
            size = role.model_parallel
            yield Finding(
                path=role.path("tp"),
                message=f"{role.name}: world {role.world} is not divisible by tp*pp*cp={role.tp}*{role.pp}*{role.cp}="
                f"{size} ({role.world} % {size} = {role.world % size})",
                repair=_whole_repair(subject, role),
            )


def _whole_repair(subject: PreflightSubject, role: MegatronRole) -> str:
    """The smallest change of one size that makes dp whole, else of all three; experts and batch follow."""
    candidates = []
    for name in ("tp", "pp", "cp"):
        now = getattr(role, name)
        rest = role.model_parallel // now
        if role.world % rest == 0:
            then = role.nearest_size(name, divisors(role.world // rest))
            candidates.append((not role.having(name, then).legal, abs(then - now), name, then))
    if candidates:
        _, _, name, then = min(candidates)
        repaired = role.having(name, then)
    else:
        repaired = role.having("tp", nearest(divisors(role.world), role.tp))._replace(pp=1, cp=1)
    sizes = {name: getattr(repaired, name) for name in ("tp", "pp", "cp")}
    if not repaired.legal:
        sizes |= _expert_sizes(repaired)
    changes = {role.path(name): size for name, size in sizes.items() if size != getattr(role, name)}
    return placement_repair(subject, changes)


@check(
    "BKD-07",
    "training experts fit the data-parallel ranks",
    area="backend",
    rule="Megatron, etp == tp: (W/(tp*pp*cp)) % ep == 0",
    prevents="ep=3 of dp=16 passes every stage up to marin-core 0.2.210 and fails when the model is built.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-07 (#56); nobody up to 0.2.210, Marin later",
)
def bkd_07(subject: PreflightSubject) -> Iterator[Finding]:
    for role in megatron_roles(subject):
        if not role.whole or role.etp != role.tp:
            continue
        ranks = role.world // role.model_parallel
        if ranks % role.ep:
            yield Finding(
                path=role.path("ep"),
                message=f"{role.name}: training ep={role.ep} does not divide dp={ranks} "
                f"({ranks} % {role.ep} = {ranks % role.ep}). Use one of {listed(divisors(ranks))}",
                repair=_expert_repair(role),
            )


@check(
    "BKD-08",
    "expert groups fill the role",
    area="backend",
    rule="Megatron: W % (etp*ep*pp) == 0; an etp of null counts as tp",
    prevents="The process groups of the experts cannot be formed.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-08 (#57), case n91; nobody checks it, it dies in Megatron",
)
def bkd_08(subject: PreflightSubject) -> Iterator[Finding]:
    for role in megatron_roles(subject):
        size = role.expert_parallel
        if role.whole and role.world % size:
            yield Finding(
                path=role.path("ep"),
                message=f"{role.name}: world {role.world} is not divisible by etp*ep*pp={role.etp}*{role.ep}*{role.pp}="
                f"{size} ({role.world} % {size} = {role.world % size})",
                repair=_expert_repair(role),
            )


def _expert_repair(role: MegatronRole) -> str:
    """The repair to `_expert_sizes`."""
    sizes = _expert_sizes(role)
    return also(
        *(set_to(role.path(name), size) for name, size in sizes.items() if size != getattr(role, name))
    )


def _expert_sizes(role: MegatronRole) -> dict[str, int]:
    """The nearest ep that fits a whole role; etp becomes tp only if no ep fits it."""
    etp = role.tp if role.world % (role.etp * role.pp) else role.etp
    groups = role.world // (etp * role.pp)
    ranks = role.world // role.model_parallel
    valid = [ep for ep in divisors(groups) if etp != role.tp or ranks % ep == 0]
    sizes = {"ep": nearest(valid, role.ep)}
    return sizes if role.etp_is_tp else {"etp": etp} | sizes


@check(
    "BKD-12",
    "tensor and expert parallelism together have sequence parallelism",
    area="backend",
    rule="Megatron, MoE, policy with tp > 1 and ep > 1: sequence_parallel is on, by itself or in transformer_config_kwargs",
    prevents="An assertion in Megatron when training starts.",
    inputs=("spec", "model", "runtime"),
    source="catalogue BKD-12 (#61); nobody checks it. Megatron-Core refuses to train such experts without it",
)
def bkd_12(subject: PreflightSubject) -> Iterator[Finding]:
    for role in megatron_roles(subject)[:1]:
        if role.tp == 1 or role.ep == 1:
            continue
        card = subject.model
        if card is not None and "num_experts" in card.model_fields_set and card.num_experts is None:
            continue  # A dense model has no experts to split (BKD-28).
        declared = subject.get(_SEQUENCE_PARALLEL)
        automatic = subject.manifest().megatron_sequence_parallel_with_tp
        if declared is None and automatic is None:
            raise MissingFact("megatron_sequence_parallel_with_tp in the runtime manifest")
        if declared is False or (declared is None and not automatic):
            yield Finding(
                path=_SEQUENCE_PARALLEL,
                message=f"tp={role.tp} with ep={role.ep} on an MoE needs megatron sequence_parallel, it is "
                + ("false" if declared is False else "off in this runtime"),
                repair=set_to(_SEQUENCE_PARALLEL, True),
            )


@check(
    "BKD-32",
    "Megatron context parallelism has packed samples",
    area="backend",
    rule="Megatron: context_parallel_size > 1 implies use_sample_packing: true, for policy and active reference",
    prevents="The trainer refuses the run after the GPUs were allocated.",
    inputs=("spec", "runtime"),
    source="case n88 (survey #54); the trainer",
)
def bkd_32(subject: PreflightSubject) -> Iterator[Finding]:
    for role in megatron_roles(subject):
        if role.cp > 1 and not subject.flag(_PACKING):
            yield Finding(
                path=role.path("cp"),
                message=f"{role.name}: megatron context_parallel_size={role.cp} needs use_sample_packing: true, it is false",
                repair=set_to(_PACKING, True),
            )
            return


@check(
    "BKD-33",
    "sizes of the trained roles are positive",
    area="backend",
    rule="every parallel size and micro batch below trainer is > 0; fsdp_size is -1 or > 0",
    prevents="A division by zero, or empty groups.",
    inputs=("spec",),
    source="catalogue GEO-01 (#16) for the sizes that no role plan holds; nobody checks them at build time",
)
def bkd_33(subject: PreflightSubject) -> Iterator[Finding]:
    sizes = [
        f"skyrl.trainer.{role}.{size}"
        for role in TRAINED_ROLES
        for size in (
            "sequence_parallel_size",
            *(f"fsdp_config.{name}" for name in ("context_parallel_size", *_EXPERT_SIZES, "fsdp_size")),
            *(f"megatron_config.{name}" for name in _MEGATRON_SIZES),
        )
    ]
    # The trainer divides by the first whether there is a critic or not, and asserts the second.
    sizes += [f"skyrl.trainer.critic.{size}" for size in ("sequence_parallel_size", _FSDP_CONTEXT)]
    for path in ("skyrl.trainer.micro_forward_batch_size_per_gpu", *sizes):
        value = subject.get(path)
        unsplit = -1 if path.endswith(".fsdp_size") else 1
        # A value of another type is the business of the recipe's schema, which is sure of all but one.
        sure = type(value) is int or (path.endswith(_OF_UNSURE_TYPE) and not isinstance(value, str))
        if value is None or not sure or is_count(value):
            continue
        if type(value) is not int or value != unsplit:
            limit = f" of at most {MAX_COUNT}" if type(value) is int and value > 0 else ""
            yield Finding(
                path=path,
                message=f"{path.rpartition('.')[2]} must be a positive integer{limit}, got {shown(value)}",
                repair=set_to(path, unsplit),
            )


_OF_UNSURE_TYPE = "megatron_config.expert_tensor_parallel_size"
"""Its default is null, so that OBJ-20 only warns of a value of another type."""
_FSDP_CONTEXT = "fsdp_config.context_parallel_size"
_EXPERT_SIZES = ("expert_model_parallel_size", "expert_tensor_parallel_size")
_MEGATRON_SIZES = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    *_EXPERT_SIZES,
)


@check(
    "BKD-38",
    "the activations of a model are recomputed in a way that Megatron knows",
    area="backend",
    rule="Megatron: recompute_granularity is full or selective; full has recompute_method uniform or block; selective "
    "has no recompute_num_layers",
    prevents="Megatron refuses the configuration when the model is built. A recipe cannot unset the base "
    "configuration's recompute_num_layers with null.",
    inputs=("spec", "runtime"),
    source="Megatron-Core TransformerConfig; defaults of megatron_config/policy.yaml@00bc76b4",
)
def bkd_38(subject: PreflightSubject) -> Iterator[Finding]:
    if Geometry.of(subject).strategy != "megatron" or not subject.flag(
        "skyrl.trainer.gradient_checkpointing"
    ):
        return
    paths = {name: f"{_POLICY_KWARGS}.recompute_{name}" for name in ("granularity", "method", "num_layers")}
    granularity = subject.text(paths["granularity"])
    if granularity not in ("full", "selective"):
        yield Finding(
            path=paths["granularity"],
            message=f"recompute_granularity {shown(granularity)} is unknown. Known: full, selective",
            repair=set_to(paths["granularity"], "full", "selective"),
        )
        return
    if granularity == "full":
        method = subject.text(paths["method"])
        if method not in ("uniform", "block"):
            yield Finding(
                path=paths["method"],
                message=f"recompute_method {shown(method)} is unknown. Known: uniform, block",
                repair=set_to(paths["method"], "uniform", "block"),
            )
        return
    yield Finding(
        path=paths["granularity"],
        message="recompute_granularity selective takes no recompute_num_layers, and the base configuration's 1 stays: "
        "null in a recipe does not unset it",
        repair=set_to(paths["granularity"], "full"),
        severity="warning",
    )


@check(
    "BKD-39",
    "the offloaded part of the optimizer is a fraction",
    area="backend",
    rule="optimizer_offload_fraction in [0, 1]; with optimizer_cpu_offload it is > 0",
    prevents="A share that does not exist, or an offload of nothing.",
    inputs=("spec", "runtime"),
    source="megatron_config/policy.yaml@00bc76b4 (keys and defaults)",
)
def bkd_39(subject: PreflightSubject) -> Iterator[Finding]:
    if Geometry.of(subject).strategy != "megatron":
        return
    fraction = subject.value(_OFFLOAD_FRACTION, int, float)
    offloads = subject.flag(f"{megatron_config('policy')}.optimizer_config_kwargs.optimizer_cpu_offload")
    if not 0 <= fraction <= 1:
        yield Finding(
            path=_OFFLOAD_FRACTION,
            message=f"optimizer_offload_fraction must be in [0, 1], got {shown(fraction)}"
            + ("" if offloads else " (optimizer_cpu_offload is off, so that nothing reads it)"),
            repair=set_to(_OFFLOAD_FRACTION, 1),
            severity="error" if offloads else "warning",
        )
    elif fraction == 0 and offloads:
        yield Finding(
            path=_OFFLOAD_FRACTION,
            message="optimizer_cpu_offload is on, but optimizer_offload_fraction 0 offloads nothing",
            repair=set_to(_OFFLOAD_FRACTION, 1),
            severity="warning",
        )


@check(
    "BKD-41",
    "tensor-parallel groups stay on a node",
    area="backend",
    rule="Megatron: gpus_per_node % tp == 0",
    prevents="Every layer's all-reduce crosses the network: training is many times slower.",
    inputs=("spec", "runtime"),
    source="Megatron-LM's rule of thumb (Narayanan et al. 2021, §3); the same split of an engine is GEO-03",
)
def bkd_41(subject: PreflightSubject) -> Iterator[Finding]:
    for role in megatron_roles(subject):
        width = Geometry.of(subject).policy_gpus_per_node
        if role.whole and width % role.tp:
            yield Finding(
                path=role.path("tp"),
                message=f"{role.name}: groups of tp={role.tp} do not tile {counted(width, 'GPU')} per node, so their "
                f"all-reduces cross nodes. Sizes that do: {listed(divisors(width))}",
                repair=set_to(role.path("tp"), role.nearest_size("tp", divisors(width))),
                severity="warning",
            )


CHECKS = (
    bkd_05,
    bkd_06,
    bkd_07,
    bkd_08,
    bkd_12,
    bkd_32,
    bkd_33,
    bkd_38,
    bkd_39,
    bkd_41,
)
