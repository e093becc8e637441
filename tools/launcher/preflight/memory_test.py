"""The memory estimate against numbers worked by hand, and that it never raises."""

import sys
from typing import Any

import pytest

from tools.launcher.preflight.memory import MemoryEstimate, gigabytes, memory_estimate
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.testing.subjects import (
    DELETED,
    changed,
    cluster_card,
    document,
    model_card,
    pinned_runtime,
)

_POLICY = "skyrl.trainer.policy"
_MEGATRON = f"{_POLICY}.megatron_config"
_KL = "skyrl.trainer.algorithm.use_kl_loss"
_EIGHT_BILLION = 8_190_735_360
_DENSE: dict[str, Any] = {
    "parameters": _EIGHT_BILLION,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "head_dim": 128,
}
# Qwen3-30B-A3B: 48 layers * 128 experts * 3 * 2048 * 768 = 28 991 029 248 of its parameters are experts.
_MOE: dict[str, Any] = {
    "parameters": 30_532_122_624,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "num_hidden_layers": 48,
    "num_experts": 128,
    "moe_intermediate_size": 768,
    "hidden_size": 2048,
    "head_dim": 128,
}
_EXPERTS = 28_991_029_248


def _of(base: str, facts: dict[str, Any], paths: dict[str, Any]) -> MemoryEstimate:
    return memory_estimate(
        PreflightSubject(
            document=changed(document(base), paths),
            model=model_card(**facts),
            cluster=cluster_card(hbm_gb=80.0, memory_per_node_gb=2014.0),
            runtime=pinned_runtime(),
        )
    )


@pytest.mark.parametrize(
    ("parameters", "nodes", "per_gpu"),
    [
        (8_190_735_360, 1, "16.4 GB"),
        (8_190_735_360, 4, "4.1 GB"),
        (30_532_122_624, 1, "61.1 GB"),
        (67_078_882_816, 4, "33.5 GB"),
    ],
)
def test_states_are_the_contracts_orders_of_magnitude(parameters, nodes, per_gpu):
    """contract, clusters-and-models.md §2.2."""
    estimate = _of(
        "smoke",
        _DENSE | {"parameters": parameters},
        {"skyrl.trainer.placement.policy_num_nodes": nodes},
    )
    assert gigabytes(estimate.states or 0) == per_gpu
    assert gigabytes(estimate.states_floor or 0) == per_gpu


def test_a_colocated_dense_run():
    estimate = _of("smoke", _DENSE, {})
    tokens = 1536
    assert estimate.parameters == 2 * _EIGHT_BILLION // 8
    assert estimate.gradients == 2 * _EIGHT_BILLION // 8
    assert estimate.optimizer_states == 12 * _EIGHT_BILLION // 8
    assert estimate.activations == tokens * 4096 * (2 * 36 + 34)
    assert estimate.logits == tokens * 151936 * 4
    assert estimate.gpu_memory == 80 * 10**9
    assert estimate.engine_weights == 2 * _EIGHT_BILLION
    assert estimate.engine_kv_cache == 2 * 36 * 8 * 128 * 2 * tokens
    assert estimate.engine_budget == int(0.7 * 80 * 10**9)
    assert estimate.host_policy == 12 * _EIGHT_BILLION
    assert (estimate.host_reference, estimate.host_memory) == (0, 700 * 1024**3)
    assert estimate.training == (estimate.states or 0) + (estimate.activations or 0) + (estimate.logits or 0)
    assert estimate.missing == {}


def test_a_split_moe_run():
    estimate = _of("moe", _MOE, {})
    dense = 30_532_122_624 - _EXPERTS
    # tp*pp = 2, etp*ep*pp = 16, W = 32; gradients are reduced in 32 bit.
    assert estimate.parameters == 2 * dense // 2 + 2 * _EXPERTS // 16
    assert estimate.gradients == 4 * dense // 2 + 4 * _EXPERTS // 16
    assert estimate.optimizer_states == 12 * 30_532_122_624 // 32
    assert estimate.activations == 9216 * 2048 * (2 * 24 + 34)
    assert estimate.logits == 9216 * 151936 * 2
    # Engines: TP 1, and the experts over EP 8.
    assert estimate.engine_weights == 2 * dense + 2 * _EXPERTS // 8
    assert estimate.host_policy == 12 * 30_532_122_624 // 4
    assert estimate.host_memory == 1400 * 1024**3


def test_experts_that_a_card_does_not_count_give_the_lower_bound():
    unknown = {name: value for name, value in _MOE.items() if name != "moe_intermediate_size"}
    assert _of("moe", unknown, {}).parameters == 2 * 30_532_122_624 // 16
    assert _of("moe", unknown | {"num_experts": DELETED}, {}).parameters == 2 * 30_532_122_624 // 16
    too_many = _MOE | {"parameters": 10**9}
    assert _of("moe", too_many, {}).parameters == 2 * 10**9 // 16


