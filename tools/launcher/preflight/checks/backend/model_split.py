"""How the model's layers, heads and experts are split, against the model card."""

from collections.abc import Iterator
from typing import NamedTuple

from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.backend.roles import (
    MegatronRole,
    active_roles,
    fsdp_config,
    megatron_config,
    megatron_roles,
)
from tools.launcher.preflight.checks.geometry.in_step import placement_repair
from tools.launcher.preflight.engine_sizes import PP, engine_changes
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry, divisors, nearest
from tools.launcher.preflight.memory import known_fact
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import also, counted, listed, set_to

_ENGINE = "skyrl.generator.inference_engine_"
_UNEVEN = {
    "first": "num_layers_in_first_pipeline_stage",
    "last": "num_layers_in_last_pipeline_stage",
}
_COUNTED_AS_LAYERS = ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")
_LAYOUT = "pipeline_model_parallel_layout"


@check(
    "BKD-09",
    "layers fill the pipeline stages",
    area="backend",
    rule="Megatron: layers % pp == 0; with first/last stage layers given: (layers-first-last) % (pp-2) == 0, pp-1 if only "
    "one is given",
    prevents="Megatron refuses to split the model.",
    inputs=("spec", "model", "runtime"),
    source="catalogue BKD-09 (#58), case n16; nobody checks it",
)
def bkd_09(subject: PreflightSubject) -> Iterator[Finding]:
    roles = [role for role in megatron_roles(subject) if role.pp > 1]
    if not roles:
        return
    layers = known_fact(subject, "num_hidden_layers")
    for role in roles:
        if role.pp <= layers:  # BKD-28
            yield from _stage_problem(subject, role, layers)


def _stage_problem(subject: PreflightSubject, role: MegatronRole, layers: int) -> Iterator[Finding]:
    kwargs = f"{megatron_config(role.name)}.transformer_config_kwargs"
    if subject.has(f"{kwargs}.{_LAYOUT}"):
        return  # Every stage is written out.
    places = {end: f"{kwargs}.{name}" for end, name in _UNEVEN.items()}
    given = {end: subject.positive(path) for end, path in places.items() if subject.has(path)}
    extra = sum(subject.get(f"{kwargs}.{name}") is True for name in _COUNTED_AS_LAYERS)
    stages, rest = role.pp - len(given), layers + extra - sum(given.values())
    if (rest > 0 and rest % stages == 0) if stages > 0 else rest == 0:
        return
    valid = [pp for pp in divisors(layers) if role.world % (role.tp * pp * role.cp) == 0] or [1]
    as_stages = [set_to(f"{kwargs}.{name}", False) for name in _COUNTED_AS_LAYERS] if extra else []
    pp = role.nearest_size("pp", valid)
    if given:
        ends = " and ".join(f"{count} in the {end} stage" for end, count in given.items())
        yield Finding(
            path=role.path("pp"),
            message=f"{role.name}: {layers} layers over pp={role.pp} with {ends}: {rest} layers do not fill "
            f"{counted(stages, 'stage')} evenly",
            repair=also(
                *(set_to(places[end], "null") for end in given),
                *as_stages,
                *([set_to(role.path("pp"), pp)] if pp != role.pp else []),
            ),
        )
        return
    counts = f"{layers} layers" + (f" and {extra} counted as layers" if extra else "")
    yield Finding(
        path=role.path("pp"),
        message=f"{role.name}: {counts} over pp={role.pp} stages ({rest} % {role.pp} = {rest % role.pp}). "
        f"Use pp from {listed(valid)}, or give the layers of the first or last stage",
        repair=also(set_to(role.path("pp"), pp), *as_stages),
    )


@check(
    "BKD-10",
    "tensor parallelism divides the attention heads in training",
    area="backend",
    rule="Megatron: heads % tp == 0; kv % tp == 0, or tp % kv == 0 where the runtime replicates KV heads",
    prevents="The split of attention fails when the model is built.",
    inputs=("spec", "model", "runtime"),
    source="catalogue BKD-10 (#59); nobody checks it. Megatron-Core asks kv % tp == 0",
)
def bkd_10(subject: PreflightSubject) -> Iterator[Finding]:
    roles = [role for role in megatron_roles(subject) if role.tp > 1]
    if not roles:
        return
    heads = known_fact(subject, "num_attention_heads")
    fitting = [role for role in roles if role.tp <= heads]  # BKD-28
    for role in fitting:
        if heads % role.tp:
            yield _heads_finding(
                role, heads, f"{role.name}: tp={role.tp} does not divide {heads} attention heads"
            )
    kv = subject.model_fact("num_key_value_heads")
    if kv is None:
        return
    replicates = subject.manifest().megatron_replicates_kv_heads
    for role in fitting:
        if heads % role.tp == 0 and kv % role.tp:
            yield from _kv_problem(role, heads, kv, replicates)


