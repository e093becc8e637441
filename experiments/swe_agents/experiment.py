"""Qwen3-8B as an agent that repairs software, on tasks selected from TaskTrove: one node trains, one serves."""

from tools.launcher.rl import (
    ArtifactHfModel,
    ArtifactStep,
    BuildInputs,
    HfExport,
    IrisSkyRLExecution,
    SkyRLContextBudget,
    SkyRLIngress,
    SkyRLRecipe,
    SkyRLRetentionPolicy,
    SkyRLRolePlan,
    SkyRLSpec,
    SkyRLTopology,
    TaskTroveDataSource,
    TaskTroveSelection,
    dataset,
    hf_model,
    rl_build_options,
    skyrl_step,
)

GPUS = 8
TASKS = 512
PROMPTS = 16
STEPS = 60

# Where the weights were imported to: name, version and the fingerprint of that artifact's record.
MODEL = HfExport(name="models/qwen3-8b", version="2026.11.30", fingerprint="c0ffee08", relative_path="hf")
TOKENIZER_REVISION = "b968826d9c46dd6066d109eabc6255188de91218"

OBJECTIVE: dict[str, object] = {
    "entrypoint": "terminal_bench",
    "trainer": {"algorithm": {"advantage_estimator": "rloo", "use_kl_loss": False}},
    "generator": {"sampling_params": {"temperature": 1.0}},
}

# 128 trials at a time are what one step needs. The rollout details are the exact tokens of every call, which
# training needs; failures of a sandbox are masked, so that they are not scored like wrong answers.
AGENTS: dict[str, object] = {
    "terminal_bench": {
        "harbor": {
            "name": "terminus-2",
            "n_concurrent_trials": 128,
            "verifier_override_timeout_sec": 2400,
            "collect_rollout_details": True,
            "preserve_logprobs_on_timeout": False,
            "mask_exceptions": ["DaytonaError", "EnvironmentStartTimeoutError"],
        }
    },
    "trajectory_runner": {"process_pool": {"num_coordinators": 4}},
}

BACKEND: dict[str, object] = {
    "trainer": {
        "strategy": "fsdp2",
        "micro_forward_batch_size_per_gpu": 1,
        "gradient_checkpointing": True,
        "policy": {"sequence_parallel_size": 4},
    },
    "generator": {
        "backend": "vllm",
        "run_engines_locally": True,
        "gpu_memory_utilization": 0.85,
        "async_engine": True,
        "batched": False,
        "enable_http_endpoint": True,
        "chat_template": {"source": "name", "name_or_path": "qwen3_with_thinking"},
    },
    "extra_env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
}

LOGGING: dict[str, object] = {"trainer": {"logger": "wandb", "project_name": "skyrl-lab"}}

SCHEDULE: dict[str, object] = {
    "data": {"kind": "tasks"},
    "trainer": {
        "epochs": -(-STEPS * PROMPTS // TASKS),
        "max_steps": STEPS,
        "ckpt_interval": 10,
        "resume_mode": "latest",
        "eval_before_train": False,
        "eval_interval": -1,
    },
}


@rl_build_options
def main(inputs: BuildInputs) -> ArtifactStep:
    """Train and export; sandboxes reach the engines through the controller of Iris."""
    trove = inputs.dataset("tasktrove-clean")
    tasks = TaskTroveDataSource(
        step=dataset(trove, trove.export),
        selection=TaskTroveSelection(
            sources=("swe",), tags=("python",), modes=(), tag_match="any", limit=TASKS, seed=7
        ),
        relative_path="pack.parquet",
        manifest_path="manifest.json",
        verifier_ref=trove.tasktrove_verify_tool_ref or "",
    )
    spec = SkyRLSpec(
        name="users/lab/qwen8-swe-agents",
        version=inputs.version,
        recipe=SkyRLRecipe.combine(
            objective=OBJECTIVE, agents=AGENTS, backend=BACKEND, logging=LOGGING, schedule=SCHEDULE
        ),
        context_budget=SkyRLContextBudget(
            request_window_tokens=32768,
            max_new_tokens_per_turn=4096,
            max_turns=24,
            generated_budget_fraction=0.5,
            overlong_cache_fraction=None,
        ),
        runtime=inputs.skyrl_runtime("fsdp"),
        model=ArtifactHfModel(
            step=hf_model(inputs.model("qwen3-8b"), MODEL),
            tokenizer_uri="Qwen/Qwen3-8B",
            tokenizer_revision=TOKENIZER_REVISION,
            relative_path=MODEL.relative_path,
        ),
        train_data=(tasks,),
        validation_data=(),
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
                num_inference_engines=GPUS // 2,
                inference_engine_tensor_parallel_size=2,
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
        disk="4TB",
        priority="batch",
        max_retries=1,
        target_cluster=inputs.cluster.name,
        parent_cluster_config="lib/iris/config/marin.yaml",
        coordinator_timeout_hours=48,
        wandb_entity="marin-community",
        job_timeout_seconds=0,
        credentials=("DAYTONA_RL_API_KEY", "WANDB_API_KEY"),
        # Sandboxes run outside the cluster. "" is the public host of the hub, which the runtime knows.
        ingress=SkyRLIngress(mode="controller", host="", record_literal=False, vllm_http_port=8000),
    )
    return skyrl_step(spec, execution, export_hf=True)
