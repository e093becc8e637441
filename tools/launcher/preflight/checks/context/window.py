"""The window against the model's positions and the engine's batches."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry, ceil_div
from tools.launcher.preflight.lengths import window, window_of, window_path
from tools.launcher.preflight.schedule import trains
from tools.launcher.preflight.subject import MAX_COUNT, PreflightSubject, UnreadableValue, is_count
from tools.launcher.preflight.wording import also, delete, set_to, shown

_GENERATOR = "skyrl.generator"
_CHUNKED = f"{_GENERATOR}.enable_chunked_prefill"
_BATCHED_TOKENS = f"{_GENERATOR}.max_num_batched_tokens"
_SEQUENCES = f"{_GENERATOR}.max_num_seqs"
_OVERRIDES = f"{_GENERATOR}.engine_init_kwargs.hf_overrides"
_POSITIONS = f"{_OVERRIDES}.max_position_embeddings"
_TRAINER_ROPE = "skyrl.trainer.rope_scaling"
_ENGINE_ROPE = f"{_GENERATOR}.rope_scaling"
_OVERRIDDEN_ROPES = (f"{_OVERRIDES}.rope_scaling", f"{_OVERRIDES}.rope_parameters")

_NOT_MULTIPLIED = ("default", "llama3", "longrope", "mrope", "su")
"""Kinds of rope scaling whose factor vLLM does not multiply the positions with."""


class _Rope(NamedTuple):
    """Rope scaling as it is written."""

    path: str
    kind: Any
    factor: float
    original: int | None
    """Positions before scaling; None: the model's own."""

    def reach(self, positions: int) -> int:
        """Positions after scaling."""
        if isinstance(self.kind, str) and self.kind in _NOT_MULTIPLIED:
            return positions
        return int((self.original or positions) * self.factor)

    def differs_from(self, other: "_Rope") -> bool:
        """Whether both cannot mean the same."""
        originals = {self.original, other.original} - {None}
        return self.kind != other.kind or self.factor != other.factor or len(originals) > 1


def _rope_at(subject: PreflightSubject, path: str) -> _Rope | None:
    """Return the rope scaling at `path`: None where there is none, or where it only sets the base frequency."""
    value = subject.get(path)
    if value is None or value == {}:
        return None
    if not isinstance(value, dict):
        raise UnreadableValue(f"{path} as a mapping, it is {shown(value)}")
    kind: Any = value.get("rope_type", value.get("type"))
    factor: Any = value.get("factor")
    if factor is None and (path.endswith("rope_parameters") or kind == "default"):
        return None
    if type(factor) not in (int, float) or not 0 < factor <= MAX_COUNT:
        raise UnreadableValue(f"{path}.factor as a positive number, it is {shown(factor)}")
    original = value.get("original_max_position_embeddings")
    if original is not None and not is_count(original):
        raise UnreadableValue(
            f"{path}.original_max_position_embeddings as a positive integer, it is {shown(original)}"
        )
    return _Rope(path, kind, factor, original)


def _engine_rope(subject: PreflightSubject) -> _Rope | None:
    for path in _OVERRIDDEN_ROPES:
        rope = _rope_at(subject, path)
        if rope is not None:
            return rope
    # Left out, it follows the trainer's; the launcher also skips null and {} of a recipe.
    follows = not subject.get(_ENGINE_ROPE) if subject.source_form else not subject.declares(_ENGINE_ROPE)
    return _rope_at(subject, _TRAINER_ROPE if follows else _ENGINE_ROPE)


def _override(subject: PreflightSubject) -> int | None:
    value = subject.get(_POSITIONS)
    if value is None:
        return None
    if not is_count(value):
        raise UnreadableValue(f"{_POSITIONS} as a positive integer, it is {shown(value)}")
    return int(value)


