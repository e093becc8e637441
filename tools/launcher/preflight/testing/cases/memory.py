"""Cases of the memory estimate (BKD-24, BKD-25)."""

from typing import Any

from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes
from tools.launcher.preflight.testing.subjects import DELETED, cluster_card, model_card

KL = "skyrl.trainer.algorithm.use_kl_loss"
FORWARD = "skyrl.trainer.micro_forward_batch_size_per_gpu"
WINDOW = "skyrl.context_budget.request_window_tokens"
MEMORY = "iris.allocation.memory"
SHARE = "skyrl.generator.gpu_memory_utilization"
VARIANT = "iris.allocation.gpu_variant"


def _facts(parameters: Any, **facts: Any) -> dict[str, Any]:
    return {
        "model": model_card(parameters=parameters, **({"hidden_size": 1024} | facts)),
        "cluster": cluster_card(hbm_gb=80.0, memory_per_node_gb=2014.0),
    }


_SMALL = _facts(596_049_920)
_LARGE = _facts(
    70_553_706_496,
    num_attention_heads=64,
    num_hidden_layers=80,
    hidden_size=8192,
    vocab_size=128256,
    max_position_embeddings=131072,
)
_MOE = _facts(
    30_532_122_624,
    num_attention_heads=32,
    num_key_value_heads=4,
    num_hidden_layers=48,
    num_experts=128,
    moe_intermediate_size=768,
    hidden_size=2048,
)

FAILING = (
    # Case n13: 70.6e9 parameters * 16 bytes / 8 GPUs.
    Fails(
        check="BKD-24",
        facts=_LARGE,
        says="states need about 141.1 GB per GPU, 80.0 GB available: 70553706496 parameters * (2+2+12) bytes over 8 GPUs, as "
        "fsdp2 shards them (an estimate from below",
        severity="warning",
    ),
    Fails(
        check="BKD-24",
        facts=_facts(120_000_000_000),
        says="states need about 240.0 GB per GPU, 80.0 GB available",
        severity="error",
    ),
    Fails(
        check="BKD-24",
        facts=_LARGE,
        says="engine weights need about 141.1 GB per GPU, gpu_memory_utilization leaves 56.0 GB",
        severity="warning",
    ),
    Fails(
        check="BKD-24",
        facts=_LARGE,
        says="offloaded states need about 846.6 GB of host memory per node, 751.6 GB are allocated",
        severity="warning",
    ),
    # Failure row 46: logits of 4 rows of 32768 tokens and 151936 entries are 80 GB.
    Fails(
        check="BKD-24",
        changes={
            WINDOW: 32768,
            "skyrl.context_budget.max_new_tokens_per_turn": 30720,
            FORWARD: 4,
            KL: True,
        },
        facts=_facts(1_500_000_000),
        says="training needs up to 85.7 GB per GPU, 80.0 GB available: states 3.0 GB, activations 3.0 GB, logits 79.7 GB",
        severity="warning",
    ),
    Fails(
        check="BKD-24",
        changes={SHARE: 0.04, WINDOW: 40960},
        facts=_SMALL,
        says="the KV cache of one full window",
        severity="warning",
    ),
    Fails(
        check="BKD-25",
        changes={KL: True, MEMORY: "100GB"},
        facts=_facts(8_190_735_360),
        says="reference is offloaded to host memory: +16.4 GB per node on top of 98.3 GB of offloaded states, 107.4 GB "
        "allocated",
        severity="warning",
    ),
)

PASSING = (
    Passes(check="BKD-24", facts=_SMALL),
    Passes(check="BKD-24", facts=_facts(8_190_735_360, num_hidden_layers=36, hidden_size=4096)),
    Passes(check="BKD-24", base="moe", facts=_MOE),
    Passes(check="BKD-24", changes={MEMORY: "auto"}, facts=_SMALL),
    Passes(check="BKD-25", facts=_SMALL),
    Passes(check="BKD-25", changes={KL: True}, facts=_SMALL),
    Passes(check="BKD-25", base="moe", facts=_MOE),
)

NOT_CHECKED = (
    NotChecked(check="BKD-24", needs="a model card with parameters"),
    NotChecked(
        check="BKD-24", facts={"model": model_card()}, needs="parameters in the model card 'lab-model'"
    ),
    NotChecked(
        check="BKD-24",
        changes={VARIANT: "B300"},
        facts={"model": model_card(parameters=596_049_920, hidden_size=1024)},
        needs="a cluster card with hbm_gb",
    ),
    NotChecked(check="BKD-25", changes={KL: True}, needs="a model card with parameters"),
    NotChecked(
        check="BKD-25",
        changes={KL: True, MEMORY: "auto"},
        facts={"model": model_card(parameters=596_049_920)},
        needs="a cluster card with memory_per_node_gb",
    ),
    NotChecked(
        check="BKD-25",
        changes={KL: DELETED, MEMORY: "lots"},
        facts=_SMALL,
        needs="iris.allocation.memory as a size",
    ),
)
