"""Random legal role plans, built forward from the arithmetic of the contract (typed-spec.md §4).

Nothing is drawn and thrown away: every size is drawn from the values that the sizes before it
leave legal, so a plan that preflight refuses is a false reject.
"""

import math
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tools.launcher.catalog.cards import ClusterCard, ModelCard
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.testing.subjects import (
    changed,
    cluster_card,
    document,
    model_card,
    pinned_runtime,
)

PLACEMENT = "skyrl.trainer.placement"
TRAINER = "skyrl.trainer"
GENERATOR = "skyrl.generator"
ALLOCATION = "iris.allocation"
POLICY = f"{TRAINER}.policy.megatron_config"
REFERENCE = f"{TRAINER}.ref.megatron_config"

_WIDTHS = {"H100": 8, "GB200": 4}
_WHOLE_RACKS = {"H100": (1, 2, 3, 5, 8, 32), "GB200": (1, 2, 3, 8, 16, 20, 33)}
"""Node counts; beyond one NVL72 rack of 16 they divide over racks of ten and more."""
_DENSE: dict[str, Any] = {
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "num_hidden_layers": 24,
    "num_experts": None,
}
_MOE: dict[str, Any] = {
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 24,
    "num_experts": 64,
}
_PARAMETERS = 500_000_000
"""Small, so that the memory estimate is no reason to refuse a plan."""


@dataclass(frozen=True, kw_only=True)
class RolePlan:
    """A legal plan, with the numbers that mutations are made from."""

    variant: str
    width: int
    megatron: bool
    model: ModelCard
    colocated: bool
    kl: bool
    reference_apart: bool
    policy_nodes: int
    reference_nodes: int
    nodes: int
    engines: int
    tensor: int
    pipeline: int
    data: int
    experts: int
    training: dict[str, int]
    """Megatron's tp, pp, ep; the sequence-parallel size sp with FSDP."""
    ranks: int
    """Data-parallel ranks of the policy."""
    train: int
    mini: int
    micro: int
    samples: int

    @property
    def world(self) -> int:
        """GPUs of the policy."""
        return self.policy_nodes * self.width

    @property
    def rows(self) -> int:
        """Rows per rank and mini batch."""
        return self.mini * self.samples // self.ranks

    def changes(self) -> dict[str, Any]:
        """Return path -> value, to be applied to the contract's example of the plan's strategy."""
        return {
            f"{ALLOCATION}.num_nodes": self.nodes,
            f"{ALLOCATION}.gpus_per_node": self.width,
            f"{ALLOCATION}.gpu_variant": self.variant,
            f"{PLACEMENT}.colocate_all": self.colocated,
            f"{PLACEMENT}.colocate_policy_ref": not self.reference_apart,
            f"{PLACEMENT}.policy_num_nodes": self.policy_nodes,
            f"{PLACEMENT}.policy_num_gpus_per_node": self.width,
            f"{PLACEMENT}.ref_num_nodes": self.reference_nodes,
            f"{PLACEMENT}.ref_num_gpus_per_node": self.width,
            f"{TRAINER}.algorithm.use_kl_loss": self.kl,
            f"{TRAINER}.train_batch_size": self.train,
            f"{TRAINER}.policy_mini_batch_size": self.mini,
            f"{TRAINER}.micro_train_batch_size_per_gpu": self.micro,
            f"{TRAINER}.micro_forward_batch_size_per_gpu": self.micro,
            f"{GENERATOR}.n_samples_per_prompt": self.samples,
            f"{GENERATOR}.num_inference_engines": self.engines,
            f"{GENERATOR}.inference_engine_tensor_parallel_size": self.tensor,
            f"{GENERATOR}.inference_engine_pipeline_parallel_size": self.pipeline,
            f"{GENERATOR}.inference_engine_data_parallel_size": self.data,
            f"{GENERATOR}.inference_engine_expert_parallel_size": self.experts,
            **self._training_changes(),
        }

    def _training_changes(self) -> dict[str, Any]:
        if not self.megatron:
            return {
                f"{TRAINER}.{role}.sequence_parallel_size": self.training["sp"] for role in ("policy", "ref")
            }
        sizes = {
            "tensor_model_parallel_size": self.training["tp"],
            "pipeline_model_parallel_size": self.training["pp"],
            "expert_model_parallel_size": self.training["ep"],
        }
        roles = {f"{role}.{name}": size for role in (POLICY, REFERENCE) for name, size in sizes.items()}
        # Offloading the optimizer during rollouts is for roles with GPUs of their own (BKD-16).
        return roles | {f"{TRAINER}.offload_optimizer_during_rollouts": not self.colocated}

    def subject(self, mutation: dict[str, Any] | None = None) -> PreflightSubject:
        """Return the plan as preflight sees it, with `mutation` applied on top."""
        base = document("moe" if self.megatron else "smoke")
        return PreflightSubject(
            document=changed(base, self.changes() | (mutation or {})),
            runtime=pinned_runtime(),
            model=self.model,
            cluster=self.cluster(),
        )

    def cluster(self) -> ClusterCard:
        """Return a cluster that has the plan's nodes."""
        return cluster_card(gpu_variant=self.variant, gpus_per_node=self.width, max_nodes=64)


