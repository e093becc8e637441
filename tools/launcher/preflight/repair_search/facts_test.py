"""What a search takes as given."""

import sys
from typing import Any

import pytest

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.repair_search.facts import Facts, RoleFacts
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.testing.subjects import (
    DELETED,
    changed,
    cluster_card,
    dataset_card,
    document,
    model_card,
    pinned_runtime,
)

_MEGATRON = "skyrl.trainer.policy.megatron_config."


def _facts(base: str = "moe", changes: dict[str, Any] | None = None, **given: Any) -> Facts:
    content = changed(document(base), changes or {})
    return Facts.of(PreflightSubject(document=content, **{"runtime": pinned_runtime()} | given))


def test_the_sizes_of_the_training_side_are_read():
    facts = _facts()
    assert facts.policy == RoleFacts(model_parallel=2, expert_parallel=8, world_divisor=16, world=None)
    assert facts.reference == facts.policy and facts.megatron and facts.reference_active
    smoke = _facts("smoke", {"skyrl.trainer.policy.fsdp_config.fsdp_size": 8})
    assert smoke.policy == RoleFacts(1, 1, 1, 8) and smoke.reference == RoleFacts(1, 1, 1, None)
    assert [smoke.moves(name) for name in ("forward", "workers", "tp")] == [False, False, True]
    assert facts.moves("forward")


def test_an_expert_size_of_null_counts_as_tp():
    etp, tp = _MEGATRON + "expert_tensor_parallel_size", _MEGATRON + "tensor_model_parallel_size"
    assert _facts(changes={etp: None, tp: 2}).policy == RoleFacts(4, 8, 32, None)
    assert _facts(changes={etp: 2}).policy == RoleFacts(2, 1, 32, None)
    assert _facts(changes={_MEGATRON + "expert_model_parallel_size": "x"}).policy.expert_parallel == 1


def test_a_world_is_cut_over_the_ranks():
    role = RoleFacts(model_parallel=2, expert_parallel=8, world_divisor=16, world=None)
    assert role.data_parallel(32) == 16 and role.data_parallel(33) is None
    assert [role.faults(gpus) for gpus in (32, 16, 24, 26)] == [0, 0, 2, 2]
    assert RoleFacts(1, 1, 1, 8).faults(16) == 1


def test_heads_and_experts_of_the_card_decide_tp_and_ep():
    facts = _facts(model=model_card(num_attention_heads=20, num_key_value_heads=5, num_experts=256))
    assert [tp for tp in range(1, 21) if facts.fits_model(tp=tp, ep=1)] == [1, 5, 10, 20]
    assert [ep for ep in (1, 3, 5, 8) if facts.fits_model(tp=1, ep=ep)] == [1, 8]
    dense = _facts(model=model_card(num_experts=None))
    assert not dense.fits_model(tp=1, ep=2) and dense.fits_model(tp=8, ep=1)
    unknown = _facts(model=model_card(num_experts=DELETED))
    assert unknown.fits_model(tp=1, ep=3) and _facts().fits_model(tp=7, ep=7)


def test_the_recipes_own_heads_and_context_shards_count():
    assert not _facts(changes={"skyrl.model_num_attention_heads": 42}).fits_model(tp=8, ep=1)
    shards = {"skyrl.generator.inference_engine_decode_context_parallel_size": 2}
    assert not _facts(changes=shards).fits_model(tp=1, ep=1) and _facts(changes=shards).fits_model(tp=2, ep=1)


def test_cluster_variant_and_teachers_speak_for_a_width():
    resources = {"num_nodes": 2, "gpus_per_node": 6, "tensor_parallel_size": 1, "colocation_group": "a"}
    teacher = {"skyrl.teachers.t": {"source": "local_inference", "resources": resources}}
    facts = _facts(changes=teacher, cluster=cluster_card(gpus_per_node=8, max_nodes=32))
    assert (facts.widths, facts.most_width, facts.rack) == ((8, 6), 8, None)
    assert (facts.extra_nodes, facts.most_nodes) == (2, 32)
    racked = _facts(changes={"iris.allocation.gpu_variant": "GB200"})
    assert (racked.widths, racked.most_width, racked.rack) == ((4,), 4, 16)
    assert _facts(changes={"skyrl.generator.speculative_decoding.training": {"a": 1}}).extra_nodes == 1


def test_estimator_group_size_and_sampling_ask_for_answers():
    least = "skyrl.trainer.algorithm.group_advantage_min_size"
    assert _facts().least_samples == 2 and _facts(changes={least: 5}).least_samples == 5
    alone = {"skyrl.trainer.algorithm.advantage_estimator": "reinforce++"}
    assert _facts(changes=alone).least_samples == 1
    assert (
        _facts(changes=alone | {"skyrl.trainer.algorithm.dynamic_sampling.type": "filter"}).least_samples == 2
    )
    assert _facts(changes={"skyrl.trainer.algorithm.advantage_estimator": []}).least_samples == 1


def test_the_data_bounds_the_batch():
    assert _facts(train_dataset=dataset_card(rows=12)).most_prompts == 12
    few = dataset_card(rows=100, max_prompt_tokens=2000, prompt_token_counts={"1024": 40})
    assert _facts("moe", train_dataset=few).most_prompts == 40
    assert _facts().most_prompts is None
    assert (
        _facts(
            validation_dataset=dataset_card(validation_rows=30),
            runtime=pinned_runtime(validation_rows_multiple_of_batch=True),
        ).validation_rows
        == 30
    )
    assert _facts(validation_dataset=dataset_card(validation_rows=30)).validation_rows is None


def test_what_the_arithmetic_needs_must_be_readable():
    with pytest.raises(UnreadableValue, match="strategy"):
        _facts(changes={"skyrl.trainer.strategy": 5})
    with pytest.raises(MissingFact):
        _facts(runtime=None)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
