"""GRPO on GSM8K with Qwen3-0.6B: one node of eight H100, FSDP2, a smoke run of eight steps."""

from typing import Literal

from tools.launcher.rl import (
    ArtifactDataSource,
    ArtifactHfModel,
    ArtifactStep,
    BuildInputs,
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

STEPS = {"smoke": 8, "full": 400}

TOKENIZER_REVISION = "c1899de289a04d12100db370d81485cdf75e47ca"

OBJECTIVE: dict[str, object] = {
    "entrypoint": "standard",
    "environment": {"env_class": "gsm8k"},
    "trainer": {"algorithm": {"advantage_estimator": "grpo", "use_kl_loss": False}},
    "generator": {"sampling_params": {"temperature": 1.0}},
}

BACKEND: dict[str, object] = {
    "trainer": {"strategy": "fsdp2", "micro_forward_batch_size_per_gpu": 1},
    "generator": {"backend": "vllm", "run_engines_locally": True, "gpu_memory_utilization": 0.7},
    "extra_env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
}

LOGGING: dict[str, object] = {"trainer": {"logger": "wandb", "project_name": "skyrl-lab"}}


def schedule(steps: int) -> dict[str, object]:
    """One pass over the data, with a checkpoint every half."""
    return {
        "data": {"kind": "parquet"},
        "trainer": {"epochs": 1, "max_steps": steps, "ckpt_interval": steps // 2, "resume_mode": "latest"},
    }


@rl_build_options
def main(inputs: BuildInputs, scale: Literal["smoke", "full"]) -> ArtifactStep:
    """Train and export; all roles share the eight GPUs."""
    qwen, gsm8k = inputs.model("qwen3-0.6b"), inputs.dataset("gsm8k")
    data = dataset(gsm8k, gsm8k.export)
    spec = SkyRLSpec(
        name="users/lab/tests/qwen06-gsm8k-rl",
        version=inputs.version,
        recipe=SkyRLRecipe.combine(
            objective=OBJECTIVE, backend=BACKEND, logging=LOGGING, schedule=schedule(STEPS[scale])
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
            step=hf_model(qwen, qwen.export),
            tokenizer_uri="Qwen/Qwen3-0.6B",
            tokenizer_revision=TOKENIZER_REVISION,
            relative_path="hf/step-32",
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
                train_batch_size=16,
                policy_mini_batch_size=16,
                micro_train_batch_size_per_gpu=1,
                n_samples_per_prompt=4,
            ),
        ),
        retention=SkyRLRetentionPolicy(resume_checkpoint_count=2, temporary_storage_ttl_days=14),
        seed=17,
    )
    execution = IrisSkyRLExecution(
        cluster=inputs.cluster.name,
        cluster_config="lib/iris/config/cw-us-east-02a.yaml",
        cpu=48,
        memory="700GB",
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
