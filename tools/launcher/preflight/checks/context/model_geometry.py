"""The engine's parallel sizes against the model's heads and experts."""

from collections.abc import Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.engine_sizes import DP, EP, TP, tensor_repair
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry, divisors, nearest
from tools.launcher.preflight.objectives import takes_routes_with_dcp
from tools.launcher.preflight.subject import PreflightSubject, is_count
from tools.launcher.preflight.wording import counted, delete, listed, set_to, shown

_DCP = "skyrl.generator.inference_engine_decode_context_parallel_size"
_HEADS = "skyrl.model_num_attention_heads"
_CAPTURE = "skyrl.generator.engine_init_kwargs.enable_return_routed_experts"
_REPLAY = ("fsdp_config.moe_router_replay", "megatron_config.moe_router_replay")


def _model_name(subject: PreflightSubject) -> str:
    return f" of {subject.model.name}" if subject.model is not None else ""


def _card_heads(subject: PreflightSubject) -> int | None:
    return subject.model.num_attention_heads if subject.model is not None else None


def _known(subject: PreflightSubject, name: str) -> int:
    """Return a count of the model card, which must not be null."""
    value: int | None = subject.model_fact(name)
    if value is None:
        raise MissingFact(f"{name} in the model card")
    return value


def _latent(subject: PreflightSubject) -> bool:
    """Whether the model has one latent instead of KV heads."""
    architecture = (subject.model.architecture if subject.model is not None else None) or ""
    words = subject.runtime.latent_attention_architectures if subject.runtime is not None else ()
    return any(word in architecture.lower() for word in words)


def _kv_fits(tensor: int, kv: int) -> bool:
    return kv % tensor == 0 or tensor % kv == 0


def _tensor_sizes(subject: PreflightSubject, heads: int | None, *, splits_experts: bool) -> list[int]:
    """Return every TP that suits what is known of the model, in rising order."""
    card = subject.model
    kv = card.num_key_value_heads if card is not None and not _latent(subject) else None
    inner = card.moe_intermediate_size if card is not None and card.num_experts is not None else None
    return [
        size
        for size in divisors(heads or kv or inner or 1)
        if (kv is None or _kv_fits(size, kv)) and (not splits_experts or inner is None or inner % size == 0)
    ]


def _with_experts(subject: PreflightSubject, geometry: Geometry, sizes: list[int]) -> list[int]:
    """Return the TP of `sizes` over which the experts divide as well, where an engine spreads them (EP = TP*DP)."""
    experts, ranks = subject.model.num_experts if subject.model is not None else None, subject.get(DP)
    if experts is None or geometry.engine_ep == 1 or not is_count(ranks):
        return sizes
    return [size for size in sizes if experts % (size * ranks) == 0] or sizes


@check(
    "CTX-08",
    "the engine's tensor parallelism divides the attention heads",
    area="context",
    rule="attention heads % TP == 0; heads from the model card; model_num_attention_heads, if declared, agrees",
    prevents="The engine hangs at start; the launcher looks only if the recipe declares the number.",
    inputs=("spec", "model"),
    source="catalogue CTX-08 (#81), failure rows 16 and 52 (vllm#11797); the launcher, opt-in",
)
def ctx_08(subject: PreflightSubject) -> Iterator[Finding]:
    declared = subject.get(_HEADS)
    if declared is not None and not is_count(declared):
        yield Finding(
            path=_HEADS,
            message=f"model_num_attention_heads must be a positive integer, got {shown(declared)}",
            repair=delete(_HEADS),
        )
        declared = None
    known = _card_heads(subject)
    if known is not None and declared is not None and declared != known:
        yield Finding(
            path=_HEADS,
            message=f"model_num_attention_heads={declared}, the model card says {known}{_model_name(subject)}",
            repair=set_to(_HEADS, known),
        )
    heads = known or declared
    if heads is None:
        heads = _known(subject, "num_attention_heads")
    geometry = Geometry.of(subject)
    tensor = geometry.engine_tp
    if heads % tensor:
        valid = _tensor_sizes(subject, heads, splits_experts=False)
        yield Finding(
            path=TP,
            message=f"TP={tensor} does not divide {counted(heads, 'attention head')}{_model_name(subject)}. "
            f"Valid: {listed(valid)}",
            repair=tensor_repair(subject, _with_experts(subject, geometry, valid)),
        )