def test_sequence_and_context_parallelism_split_tokens():
    split = _of("smoke", _DENSE, {f"{_POLICY}.sequence_parallel_size": 4})
    assert split.logits == 1536 // 4 * 151936 * 4
    split = _of(
        "moe", _MOE, {f"{_MEGATRON}.context_parallel_size": 2, f"{_MEGATRON}.tensor_model_parallel_size": 2}
    )
    assert split.logits == 9216 // 2 * 151936 // 2 * 2
    assert split.activations == 9216 // 4 * 2048 * (2 * 24 + 34)


def test_without_checkpointing_every_layer_keeps_its_activations():
    estimate = _of("smoke", _DENSE, {"skyrl.trainer.gradient_checkpointing": False})
    assert estimate.activations == 1536 * 4096 * 34 * 36


def test_what_is_offloaded_leaves_the_gpu():
    estimate = _of("smoke", _DENSE, {f"{_POLICY}.fsdp_config.cpu_offload": True})
    assert (estimate.states, estimate.states_floor, estimate.host_policy) == (0, 0, 16 * _EIGHT_BILLION)
    kwargs = f"{_MEGATRON}.optimizer_config_kwargs"
    offload = {
        f"{kwargs}.optimizer_cpu_offload": True,
        f"{kwargs}.optimizer_offload_fraction": 0.5,
        "skyrl.trainer.offload_optimizer_during_rollouts": False,
    }
    half = _of("moe", _MOE, offload)
    assert half.optimizer_states == 6 * 30_532_122_624 // 32
    assert half.host_policy == 6 * 30_532_122_624 // 4
    assert half.states_floor == 10 * 30_532_122_624 // 32
    assert _of("moe", _MOE, {"skyrl.trainer.offload_optimizer_during_rollouts": False}).host_policy == 0


def test_lora_trains_next_to_nothing():
    estimate = _of("smoke", _DENSE, {f"{_POLICY}.model.lora.rank": 16})
    assert estimate.states == estimate.parameters == estimate.states_floor == 2 * _EIGHT_BILLION // 8
    assert estimate.host_policy == 0


@pytest.mark.parametrize(
    ("changes", "copies"),
    [
        ({_KL: True}, 2),
        ({_KL: True, "skyrl.trainer.strategy": "fsdp"}, 0),
        ({_KL: True, "skyrl.trainer.strategy": "fsdp", "skyrl.trainer.ref.fsdp_config.cpu_offload": True}, 2),
        ({"skyrl.trainer.ref.fsdp_config.cpu_offload": True}, 0),
    ],
)
def test_an_offloaded_reference_is_one_more_copy(changes, copies):
    assert _of("smoke", _DENSE, changes).host_reference == copies * _EIGHT_BILLION


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("auto", 2014 * 1024**3 * 4 // 5),
        ("1.5TB", 3 * 1024**4 // 2),
        ("700Gi", 700 * 1024**3),
        ("64 g", 64 * 1024**3),
    ],
)
def test_host_memory_is_read_as_iris_does(written, size):
    assert _of("smoke", _DENSE, {"iris.allocation.memory": written}).host_memory == size


def test_layers_with_a_short_memory_have_no_full_cache():
    for facts in ({"sliding_window": 2048}, {"linear_key_heads": 16}):
        assert _of("smoke", _DENSE | facts, {}).engine_kv_cache is None
    assert (
        _of("smoke", _DENSE, {"skyrl.generator.engine_init_kwargs.quantization": "fp8"}).engine_weights
        is None
    )
    assert _of("smoke", _DENSE, {"skyrl.generator.run_engines_locally": False}).engine_weights is None
    assert (
        _of("smoke", _DENSE, {"skyrl.generator.model_dtype": "float32"}).engine_weights == 4 * _EIGHT_BILLION
    )


def test_a_gpu_is_known_by_its_variant_where_no_card_tells():
    subject = PreflightSubject(document=document("smoke"), model=model_card(), runtime=pinned_runtime())
    assert memory_estimate(subject).gpu_memory == 80 * 10**9


def test_what_is_missing_is_named_and_nothing_is_raised():
    estimate = memory_estimate(PreflightSubject(document={}))
    assert set(estimate.missing) >= {"parameters", "gpu_memory", "host_memory"}
    assert estimate.states is None and estimate.training is None
    partly = _of("smoke", {"parameters": _EIGHT_BILLION}, {"skyrl.generator.gpu_memory_utilization": 2})
    assert partly.missing == {
        "activations": "hidden_size in the model card 'lab-model'",
        "engine_budget": "skyrl.generator.gpu_memory_utilization in (0, 1]",
        "engine_kv_cache": "hidden_size in the model card 'lab-model'",
    }
    assert partly.training == (partly.states or 0) + (partly.logits or 0)


def test_gigabytes_are_exact_however_large():
    assert gigabytes(141_107_412_992) == "141.1 GB"
    assert gigabytes(49_999_999) == "0.0 GB"
    assert gigabytes(10**400).endswith(".0 GB")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
