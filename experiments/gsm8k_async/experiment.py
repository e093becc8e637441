"""Fully asynchronous GRPO on GSM8K with Qwen3-8B: one node trains while the other generates, FSDP2."""

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

GPUS = 8
PROMPTS = 64
STALENESS = 2
STEPS = 100

# Where the weights were imported to: name, version and the fingerprint of that artifact's record.
MODEL = HfExport(name="models/qwen3-8b", version="2026.11.30", fingerprint="c0ffee08", relative_path="hf")
TOKENIZER_REVISION = "b968826d9c46dd6066d109eabc6255188de91218"

# Answers are up to STALENESS policies old: truncated importance sampling weighs them by how much the policy
# has moved. It needs the log-probabilities that the engine really sampled from, so sampling stays neutral.
OBJECTIVE: dict[str, object] = {
    "entrypoint": "fully_async",
    "environment": {"env_class": "gsm8k"},
    "trainer": {
        "algorithm": {
            "advantage_estimator": "grpo",
            "use_kl_loss": False,
            "use_tis": True,
            "tis_imp_ratio_cap": 2.0,
        },
        "fully_async": {
            "max_staleness_steps": STALENESS,
            "num_parallel_generation_workers": PROMPTS * (STALENESS + 1),
        },
    },
    "generator": {
        "sampling_params": {"temperature": 1.0, "logprobs": 0},
        "engine_init_kwargs": {"logprobs_mode": "processed_logprobs", "generation_config": "vllm"},
    },
}

BACKEND: dict[str, object] = {
    "trainer": {"strategy": "fsdp2", "micro_forward_batch_size_per_gpu": 1},
    "generator": {
        "backend": "vllm",
        "run_engines_locally": True,
        "gpu_memory_utilization": 0.85,
        "async_engine": True,
        "batched": False,
        "enable_http_endpoint": True,
        "chat_template": {"source": "name", "name_or_path": "qwen3_without_thinking"},
    },
    "extra_env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
}

LOGGING: dict[str, object] = {"trainer": {"logger": "wandb", "project_name": "skyrl-lab"}}

SCHEDULE: dict[str, object] = {
    "data": {"kind": "parquet"},
    "trainer": {
        "epochs": 1,
        "max_steps": STEPS,
        "ckpt_interval": 20,
        "resume_mode": "latest",
        "eval_before_train": False,
        "eval_interval": 20,
    },
}


@rl_build_options
def main(inputs: BuildInputs) -> ArtifactStep:
    """Train and export; an engine on each GPU of the second node."""
    gsm8k = inputs.dataset("gsm8k")
    data = dataset(gsm8k, gsm8k.export)
    spec = SkyRLSpec(
        name="users/lab/qwen8-gsm8k-async",
        version=inputs.version,
        recipe=SkyRLRecipe.combine(objective=OBJECTIVE, backend=BACKEND, logging=LOGGING, schedule=SCHEDULE),
        context_budget=SkyRLContextBudget(
            request_window_tokens=2560,
            max_new_tokens_per_turn=2048,
            max_turns=1,
            generated_budget_fraction=None,
            overlong_cache_fraction=None,
        ),
        runtime=inputs.skyrl_runtime("fsdp"),
        model=ArtifactHfModel(
            step=hf_model(inputs.model("qwen3-8b"), MODEL),
            tokenizer_uri="Qwen/Qwen3-8B",
            tokenizer_revision=TOKENIZER_REVISION,
            relative_path=MODEL.relative_path,
        ),
        train_data=(ArtifactDataSource(step=data, relative_path="train.parquet"),),
        validation_data=(ArtifactDataSource(step=data, relative_path="validation.parquet"),),
        topology=SkyRLTopology(
            num_nodes=2,
            gpus_per_node=GPUS,
            gpu_variant="H100",
            role_plan=SkyRLRolePlan(
                colocate_all=False,
                colocate_policy_ref=True,
                policy_num_nodes=1,
                reference_num_nodes=1,
                policy_num_gpus_per_node=GPUS,
                num_inference_engines=GPUS,
                inference_engine_tensor_parallel_size=1,
                inference_engine_pipeline_parallel_size=1,
                inference_engine_data_parallel_size=1,
                inference_engine_expert_parallel_size=1,
                train_batch_size=PROMPTS,
                policy_mini_batch_size=PROMPTS,
                micro_train_batch_size_per_gpu=1,
                n_samples_per_prompt=8,
            ),
        ),
        retention=SkyRLRetentionPolicy(resume_checkpoint_count=2, temporary_storage_ttl_days=14),
        seed=17,
    )
    execution = IrisSkyRLExecution(
        cluster=inputs.cluster.name,
        cluster_config="lib/iris/config/cw-us-east-02a.yaml",
        cpu=96,
        memory="1400GB",
        disk="2TB",
        priority="batch",
        max_retries=1,
        target_cluster=inputs.cluster.name,
        parent_cluster_config="lib/iris/config/marin.yaml",
        coordinator_timeout_hours=24,
        wandb_entity="marin-community",
        job_timeout_seconds=0,
        credentials=("WANDB_API_KEY",),
    )
    return skyrl_step(spec, execution, export_hf=True)
