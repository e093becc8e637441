"""How much memory a launch needs: an estimate from below.

States of training with Adam in mixed precision: 2 bytes of weights, 2 of gradients, 12 of optimizer (weights,
momentum and variance in 32 bit) per parameter (contract, clusters-and-models.md §2.2; Rajbhandari et al. 2020,
ZeRO, §3.1). Activations of a transformer layer: 34 bytes per token and hidden unit, 2 if it is recomputed
(Korthikanti et al. 2023, Reducing Activation Recomputation, §4). Logits: 4 bytes per token and vocabulary entry
(failure row 46). KV cache: 2 vectors of head_dim per layer, KV head and token (Kwon et al. 2023, PagedAttention).

Uncertainty: buffers, fragmentation, CUDA contexts and gathered layers come on top, 10 to 30 % in practice; a
micro batch whose rows are shorter than the window needs less for activations and logits. One GB is 10^9 bytes.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.lengths import window
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.wording import shown

UNCERTAINTY = "an estimate from below: buffers and fragmentation add 10 to 30 %"
"""For messages and the plan."""

_WEIGHT, _GRADIENT, _OPTIMIZER = 2, 2, 12
"""Bytes per parameter."""
_LAYER, _RECOMPUTED = 34, 2
"""Bytes of activations per token and hidden unit."""
_LOGIT = 4
_FSDP = ("fsdp", "fsdp2")

_MEGATRON = "skyrl.trainer.policy.megatron_config"
_LORA_RANK = "skyrl.trainer.policy.model.lora.rank"
_BINARY_UNITS = {unit: 1024**power for power, unit in enumerate("KMGTP", start=1)}
_SIZE = re.compile(r"(\d{1,9})(?:\.(\d{1,9}))?\s*([KMGTP])i?B?", re.IGNORECASE)


class MemoryEstimate(BaseModel):
    """Bytes, at least. None where a fact is missing; `missing` names it."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    parameters: int | None
    """Weights on one GPU of the policy while it trains."""
    gradients: int | None
    optimizer_states: int | None
    activations: int | None
    """Of one micro batch that fills the window."""
    logits: int | None
    """Of one micro batch that fills the window, if they are not computed in chunks."""
    gpu_memory: int | None
    """What one GPU has."""
    engine_weights: int | None
    """On one GPU of a rollout engine."""
    engine_kv_cache: int | None
    """Of one sequence that fills the window, on one GPU of an engine."""
    engine_budget: int | None
    """gpu_memory_utilization of `gpu_memory`."""
    host_policy: int | None
    """On one node of the policy: what is offloaded of its optimizer, or of all its states."""
    host_reference: int | None
    """On one node: the reference's weights, where they are offloaded."""
    host_memory: int | None
    """Allocated on one node."""
    states_floor: int | None
    """All states over all of the policy's GPUs, the least that any sharding reaches."""
    missing: dict[str, str]
    """Component -> what it lacks, to be read after "not checked: needs "."""

    @property
    def states(self) -> int | None:
        """Parameters, gradients and optimizer states on one GPU."""
        parts = (self.parameters, self.gradients, self.optimizer_states)
        return None if None in parts else sum(part or 0 for part in parts)

    @property
    def training(self) -> int | None:
        """Everything known that one GPU holds while the policy trains."""
        return None if self.states is None else self.states + (self.activations or 0) + (self.logits or 0)


def memory_estimate(subject: PreflightSubject) -> MemoryEstimate:
    """Return the estimate for a launch. A component whose facts are missing is None; nothing is raised."""
    estimate: MemoryEstimate | None = subject.derived.get(MemoryEstimate.__name__)
    if estimate is None:
        estimate = subject.derived[MemoryEstimate.__name__] = _computed(subject)
    return estimate


