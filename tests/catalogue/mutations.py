"""Single illegal changes of a legal role plan, each with the area of checks that must refuse it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.catalogue.role_plans import ALLOCATION, GENERATOR, PLACEMENT, POLICY, TRAINER, RolePlan
from tools.launcher.preflight.check import Area

BUDGET = "skyrl.context_budget"
_ENGINES = f"{GENERATOR}.num_inference_engines"
_TENSOR = f"{GENERATOR}.inference_engine_tensor_parallel_size"
_DATA = f"{GENERATOR}.inference_engine_data_parallel_size"
_EXPERTS = f"{GENERATOR}.inference_engine_expert_parallel_size"
_TRAIN = f"{TRAINER}.train_batch_size"
_MINI = f"{TRAINER}.policy_mini_batch_size"
_MICRO = f"{TRAINER}.micro_train_batch_size_per_gpu"
_ALGORITHM = f"{TRAINER}.algorithm"


class Mutation(NamedTuple):
    """One illegal change."""

    name: str
    area: Area
    changes: Callable[[RolePlan], dict[str, Any]]
    applies: Callable[[RolePlan], bool] = lambda plan: True
    """Whether the change is illegal for this plan."""


def _always(path: str, value: Any) -> Callable[[RolePlan], dict[str, Any]]:
    return lambda plan: {path: value}


MUTATIONS = (
    Mutation("a node too many", "geometry", lambda plan: {f"{ALLOCATION}.num_nodes": plan.nodes + 1}),
    Mutation("a node too few", "geometry", lambda plan: {f"{ALLOCATION}.num_nodes": plan.nodes - 1}),
    Mutation("no engines", "geometry", _always(_ENGINES, 0)),
    Mutation("true engines", "geometry", _always(_ENGINES, True)),
    Mutation(
        "an engine too many", "geometry", lambda p: {_ENGINES: p.engines + 1}, lambda plan: plan.colocated
    ),
    Mutation("part of a node", "geometry", lambda p: {f"{PLACEMENT}.policy_num_gpus_per_node": p.width - 1}),
    Mutation("another width", "geometry", lambda p: {f"{ALLOCATION}.gpus_per_node": p.width * 2}),
    Mutation("a slice above a node", "geometry", lambda p: {_TENSOR: p.width * 2}),
    Mutation("a slice across nodes", "geometry", _always(_TENSOR, 3), lambda plan: plan.colocated),
    Mutation(
        "an engine above a node", "geometry", lambda p: {_DATA: p.width * 2}, lambda plan: not plan.colocated
    ),
    Mutation("experts beyond the ranks", "geometry", lambda p: {_EXPERTS: p.tensor * p.data + 1}),
    Mutation(
        "experts on part of the ranks",
        "geometry",
        _always(_EXPERTS, 2),
        lambda plan: plan.tensor * plan.data % 2 == 0 and plan.tensor * plan.data > 2,
    ),
    Mutation(
        "a colocated reference apart",
        "geometry",
        _always(f"{PLACEMENT}.colocate_policy_ref", False),
        lambda plan: plan.colocated or not plan.kl,
    ),
    Mutation(
        "nodes of the reference forgotten",
        "geometry",
        lambda p: {f"{ALLOCATION}.num_nodes": p.nodes - p.reference_nodes},
        lambda plan: plan.reference_apart,
    ),
    Mutation("a critic's estimator", "geometry", _always(f"{_ALGORITHM}.advantage_estimator", "gae")),
    Mutation("more nodes than the cluster", "geometry", _always(f"{ALLOCATION}.num_nodes", 65)),
    Mutation("mini above train", "batches", lambda p: {_MINI: p.train * 2}),
    Mutation("an odd train batch", "batches", lambda p: {_TRAIN: p.train + 1}, lambda plan: plan.mini > 1),
    Mutation("micro beyond mini", "batches", lambda p: {_MICRO: p.mini + 1}),
    Mutation("a group of one", "batches", _always(f"{GENERATOR}.n_samples_per_prompt", 1)),
    Mutation(
        "fewer prompts than ranks", "batches", lambda p: {_TRAIN: 1, _MINI: 1}, lambda plan: plan.ranks > 1
    ),
    Mutation(
        "another forward micro batch",
        "batches",
        lambda p: {f"{TRAINER}.micro_forward_batch_size_per_gpu": p.micro + 1},
        lambda plan: plan.megatron,
    ),
    Mutation(
        "the other profile",
        "backend",
        lambda p: {"runtime.profile": "fsdp" if p.megatron else "megatron"},
    ),
    Mutation("no such strategy", "backend", _always(f"{TRAINER}.strategy", "fsdp3")),
    Mutation("no such backend", "backend", _always(f"{GENERATOR}.backend", "vlm")),
    Mutation(
        "training tp beyond the world",
        "backend",
        lambda p: {f"{POLICY}.tensor_model_parallel_size": p.world + 1},
        lambda plan: plan.megatron,
    ),
    Mutation(
        "training ep beyond the ranks",
        "backend",
        lambda p: {f"{POLICY}.expert_model_parallel_size": p.ranks + 1},
        # With tp > 1 the experts' ranks are others: the example's etp is 1.
        lambda plan: plan.megatron and plan.training["tp"] == 1,
    ),
    Mutation(
        "sequence parallel size under megatron",
        "backend",
        _always(f"{TRAINER}.policy.sequence_parallel_size", 2),
        lambda plan: plan.megatron,
    ),
    Mutation(
        "shards beyond the world",
        "backend",
        lambda p: {f"{TRAINER}.policy.fsdp_config.fsdp_size": p.world + 1},
        lambda plan: not plan.megatron,
    ),
    Mutation("no room for a prompt", "context", _always(f"{BUDGET}.max_new_tokens_per_turn", 9216)),
    Mutation("no new tokens", "context", _always(f"{BUDGET}.max_new_tokens_per_turn", 0)),
    Mutation(
        "a second truth about length", "context", _always(f"{GENERATOR}.engine_init_kwargs.max_model_len", 99)
    ),
    Mutation("a window beyond the positions", "context", _always(f"{BUDGET}.request_window_tokens", 10**6)),
    Mutation("five log-probabilities", "context", _always(f"{GENERATOR}.sampling_params.logprobs", 5)),
    Mutation(
        "two kl terms",
        "objective",
        lambda plan: {f"{_ALGORITHM}.use_kl_loss": True, f"{_ALGORITHM}.use_kl_in_reward": True},
    ),
    Mutation("no such estimator", "objective", _always(f"{_ALGORITHM}.advantage_estimator", "groo")),
    Mutation("no such key", "objective", _always(f"{GENERATOR}.num_engines", 3)),
    Mutation("a module as entry point", "objective", _always("skyrl.entrypoint", "lab.train.main")),
    Mutation("a seed in the recipe", "objective", _always(f"{TRAINER}.seed", 3)),
    Mutation("a target without parent", "execution", _always("iris.parent_cluster_config", None)),
    Mutation("a size that is none", "execution", _always(f"{ALLOCATION}.memory", "lots")),
    Mutation("no such mode", "execution", _always("run.mode", "eval")),
    Mutation("a relative spill folder", "execution", _always("ray.spill_dir", "tmp/spill")),
    Mutation("a reserved variable", "execution", _always("runtime.task_env.SKYRL_RUN_ID", "x")),
    Mutation("another GPU", "execution", _always(f"{ALLOCATION}.gpu_variant", "H200")),
    Mutation("a moving tokenizer", "artifacts", _always("inputs.model.tokenizer_revision", "main")),
    Mutation("no data", "artifacts", _always("inputs.train_data", [])),
    Mutation("a key that the launcher refuses", "document", _always("iris.nodes", 3)),
    Mutation("another schema", "document", _always("schema_version", 2)),
)
