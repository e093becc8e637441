"""GRPO on GSM8K with Qwen3-0.6B on the local Iris, as often as a sweep has points."""

from tools.launcher.rl import (
    ArtifactDataSource,
    ArtifactHfModel,
    ArtifactStep,
    BuildInputs,
    HfExport,
    IrisSkyRLExecution,
    SkyRLContextBudget,
    SkyRLRecipe,
    SkyRLRetentionPolicy,
    SkyRLRolePlan,
    SkyRLSpec,
    SkyRLTopology,
    dataset,
    hf_model,
    rl_build_options,
    skyrl_step,
)

STEPS = 8

# Artifacts of the local Iris: its import steps make a stand-in where none is yet.
MODEL = HfExport(name="slipway/qwen3-0.6b", version="2026.11.30", fingerprint="c0ffee06", relative_path="hf")
DATA = HfExport(name="slipway/gsm8k", version="2026.12.01", fingerprint="c0ffee75")
TOKENIZER_REVISION = "c1899de289a04d12100db370d81485cdf75e47ca"

BACKEND: dict[str, object] = {
    "trainer": {"strategy": "fsdp2", "micro_forward_batch_size_per_gpu": 1},
    "generator": {"backend": "vllm", "run_engines_locally": True, "gpu_memory_utilization": 0.7},
}

LOGGING: dict[str, object] = {"trainer": {"logger": "console", "project_name": "slipway"}}

SCHEDULE: dict[str, object] = {
    "data": {"kind": "parquet"},
    "trainer": {
        "epochs": 1,
        "max_steps": STEPS,
        "ckpt_interval": STEPS // 2,
        "resume_mode": "latest",
        "eval_before_train": False,
        "eval_interval": -1,
    },
}


def objective(learning_rate: float) -> dict[str, object]:
    """What the policy is optimised for, and how fast."""
    return {
        "entrypoint": "standard",
        "environment": {"env_class": "gsm8k"},
        "trainer": {
            "algorithm": {"advantage_estimator": "grpo", "use_kl_loss": False},
            "policy": {"optimizer_config": {"lr": learning_rate}},
        },
        "generator": {"sampling_params": {"temperature": 1.0}},
    }


@rl_build_options
def main(inputs: BuildInputs, learning_rate: float, train_batch_size: int) -> ArtifactStep:
    """Train and export one point. Its name has every axis: each point is an artifact of its own."""
    data = dataset(inputs.dataset("gsm8k"), DATA)
    spec = SkyRLSpec(
        name=f"slipway/gsm8k-sweep-lr{learning_rate:g}-b{train_batch_size}",
        version=inputs.version,
        recipe=SkyRLRecipe.combine(
            objective=objective(learning_rate), backend=BACKEND, logging=LOGGING, schedule=SCHEDULE
        ),
        context_budget=SkyRLContextBudget(
            request_window_tokens=1536,
            max_new_tokens_per_turn=1024,
            max_turns=1,
            generated_budget_fraction=None,
            overlong_cache_fraction=None,
        ),
        runtime=inputs.skyrl_runtime("fsdp"),
        model=ArtifactHfModel(
            step=hf_model(inputs.model("qwen3-0.6b"), MODEL),
            tokenizer_uri="Qwen/Qwen3-0.6B",
            tokenizer_revision=TOKENIZER_REVISION,
            relative_path=MODEL.relative_path,
        ),
        train_data=(ArtifactDataSource(step=data, relative_path="train.parquet"),),
        validation_data=(ArtifactDataSource(step=data, relative_path="validation.parquet"),),
        topology=SkyRLTopology(
            num_nodes=1,
            gpus_per_node=8,
            gpu_variant="H100",
            role_plan=SkyRLRolePlan(
                colocate_all=True,
                colocate_policy_ref=True,
                policy_num_nodes=1,
                reference_num_nodes=1,
                policy_num_gpus_per_node=8,
                num_inference_engines=8,
                inference_engine_tensor_parallel_size=1,
                inference_engine_pipeline_parallel_size=1,
                inference_engine_data_parallel_size=1,
                inference_engine_expert_parallel_size=1,
                train_batch_size=train_batch_size,
                policy_mini_batch_size=train_batch_size,
                micro_train_batch_size_per_gpu=1,
                n_samples_per_prompt=4,
            ),
        ),
        retention=SkyRLRetentionPolicy(resume_checkpoint_count=2, temporary_storage_ttl_days=1),
        seed=17,
    )
    execution = IrisSkyRLExecution(
        cluster=inputs.cluster.name,
        cluster_config="embedded",
        cpu=8,
        memory="64GB",
        disk="64GB",
        priority="interactive",
        max_retries=0,
        target_cluster=None,
        parent_cluster_config=None,
        coordinator_timeout_hours=1,
        wandb_entity=None,
        job_timeout_seconds=1800,
        credentials=(),
    )
    return skyrl_step(spec, execution, export_hf=True)