@check(
    "CTX-09",
    "the engine can share out KV heads and experts",
    area="context",
    rule="KV heads % TP == 0 or TP % KV heads == 0; experts % EP == 0, EP == 1 on a dense model; EP == 1 on experts: "
    "moe_intermediate_size % TP == 0",
    prevents="The engine does not start.",
    inputs=("spec", "model"),
    source="catalogue CTX-09 (#82), failure row 53 (vllm#52435); nobody checks it",
)
def ctx_09(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    missing: list[MissingFact] = []
    for problems in (_expert_problems(subject, geometry), _kv_problems(subject, geometry)):
        try:
            yield from problems
        except MissingFact as fact:
            missing.append(fact)
    if missing:
        raise missing[0]


def _kv_problems(subject: PreflightSubject, geometry: Geometry) -> Iterator[Finding]:
    tensor = geometry.engine_tp
    if tensor == 1 or _latent(subject):
        return
    kv = _known(subject, "num_key_value_heads")
    if not _kv_fits(tensor, kv):
        valid = _tensor_sizes(subject, _card_heads(subject), splits_experts=geometry.engine_ep == 1)
        yield Finding(
            path=TP,
            message=f"TP={tensor} and {counted(kv, 'KV head')}{_model_name(subject)}: neither divides the other. "
            f"Valid TP: {listed(valid)}",
            repair=tensor_repair(subject, _with_experts(subject, geometry, valid)),
        )


def _expert_problems(subject: PreflightSubject, geometry: Geometry) -> Iterator[Finding]:
    expert, tensor = geometry.engine_ep, geometry.engine_tp
    if expert == 1 and tensor == 1:
        return
    experts = subject.model_fact("num_experts")
    if experts is None:
        if expert > 1:
            yield Finding(
                path=EP,
                message=f"EP={expert} on a dense model{_model_name(subject)}: there are no experts to share out",
                repair=set_to(EP, 1),
            )
    elif experts % expert:
        valid = divisors(experts)
        whole = [size for size in valid if size in (1, geometry.expert_group)]  # GEO-07
        yield Finding(
            path=EP,
            message=f"{experts} experts{_model_name(subject)} over EP={expert}. Valid EP: {listed(valid)}",
            repair=set_to(EP, nearest(whole, expert)),
        )
    elif expert == 1:
        inner = _known(subject, "moe_intermediate_size")
        if inner % tensor:
            valid = _tensor_sizes(subject, _card_heads(subject), splits_experts=True)
            yield Finding(
                path=TP,
                message=f"TP={tensor} splits the experts, whose intermediate size {inner} it does not divide. "
                f"Valid TP: {listed(valid)}",
                repair=tensor_repair(subject, _with_experts(subject, geometry, valid)),
            )


@check(
    "CTX-10",
    "decode context parallelism fits inside tensor parallelism",
    area="context",
    rule="dcp > 1: TP % dcp == 0, dcp <= TP // KV heads, vLLM, no routing replay or router capture without "
    "VLLM_ALLOW_ROUTED_EXPERTS_DCP=1",
    prevents="The trainer refuses the document after the GPUs were allocated.",
    inputs=("spec", "model", "runtime"),
    source="catalogue CTX-10 (#83), MarinSkyRL skyrl_train/utils/utils.py@004e15f9; the trainer",
)
def ctx_10(subject: PreflightSubject) -> Iterator[Finding]:
    decode = subject.integer(_DCP)
    if decode < 1:
        yield Finding(path=_DCP, message=f"dcp={decode} must be at least 1", repair=set_to(_DCP, 1))
    if decode <= 1:
        return
    backend = subject.text("skyrl.generator.backend")
    if backend != "vllm":
        yield Finding(
            path=_DCP,
            message=f"dcp={decode} needs backend vllm, got {shown(backend)}",
            repair=set_to(_DCP, 1),
        )
    strategy, captures = subject.text("skyrl.trainer.strategy"), []
    for name in _REPLAY:
        path = f"skyrl.trainer.policy.{name}"
        # The switch below fsdp_config counts for every strategy.
        if (name.startswith("fsdp") or strategy == "megatron") and subject.get(path) is True:
            captures.append(f"routing replay (trainer.policy.{name})")
    if subject.get(_CAPTURE):
        captures.append(f"router capture ({_CAPTURE.removeprefix('skyrl.')})")
    for capture in () if takes_routes_with_dcp(subject) else captures:
        yield Finding(path=_DCP, message=f"dcp={decode} does not go with {capture}", repair=set_to(_DCP, 1))
    tensor = Geometry.of(subject).engine_tp
    if tensor % decode:
        valid = divisors(tensor)
        yield Finding(
            path=_DCP,
            message=f"dcp={decode} does not divide TP={tensor}. Valid: {listed(valid)}",
            repair=set_to(_DCP, 1),
        )
        return
    kv = 1 if _latent(subject) else _known(subject, "num_key_value_heads")
    most = max(1, tensor // kv)
    if decode > most:
        yield Finding(
            path=_DCP,
            message=f"dcp={decode} needs TP >= {decode}*{kv}={decode * kv}, TP is {tensor}: dcp may be at most {most}",
            repair=set_to(_DCP, max(size for size in divisors(tensor) if size <= most)),
        )


CHECKS = (ctx_08, ctx_09, ctx_10)