@check(
    "CTX-04",
    "the model has positions for the window",
    area="context",
    rule="W <= max_position_embeddings, or what hf_overrides and rope_scaling make of it; engine and trainer scale "
    "alike; a warning where hf_overrides.max_position_embeddings widens the engine alone",
    prevents="The engine refuses the window, or training uses positions that the model never saw.",
    inputs=("spec", "model"),
    source="catalogue CTX-04 (#77), contract clusters-and-models.md §2.1; nobody checks it",
)
def ctx_04(subject: PreflightSubject) -> Iterator[Finding]:
    engine, trainer = _engine_rope(subject), _rope_at(subject, _TRAINER_ROPE)
    if engine is not None and (trainer is None or engine.differs_from(trainer)):
        # Only scaling of the engine alone is read here: without its own it follows the trainer.
        theirs = "the trainer has none" if trainer is None else f"{_TRAINER_ROPE} is another"
        yield Finding(
            path=engine.path,
            message=f"{engine.path.removeprefix('skyrl.')} scales the engine's positions by "
            f"{shown(engine.factor)}, {theirs}: both must scale alike",
            repair=_rope_of_both(subject, engine.path) if trainer is None else delete(engine.path),
        )
    elif trainer is not None and engine is None:
        yield Finding(
            path=_TRAINER_ROPE,
            message=f"trainer.rope_scaling scales by {shown(trainer.factor)}, the engine does not: both must scale "
            "alike",
            repair=delete(_TRAINER_ROPE),
        )
    override = _override(subject)
    tokens = window(subject)
    if override is not None:
        positions, whose = override, "that hf_overrides.max_position_embeddings gives the engine"
    else:
        positions, whose = subject.model_fact("max_position_embeddings"), "of the model"
        if positions is None:
            raise MissingFact("max_position_embeddings in the model card")
    reach = positions if engine is None else engine.reach(positions)
    if tokens <= reach:
        if override is not None:
            yield from _engine_alone_widened(subject, tokens, trainer)
        return
    scaled = "" if engine is None else f", scaled to {reach} by {engine.path.removeprefix('skyrl.')}"
    factor = ceil_div(tokens * 100, positions) / 100
    yield Finding(
        path=window_path(subject),
        message=f"window {tokens} exceeds the {positions} positions {whose}{scaled}. Reduce it, or scale by "
        f"trainer.rope_scaling with a factor of at least {factor:g}",
        repair=window_of(subject, max(1, reach)),
    )


def _rope_of_both(subject: PreflightSubject, path: str) -> str:
    """Return the repair that gives the trainer the engine's scaling; in source form the engine then follows."""
    settings = subject.get(path)
    plain = all(
        isinstance(key, str) and key.isidentifier() and isinstance(value, int | float | str) and value != ""
        for key, value in settings.items()
    )
    if not plain:
        return delete(path)
    theirs = [set_to(f"{_TRAINER_ROPE}.{key}", value) for key, value in settings.items()]
    return also(*theirs, delete(path)) if subject.source_form else also(*theirs)


def _engine_alone_widened(subject: PreflightSubject, tokens: int, trainer: _Rope | None) -> Iterator[Finding]:
    own: int | None = subject.model_fact("max_position_embeddings")
    if own is None:
        raise MissingFact("max_position_embeddings in the model card")
    reach = own if trainer is None else trainer.reach(own)
    if tokens > reach:
        yield Finding(
            path=_POSITIONS,
            message=f"hf_overrides.max_position_embeddings widens the engine alone: the trainer has {reach} positions for "
            f"the window {tokens}. Scale both by trainer.rope_scaling with a factor of at least "
            f"{ceil_div(tokens * 100, own) / 100:g}",
            repair=window_of(subject, reach),
            severity="warning",
        )