def _computed(subject: PreflightSubject) -> MemoryEstimate:
    sizes = _Sizes(subject)
    components: dict[str, Callable[[], int | None]] = {
        "parameters": sizes.parameters,
        "gradients": sizes.gradients,
        "optimizer_states": sizes.optimizer_states,
        "activations": sizes.activations,
        "logits": sizes.logits,
        "gpu_memory": sizes.gpu_memory,
        "engine_weights": sizes.engine_weights,
        "engine_kv_cache": sizes.engine_kv_cache,
        "engine_budget": sizes.engine_budget,
        "host_policy": sizes.host_policy,
        "host_reference": sizes.host_reference,
        "host_memory": sizes.host_memory,
        "states_floor": sizes.states_floor,
    }
    known: dict[str, int | None] = {}
    missing: dict[str, str] = {}
    for name, component in components.items():
        try:
            known[name] = component()
        except (MissingFact, UnreadableValue) as reason:
            known[name], missing[name] = None, str(reason)
    return MemoryEstimate(**known, missing=missing)


def known_fact(subject: PreflightSubject, name: str) -> Any:
    """Return a fact of the model card that no model is without. Raises MissingFact, for null as well."""
    value = subject.model_fact(name)
    if value is None:
        raise MissingFact(f"{name} in the model card, where it is null")
    return value


def offloads_reference(subject: PreflightSubject) -> bool:
    """Whether the weights of a reference live in host memory. Raises like `PreflightSubject.value`.

    The trainer switches that on by itself for a colocated one under fsdp2 (utils.py@004e15f9; catalogue BKD-25).
    """
    geometry = Geometry.of(subject)
    if not geometry.reference_active or geometry.strategy not in _FSDP:
        return False
    if geometry.strategy == "fsdp2" and (geometry.colocate_all or geometry.colocate_policy_ref):
        return True
    return subject.flag("skyrl.trainer.ref.fsdp_config.cpu_offload")


def gigabytes(size: int) -> str:
    """Return bytes as GB with one decimal, exactly however large."""
    tenths = (size + 5 * 10**7) // 10**8
    return f"{shown(tenths // 10)}.{tenths % 10} GB"


def _bytes_of_gb(size: float) -> int:
    return max(1, int(Fraction(str(size)) * 10**9))