def divisors(number: int) -> list[int]:
    """Return the divisors of `number`, smallest first."""
    return [size for size in range(1, number + 1) if number % size == 0]


@st.composite
def role_plans(draw: st.DrawFn) -> RolePlan:
    """Draw a legal plan on H100 or GB200 nodes."""
    variant = draw(st.sampled_from(sorted(_WIDTHS)))
    width = _WIDTHS[variant]
    megatron = draw(st.booleans())
    facts = draw(st.sampled_from((_DENSE, _MOE)))
    experts = facts["num_experts"]
    colocated = draw(st.booleans())
    policy_nodes = draw(st.sampled_from(_WHOLE_RACKS[variant] if colocated else (1, 2, 3, 4)))
    kl = draw(st.booleans())
    reference_apart = kl and not colocated and draw(st.booleans())
    reference_nodes = draw(st.integers(1, 3)) if reference_apart else policy_nodes

    # Engines: a slice tiles a node; colocated engines take exactly the policy's GPUs.
    tensor = draw(st.sampled_from(divisors(width)))
    pipeline = draw(st.sampled_from([size for size in (1, 2) if width % (tensor * size) == 0]))
    room = (policy_nodes * width if colocated else width) // (tensor * pipeline)
    data = draw(st.sampled_from(divisors(room)))
    whole = tensor * data
    spans = experts is not None and experts % whole == 0
    expert_parallel = draw(st.sampled_from((1, whole))) if spans else 1
    if colocated:
        engines, rollout_nodes = room // data, 0
    else:
        engines = draw(st.integers(1, 6))
        rollout_nodes = math.ceil(engines / (width // (tensor * pipeline * data)))

    # Training: the reference has the policy's parallel sizes, on as many nodes as it has.
    worlds = [policy_nodes * width, reference_nodes * width]
    common = math.gcd(*worlds)
    if megatron:
        tp = draw(st.sampled_from([size for size in (1, 2, 4) if common % size == 0]))
        pp = draw(st.sampled_from([size for size in (1, 2, 3, 4) if common % (tp * size) == 0]))
        # An MoE with tp > 1 and ep > 1 would need Megatron's sequence parallel (BKD-12).
        sizes = [
            size for size in divisors(common // (tp * pp)) if experts is not None and experts % size == 0
        ]
        ep = draw(st.sampled_from(sizes)) if sizes and tp == 1 else 1
        training = {"tp": tp, "pp": pp, "ep": ep}
        split = tp * pp
    else:
        split = draw(st.sampled_from((1, 2)))
        training = {"sp": split}
    ranks = worlds[0] // split
    reference_ranks = worlds[1] // split if kl else ranks

    # Batches: whole rows for every rank of both roles, and no prompt dropped.
    samples = draw(st.integers(2, 8))
    mini = draw(st.integers(1, 3)) * ranks
    train = math.lcm(mini, ranks, reference_ranks) * draw(st.integers(1, 2))
    micro = draw(st.sampled_from(divisors(math.gcd(mini, mini * samples // ranks))))

    return RolePlan(
        variant=variant,
        width=width,
        megatron=megatron,
        model=model_card(**facts, parameters=_PARAMETERS),
        colocated=colocated,
        kl=kl,
        reference_apart=reference_apart,
        policy_nodes=policy_nodes,
        reference_nodes=reference_nodes,
        nodes=policy_nodes + rollout_nodes + (reference_nodes if reference_apart else 0),
        engines=engines,
        tensor=tensor,
        pipeline=pipeline,
        data=data,
        experts=expert_parallel,
        training=training,
        ranks=ranks,
        train=train,
        mini=mini,
        micro=micro,
        samples=samples,
    )