def _kv_problem(role: MegatronRole, heads: int, kv: int, replicates: bool | None) -> Iterator[Finding]:
    message = f"{role.name}: tp={role.tp}: {heads} heads, {counted(kv, 'KV head')} ({kv} % {role.tp} = {kv % role.tp}"
    if role.tp % kv:
        message += f" and {role.tp} % {kv} = {role.tp % kv})"
        yield _heads_finding(role, heads, message, kv)
    elif replicates is False:
        yield _heads_finding(role, heads, f"{message}), and this runtime does not replicate KV heads", kv)
    elif replicates is None:
        finding = _heads_finding(
            role, heads, f"{message}): whether this runtime replicates KV heads is not known", kv
        )
        yield finding.model_copy(update={"severity": "warning"})


def _heads_finding(role: MegatronRole, heads: int, message: str, kv: int | None = None) -> Finding:
    valid = [tp for tp in divisors(heads) if kv is None or kv % tp == 0]
    return Finding(
        path=role.path("tp"),
        message=f"{message}. Valid tp: {listed(valid)}",
        repair=set_to(role.path("tp"), role.nearest_size("tp", valid)),
    )


class _ExpertSplit(NamedTuple):
    role: str
    path: str
    size: int
    fits: list[int]
    """Sizes that the role's GPUs allow."""


def _expert_splits(subject: PreflightSubject) -> list[_ExpertSplit]:
    """The training-side expert-parallel sizes above 1 that the strategy reads."""
    geometry = Geometry.of(subject)
    if geometry.strategy == "megatron":
        splits = [
            _ExpertSplit(role.name, role.path("ep"), role.ep, _ranks(role))
            for role in megatron_roles(subject)
        ]
    elif geometry.strategy in ("fsdp", "fsdp2"):
        paths = [
            (role, world, f"{fsdp_config(role)}.expert_model_parallel_size")
            for role, world in active_roles(geometry)
        ]
        splits = [
            _ExpertSplit(role, path, subject.positive(path), divisors(world)) for role, world, path in paths
        ]
    else:
        splits = []
    return [split for split in splits if split.size > 1]