@check(
    "CTX-06",
    "a whole prompt fits one prefill",
    area="context",
    rule="vLLM, enable_chunked_prefill false: max_num_batched_tokens >= W",
    prevents="The engine does not start; the base default is 8192.",
    inputs=("spec", "runtime"),
    source="catalogue CTX-06 (#79), failure rows 34 (verl#7624) and 59 (trl#3788); nobody checks it",
)
def ctx_06(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.flag(_CHUNKED) or subject.text(f"{_GENERATOR}.backend") != "vllm":
        return
    batched, tokens = subject.positive(_BATCHED_TOKENS), window(subject)
    if batched < tokens:
        yield Finding(
            path=_BATCHED_TOKENS,
            message=f"max_num_batched_tokens={batched} < window {tokens} without chunked prefill. Raise it, or set "
            "enable_chunked_prefill=true",
            repair=set_to(_BATCHED_TOKENS, tokens),
        )


@check(
    "CTX-18",
    "every running sequence gets a token",
    area="context",
    rule="vLLM: max_num_batched_tokens >= max_num_seqs",
    prevents="The engine does not start.",
    inputs=("spec", "runtime"),
    source="catalogue CTX-18 (new), low confidence; nobody checks it",
)
def ctx_18(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.text(f"{_GENERATOR}.backend") != "vllm":
        return
    batched, sequences = subject.positive(_BATCHED_TOKENS), subject.positive(_SEQUENCES)
    if sequences > batched:
        yield Finding(
            path=_SEQUENCES,
            message=f"max_num_seqs={sequences} > max_num_batched_tokens={batched}",
            repair=set_to(_SEQUENCES, batched),
            severity="warning",
        )


@check(
    "CTX-19",
    "positions are scaled only where the window needs it",
    area="context",
    rule="W <= max_position_embeddings: no rope_scaling, no hf_overrides that widens",
    prevents="Positions are rescaled for nothing; quality falls.",
    inputs=("spec", "model"),
    source="catalogue CTX-19 (new); nobody checks it",
)
def ctx_19(subject: PreflightSubject) -> Iterator[Finding]:
    paths = [
        path
        for path in (_TRAINER_ROPE, _ENGINE_ROPE, *_OVERRIDDEN_ROPES)
        if _rope_at(subject, path) is not None
    ]
    override = _override(subject)
    if not paths and override is None:
        return
    positions, tokens = subject.model_fact("max_position_embeddings"), window(subject)
    if positions is None or tokens > positions:
        return
    if override is not None and override > positions:
        paths.append(_POSITIONS)
    for path in paths:
        yield Finding(
            path=path,
            message=f"the model supports {positions} positions >= window {tokens}: "
            f"{path.removeprefix('skyrl.')} is not needed",
            repair=delete(path),
            severity="warning",
        )


@check(
    "CTX-22",
    "one sequence fits a micro batch",
    area="context",
    rule="runtimes with a token cap per GPU: cap >= W",
    prevents="One sequence fits no micro batch.",
    inputs=("spec", "runtime"),
    source="catalogue CTX-22 (new), failure row 58 (Trinity-RFT#398); nobody checks it",
)
def ctx_22(subject: PreflightSubject) -> Iterator[Finding]:
    manifest = subject.manifest()
    if "token_cap_per_gpu" not in manifest.model_fields_set:
        raise MissingFact("token_cap_per_gpu in the runtime manifest")
    cap = manifest.token_cap_per_gpu
    if cap is None:
        return
    path = window_path(subject) if isinstance(cap, int) else f"skyrl.{cap}"
    limit = cap if isinstance(cap, int) else subject.positive(path)
    tokens = window(subject)
    if limit < tokens:
        owner = "of the runtime" if isinstance(cap, int) else cap
        yield Finding(
            path=path,
            message=f"token cap {limit} ({owner}) is below the window {tokens}",
            repair=window_of(subject, limit) if isinstance(cap, int) else set_to(path, tokens),
        )


@check(
    "CTX-23",
    "sequences split evenly between training ranks",
    area="context",
    rule="Megatron workers of a runtime that does not pad: W % (2*tp*cp) == 0 where cp > 1, else W % tp == 0",
    prevents="The split of a sequence is uneven.",
    inputs=("spec", "runtime"),
    source="catalogue CTX-23 (new), low confidence; nobody checks it",
)
def ctx_23(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if geometry.strategy != "megatron" or not trains(subject):
        return
    tokens = window(subject)
    for role in ("policy", "ref") if geometry.reference_active else ("policy",):
        base = f"skyrl.trainer.{role}.megatron_config."
        tensor = subject.positive(base + "tensor_model_parallel_size")
        context = subject.positive(base + "context_parallel_size")
        multiple = tensor * context * 2 if context > 1 else tensor
        if tokens % multiple == 0:
            continue
        pads = subject.manifest().pads_sequences
        if pads is None:
            raise MissingFact("pads_sequences in the runtime manifest")
        if not pads:
            yield Finding(
                path=window_path(subject),
                message=f"window {tokens} is not a multiple of {multiple} ({role}: tp={tensor}, cp={context}), and "
                "this runtime does not pad",
                repair=window_of(subject, ceil_div(tokens, multiple) * multiple),
            )


CHECKS = (ctx_04, ctx_06, ctx_18, ctx_19, ctx_22, ctx_23)
