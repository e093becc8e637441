"""Roles, engines, batch sizes and nodes. Identity-bearing.

The types check types only. Whether the numbers fit together is preflight's question, so that
three wrong numbers are three findings of one run. Source: contract, typed-spec.md §1.
"""

from pydantic import BaseModel, ConfigDict

SPEC = ConfigDict(
    frozen=True,
    strict=True,
    extra="forbid",
    allow_inf_nan=False,
    revalidate_instances="always",
    defer_build=True,
)
"""Instances are read again where they are used: `model_copy(update=...)` checks nothing. Deferred: `lint` imports all
of these for the checks, and makes none."""


class SkyRLRolePlan(BaseModel):
    """How many GPUs each role gets and how batches are cut. Every field is a decision."""

    model_config = SPEC

    colocate_all: bool
    """Policy, reference and rollout engines share the same GPUs."""
    colocate_policy_ref: bool
    """The reference lives on the policy's GPUs."""
    policy_num_nodes: int
    reference_num_nodes: int
    policy_num_gpus_per_node: int
    num_inference_engines: int
    """E: replicas of the rollout engine."""
    inference_engine_tensor_parallel_size: int
    """TP: GPUs that share each layer."""
    inference_engine_pipeline_parallel_size: int
    """PP: stages of layers."""
    inference_engine_data_parallel_size: int
    """DP: ranks inside one engine."""
    inference_engine_expert_parallel_size: int
    """EP: 1, or TP*DP."""
    train_batch_size: int
    """T, in prompts."""
    policy_mini_batch_size: int
    """M, in prompts per optimizer step."""
    micro_train_batch_size_per_gpu: int
    """u, in rows."""
    n_samples_per_prompt: int
    """n, answers per prompt."""


class SkyRLTopology(BaseModel):
    """The allocation together with the roles on it."""

    model_config = SPEC

    num_nodes: int
    gpus_per_node: int
    gpu_variant: str
    role_plan: SkyRLRolePlan


ROLE_PLAN_PATHS: tuple[tuple[str, str], ...] = (
    ("colocate_all", "trainer.placement.colocate_all"),
    ("colocate_policy_ref", "trainer.placement.colocate_policy_ref"),
    ("policy_num_nodes", "trainer.placement.policy_num_nodes"),
    ("policy_num_gpus_per_node", "trainer.placement.policy_num_gpus_per_node"),
    ("reference_num_nodes", "trainer.placement.ref_num_nodes"),
    ("policy_num_gpus_per_node", "trainer.placement.ref_num_gpus_per_node"),
    ("train_batch_size", "trainer.train_batch_size"),
    ("policy_mini_batch_size", "trainer.policy_mini_batch_size"),
    ("micro_train_batch_size_per_gpu", "trainer.micro_train_batch_size_per_gpu"),
    ("num_inference_engines", "generator.num_inference_engines"),
    ("inference_engine_tensor_parallel_size", "generator.inference_engine_tensor_parallel_size"),
    ("inference_engine_pipeline_parallel_size", "generator.inference_engine_pipeline_parallel_size"),
    ("inference_engine_data_parallel_size", "generator.inference_engine_data_parallel_size"),
    ("inference_engine_expert_parallel_size", "generator.inference_engine_expert_parallel_size"),
    ("n_samples_per_prompt", "generator.n_samples_per_prompt"),
)
"""(field of SkyRLRolePlan, path below `skyrl` that it is rendered to), in order of rendering."""