class _Sizes:
    """Every component; each method raises MissingFact or UnreadableValue."""

    def __init__(self, subject: PreflightSubject) -> None:
        self._subject = subject
        self._geometry = Geometry.of(subject)

    # --- the policy's GPU -----------------------------------------------------------------------

    def parameters(self) -> int:
        return 0 if self._fsdp_offload() else self._on_gpu(_WEIGHT)

    def gradients(self) -> int:
        if self._fsdp_offload() or self._lora():
            return 0
        fp32 = self._megatron() and self._subject.flag(f"{_MEGATRON}.ddp_config.grad_reduce_in_fp32")
        return self._on_gpu(2 * _GRADIENT if fp32 else _GRADIENT)

    def optimizer_states(self) -> int:
        if self._fsdp_offload() or self._lora():
            return 0
        if self._megatron():  # A distributed optimizer (megatron_worker.py@008da072).
            held = _OPTIMIZER * self._total() // self._geometry.policy_world
            return held - int(held * self._megatron_offload())
        return self._on_gpu(_OPTIMIZER)

    def states_floor(self) -> int:
        if self._fsdp_offload():
            return 0
        if self._lora():
            return _WEIGHT * self._total() // self._geometry.policy_world
        held = 1 - self._megatron_offload() if self._megatron() else Fraction(1)
        return int((_WEIGHT + _GRADIENT + _OPTIMIZER * held) * self._total() / self._geometry.policy_world)

    def activations(self) -> int:
        tokens = self._tokens(self._geometry.micro_batch)
        hidden, layers = (
            known_fact(self._subject, "hidden_size"),
            known_fact(self._subject, "num_hidden_layers"),
        )
        if self._megatron():
            layers = -(-layers // self._megatron_size("pipeline_model_parallel_size"))
            # With sequence parallelism, else it is more.
            tokens //= self._megatron_size("tensor_model_parallel_size")
        if self._subject.flag("skyrl.trainer.gradient_checkpointing"):
            return int(tokens * hidden * (_RECOMPUTED * layers + _LAYER))
        return int(tokens * hidden * _LAYER * layers)

    def logits(self) -> int:
        forward = self._subject.positive("skyrl.trainer.micro_forward_batch_size_per_gpu")
        entries = self._tokens(max(self._geometry.micro_batch, forward)) * known_fact(
            self._subject, "vocab_size"
        )
        if self._megatron():  # In 16 bit; the 32-bit copy is made in chunks (logprob_chunk_size).
            return int(entries // self._megatron_size("tensor_model_parallel_size") * _WEIGHT)
        return int(entries * _LOGIT)

    # --- engines --------------------------------------------------------------------------------

    def engine_weights(self) -> int | None:
        if not self._geometry.engines_local or self._quantized():
            return None
        tp, pp, ep = self._geometry.engine_tp, self._geometry.engine_pp, self._geometry.engine_ep
        return self._split_weights(self._engine_width(), tp, pp, ep if ep > 1 else tp)

    def engine_kv_cache(self) -> int | None:
        card = self._subject.model
        if not self._geometry.engines_local or card is None:
            return None
        if card.sliding_window is not None or card.linear_key_heads is not None:
            return None  # Layers that keep less than the window.
        heads, kv = card.num_attention_heads, self._subject.model_fact("num_key_value_heads")
        head_dim = card.head_dim or known_fact(self._subject, "hidden_size") // (heads or 1)
        if kv is None:
            return None
        dcp = self._subject.positive("skyrl.generator.inference_engine_decode_context_parallel_size")
        layers = -(-known_fact(self._subject, "num_hidden_layers") // self._geometry.engine_pp)
        kept = max(1, kv // self._geometry.engine_tp)
        return int(2 * layers * kept * head_dim * self._engine_width() * window(self._subject) // dcp)

    def engine_budget(self) -> int | None:
        share = self._subject.value("skyrl.generator.gpu_memory_utilization", int, float)
        if not 0 < share <= 1:
            raise UnreadableValue("skyrl.generator.gpu_memory_utilization in (0, 1]")
        return max(1, int(self.gpu_memory() * Fraction(str(share))))

    def gpu_memory(self) -> int:
        cluster, variant = self._subject.cluster, self._subject.get("iris.allocation.gpu_variant")
        if cluster is not None and cluster.hbm_gb is not None:
            return _bytes_of_gb(cluster.hbm_gb)
        known = self._subject.manifest().gpu_hardware.get(variant) if isinstance(variant, str) else None
        if known is None or known.hbm_gb is None:
            raise MissingFact("a cluster card with hbm_gb")
        return _bytes_of_gb(known.hbm_gb)

    # --- the host -------------------------------------------------------------------------------

    def host_policy(self) -> int:
        total, nodes = self._total(), self._geometry.policy_nodes
        if self._lora():
            return 0
        if self._fsdp_offload():
            return (_WEIGHT + _GRADIENT + _OPTIMIZER) * total // nodes
        # A colocated run offloads the optimizer between updates (utils.py@004e15f9).
        if self._geometry.colocate_all or self._subject.flag(
            "skyrl.trainer.offload_optimizer_during_rollouts"
        ):
            return _OPTIMIZER * total // nodes
        return int(_OPTIMIZER * total * self._megatron_offload() / nodes) if self._megatron() else 0

    def host_reference(self) -> int:
        if not offloads_reference(self._subject):
            return 0
        geometry = self._geometry
        shared = geometry.colocate_all or geometry.colocate_policy_ref
        return _WEIGHT * self._total() // (geometry.policy_nodes if shared else geometry.reference_nodes)

    def host_memory(self) -> int:
        asked = self._subject.text("iris.allocation.memory").strip()
        if asked == "auto":  # The launcher asks 80 % of what a node offers.
            return int(Fraction(str(self._node_memory())) * 1024**3 * 4 / 5)
        size = _SIZE.fullmatch(asked)
        if size is None:
            raise UnreadableValue(f"iris.allocation.memory as a size, it is {asked[:20]!r}")
        return int(Fraction(f"{size[1]}.{size[2] or 0}") * _BINARY_UNITS[size[3].upper()])

    def _node_memory(self) -> float:
        size: float | None = self._subject.cluster_fact("memory_per_node_gb")
        if size is None:
            raise MissingFact("memory_per_node_gb in the cluster card, where it is null")
        return size

    # --- facts ----------------------------------------------------------------------------------

    def _total(self) -> int:
        return int(known_fact(self._subject, "parameters"))

    def _megatron(self) -> bool:
        return self._geometry.strategy == "megatron"

    def _lora(self) -> bool:
        return self._subject.integer(_LORA_RANK) > 0

    def _fsdp_offload(self) -> bool:
        offload = self._subject.flag("skyrl.trainer.policy.fsdp_config.cpu_offload")
        return self._geometry.strategy in _FSDP and offload

    def _megatron_size(self, name: str) -> int:
        return self._subject.positive(f"{_MEGATRON}.{name}")

    def _megatron_offload(self) -> Fraction:
        """The share of the optimizer that lives on the host."""
        kwargs = f"{_MEGATRON}.optimizer_config_kwargs"
        if not self._subject.flag(f"{kwargs}.optimizer_cpu_offload"):
            return Fraction(0)
        share = self._subject.value(f"{kwargs}.optimizer_offload_fraction", int, float)
        if not 0 <= share <= 1:
            raise UnreadableValue(f"{kwargs}.optimizer_offload_fraction in [0, 1]")
        return Fraction(str(share))

    def _on_gpu(self, width: int) -> int:
        """Bytes of one value of `width` bytes per parameter, on one GPU of the policy."""
        if self._megatron():
            tp, pp = (
                self._megatron_size("tensor_model_parallel_size"),
                self._megatron_size("pipeline_model_parallel_size"),
            )
            etp = self._subject.get(f"{_MEGATRON}.expert_tensor_parallel_size")
            expert_tensor = tp if etp is None else self._megatron_size("expert_tensor_parallel_size")
            return self._split_weights(
                width, tp, pp, expert_tensor * self._megatron_size("expert_model_parallel_size")
            )
        shards = self._subject.integer("skyrl.trainer.policy.fsdp_config.fsdp_size")
        return width * self._total() // (shards if shards > 0 else self._geometry.policy_world)

    def _split_weights(self, width: int, tp: int, pp: int, expert_ranks: int) -> int:
        """Dense parameters over tp*pp, experts over expert_ranks*pp; all over the larger one if experts are not counted."""
        total, experts = self._total(), self._expert_parameters()
        if experts is None:
            return width * total // (max(tp, expert_ranks) * pp)
        return width * (total - experts) // (tp * pp) + width * experts // (expert_ranks * pp)

    def _expert_parameters(self) -> int | None:
        """Three matrices per expert and layer; None where the card does not tell, or tells more than there is."""
        card = self._subject.model
        if card is None or "num_experts" not in card.model_fields_set:
            return None
        if card.num_experts is None:
            return 0
        facts = (card.num_hidden_layers, card.hidden_size, card.moe_intermediate_size)
        if None in facts:
            return None
        layers, hidden, inner = (fact or 0 for fact in facts)
        experts = 3 * layers * card.num_experts * hidden * inner
        return experts if experts <= self._total() else None

    def _tokens(self, rows: int) -> int:
        """Tokens of a micro batch on one GPU, when every row fills the window."""
        if self._megatron():
            split = self._megatron_size("context_parallel_size")
        else:
            split = self._subject.positive("skyrl.trainer.policy.sequence_parallel_size")
            split *= self._subject.positive("skyrl.trainer.policy.fsdp_config.context_parallel_size")
        return rows * window(self._subject) // split

    def _engine_width(self) -> int:
        return 4 if self._subject.text("skyrl.generator.model_dtype") == "float32" else _WEIGHT

    def _quantized(self) -> bool:
        return self._subject.has("skyrl.generator.engine_init_kwargs.quantization")