def _ranks(role: MegatronRole) -> list[int]:
    return divisors(role.world // role.model_parallel) if role.whole else [1]


@check(
    "BKD-11",
    "training experts are shared out evenly",
    area="backend",
    rule="experts % ep == 0, for policy and active reference",
    prevents="The experts cannot be shared out.",
    inputs=("spec", "model", "runtime"),
    source="catalogue BKD-11 (#60); nobody checks it",
)
def bkd_11(subject: PreflightSubject) -> Iterator[Finding]:
    splits = _expert_splits(subject)
    if not splits:
        return
    experts = subject.model_fact("num_experts")
    if experts is None:
        return  # BKD-28
    for split in splits:
        if split.size <= experts and experts % split.size:
            valid = divisors(experts)
            yield Finding(
                path=split.path,
                message=f"{split.role}: {experts} experts over ep={split.size} ({experts} % {split.size} = "
                f"{experts % split.size}). Valid: {listed(valid)}",
                repair=set_to(
                    split.path, nearest([ep for ep in valid if ep in split.fits] or [1], split.size)
                ),
            )


@check(
    "BKD-28",
    "no parallel size exceeds what it splits",
    area="backend",
    rule="pp <= layers, tp <= heads, ep <= experts in training, PP <= layers in an engine; a dense model has ep == 1 "
    "(CTX-09: and EP == 1)",
    prevents="An empty stage, or expert parallelism on a model without experts.",
    inputs=("spec", "model", "runtime"),
    source="catalogue BKD-28 (new), case n06; nobody checks it",
)
def bkd_28(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    roles = megatron_roles(subject)
    splits = _expert_splits(subject)
    engine_pp = geometry.engine_pp
    if splits:
        yield from _expert_excess(subject, splits)
    if engine_pp > 1 or any(role.pp > 1 for role in roles):
        layers = known_fact(subject, "num_hidden_layers")
        for role in roles:
            if role.pp > layers:
                yield Finding(
                    path=role.path("pp"),
                    message=f"{role.name}: pp={role.pp} exceeds {counted(layers, 'layer')}",
                    repair=set_to(role.path("pp"), role.nearest_size("pp", divisors(layers))),
                )
        if engine_pp > layers:
            yield Finding(
                path=PP,
                message=f"engine PP={engine_pp} exceeds {counted(layers, 'layer')}",
                repair=placement_repair(
                    subject, engine_changes(subject, pp=nearest(divisors(layers), engine_pp))
                ),
            )
    if any(role.tp > 1 for role in roles):
        heads = known_fact(subject, "num_attention_heads")
        for role in roles:
            if role.tp > heads:
                yield Finding(
                    path=role.path("tp"),
                    message=f"{role.name}: tp={role.tp} exceeds {counted(heads, 'attention head')}",
                    repair=set_to(role.path("tp"), role.nearest_size("tp", divisors(heads))),
                )


def _expert_excess(subject: PreflightSubject, splits: list[_ExpertSplit]) -> Iterator[Finding]:
    experts = subject.model_fact("num_experts")
    for split in splits:
        if experts is None:
            yield Finding(
                path=split.path,
                message=f"{split.role}: ep={split.size} on a dense model: there are no experts to share",
                repair=set_to(split.path, 1),
            )
        elif split.size > experts:
            fitting = [ep for ep in divisors(experts) if ep in split.fits] or [1]
            yield Finding(
                path=split.path,
                message=f"{split.role}: ep={split.size} exceeds {counted(experts, 'expert')}",
                repair=set_to(split.path, nearest(fitting, split.size)),
            )


@check(
    "BKD-29",
    "tensor parallelism divides the heads of linear attention",
    area="backend",
    rule="linear heads % TP == 0 in engines, and % tp == 0 under Megatron, for key and value heads",
    prevents="Engines or training stop at a dimension that the usual check of heads does not see.",
    inputs=("spec", "model", "runtime"),
    source="catalogue BKD-29 (new), contract clusters-and-models.md §2 (Qwen3-Next); nobody checks it",
)
def bkd_29(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    sizes = [("engine TP", f"{_ENGINE}tensor_parallel_size", geometry.engine_tp)]
    sizes += [(f"{role.name}: tp", role.path("tp"), role.tp) for role in megatron_roles(subject)]
    if all(size == 1 for _, _, size in sizes):
        return
    key, value = (subject.model_fact(f"linear_{kind}_heads") for kind in ("key", "value"))
    counts = {"key": key, "value": value}
    known = {kind: heads for kind, heads in counts.items() if heads is not None}
    for name, path, size in sizes:
        wrong = [f"{heads} linear {kind} heads" for kind, heads in known.items() if heads % size]
        if wrong:
            common = [tp for tp in divisors(min(known.values())) if not any(h % tp for h in known.values())]
            yield Finding(
                path=path,
                message=f"{name}={size} does not divide {' and '.join(wrong)}. Valid: {listed(common)}",
                repair=set_to(path, nearest(common, size)),
            )


@check(
    "BKD-40",
    "expert tensor parallelism divides the experts' width",
    area="backend",
    rule="Megatron, MoE: moe_intermediate_size % etp == 0, for policy and active reference",
    prevents="The split of an expert fails when the model is built.",
    inputs=("spec", "model", "runtime"),
    source="derived: Megatron-Core shares an expert's hidden units over etp ranks; nobody checks it",
)
def bkd_40(subject: PreflightSubject) -> Iterator[Finding]:
    roles = [role for role in megatron_roles(subject) if role.etp > 1]
    if not roles or subject.model_fact("num_experts") is None:
        return
    width = subject.model_fact("moe_intermediate_size")
    if width is None:
        return
    for role in roles:
        if width % role.etp:
            valid = divisors(width)
            fitting = [etp for etp in valid if role.world % (etp * role.ep * role.pp) == 0] or [1]
            yield Finding(
                path=role.path("etp"),
                message=f"{role.name}: etp={role.etp} does not divide the expert's width {width}",
                repair=set_to(role.path("etp"), nearest(fitting, role.etp)),
            )


CHECKS = (bkd_09, bkd_10, bkd_11, bkd_28, bkd_29, bkd_40)
