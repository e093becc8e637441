"""The typed specs behind the two complete documents of the contract (marin-core 0.2.210)."""

from tools.launcher.catalog.cards import DatasetCard, HfExport, ModelCard
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.render.launch_document import Storage
from tools.launcher.rl import (
    ArtifactDataSource,
    ArtifactHfModel,
    IrisSkyRLExecution,
    SkyRLContextBudget,
    SkyRLRecipe,
    SkyRLRetentionPolicy,
    SkyRLRolePlan,
    SkyRLRuntime,
    SkyRLSpec,
    SkyRLTopology,
    dataset,
    hf_model,
    skyrl_step,
)

STORAGE = Storage(prefix="s3://marin-us-east-02a/marin", temporary_bucket="s3://marin-us-east-08a")
COMMIT = "81ae0ef7033c500207b191a2ae7c3806f6dc78ff"

MODEL = hf_model(
    ModelCard(kind="model", name="qwen3-0.6b"),
    HfExport(
        name="tests/qwen06-sft",
        version="2026.09.01",
        fingerprint="1512cff8",
        uri="s3://marin-us-east-02a/tests/qwen06-sft",
    ),
)
DATA = dataset(
    DatasetCard(kind="dataset", name="gsm8k"),
    HfExport(
        name="tests/gsm8k",
        version="2026.09.01",
        fingerprint="425a569b",
        uri="s3://marin-us-east-02a/tests/gsm8k",
    ),
)

_PARALLEL = {
    "tensor_model_parallel_size": 1,
    "pipeline_model_parallel_size": 2,
    "context_parallel_size": 1,
    "expert_model_parallel_size": 8,
    "expert_tensor_parallel_size": 1,
}


def smoke_fsdp() -> ArtifactStep:
    """One node of eight H100, FSDP2, colocated."""
    return skyrl_step(
        _spec(
            name="users/lab/tests/qwen06-gsm8k-rl",
            recipe=SkyRLRecipe.combine(
                common=_common(use_kl_loss=False, gpu_memory_utilization=0.7),
                run={
                    "trainer": {"strategy": "fsdp2", "max_steps": 8, "ckpt_interval": 4},
                },
            ),
            window=1536,
            new_tokens=1024,
            profile="fsdp",
            topology=SkyRLTopology(
                num_nodes=1, gpus_per_node=8, gpu_variant="H100", role_plan=_plan(True, 1, 8, 1, 1, 16, 4)
            ),
        ),
        _execution("700GB", "2TB"),
        export_hf=True,
    )


def moe_megatron() -> ArtifactStep:
    """Eight nodes of eight H100, Megatron, four policy nodes and four engines of eight GPUs."""
    return skyrl_step(
        _spec(
            name="users/lab/tests/snow-moe-rl",
            recipe=SkyRLRecipe.combine(
                common=_common(use_kl_loss=True, gpu_memory_utilization=0.75),
                run={
                    "trainer": {
                        "strategy": "megatron",
                        "max_steps": 200,
                        "ckpt_interval": 20,
                        "use_sample_packing": False,
                        "offload_optimizer_during_rollouts": True,
                        "policy": {"optimizer_config": {"lr": 1e-06}, "megatron_config": _PARALLEL},
                        "ref": {"megatron_config": _PARALLEL},
                    },
                    "generator": {"vllm_attention_backend": "FLASH_ATTN"},
                },
            ),
            window=9216,
            new_tokens=8192,
            profile="megatron",
            topology=SkyRLTopology(
                num_nodes=8, gpus_per_node=8, gpu_variant="H100", role_plan=_plan(False, 4, 4, 8, 8, 64, 8)
            ),
        ),
        _execution("1400GB", "4TB"),
        export_hf=True,
    )


def _common(*, use_kl_loss: bool, gpu_memory_utilization: float) -> dict[str, object]:
    return {
        "entrypoint": "standard",
        "environment": {"env_class": "gsm8k"},
        "data": {"kind": "parquet"},
        "trainer": {
            "algorithm": {"advantage_estimator": "grpo", "use_kl_loss": use_kl_loss},
            "epochs": 1,
            "resume_mode": "latest",
            "logger": "wandb",
            "project_name": "skyrl-lab",
            "micro_forward_batch_size_per_gpu": 1,
        },
        "generator": {
            "backend": "vllm",
            "run_engines_locally": True,
            "gpu_memory_utilization": gpu_memory_utilization,
            "sampling_params": {"temperature": 1.0},
        },
        "extra_env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    }


def _plan(
    colocate: bool, nodes: int, engines: int, dp: int, ep: int, batch: int, samples: int
) -> SkyRLRolePlan:
    return SkyRLRolePlan(
        colocate_all=colocate,
        colocate_policy_ref=True,
        policy_num_nodes=nodes,
        reference_num_nodes=nodes,
        policy_num_gpus_per_node=8,
        num_inference_engines=engines,
        inference_engine_tensor_parallel_size=1,
        inference_engine_pipeline_parallel_size=1,
        inference_engine_data_parallel_size=dp,
        inference_engine_expert_parallel_size=ep,
        train_batch_size=batch,
        policy_mini_batch_size=batch,
        micro_train_batch_size_per_gpu=1,
        n_samples_per_prompt=samples,
    )


def _spec(
    *, name: str, recipe: SkyRLRecipe, window: int, new_tokens: int, profile: str, topology: SkyRLTopology
) -> SkyRLSpec:
    return SkyRLSpec(
        name=name,
        version="2026.09.21",
        recipe=recipe,
        context_budget=SkyRLContextBudget(
            request_window_tokens=window,
            max_new_tokens_per_turn=new_tokens,
            max_turns=1,
            generated_budget_fraction=None,
            overlong_cache_fraction=None,
        ),
        runtime=SkyRLRuntime.model_validate({"profile": profile, "commit": COMMIT}),
        model=ArtifactHfModel(
            step=MODEL,
            tokenizer_uri="Qwen/Qwen3-0.6B",
            tokenizer_revision="c1899de289a04d12100db370d81485cdf75e47ca",
            relative_path="hf/step-32",
        ),
        train_data=(ArtifactDataSource(step=DATA, relative_path="train.parquet"),),
        validation_data=(ArtifactDataSource(step=DATA, relative_path="validation.parquet"),),
        topology=topology,
        retention=SkyRLRetentionPolicy(resume_checkpoint_count=2, temporary_storage_ttl_days=14),
        seed=17,
    )


def _execution(memory: str, disk: str) -> IrisSkyRLExecution:
    return IrisSkyRLExecution(
        cluster="cw-us-east-02a",
        cluster_config="lib/iris/config/cw-us-east-02a.yaml",
        cpu=48,
        memory=memory,
        disk=disk,
        priority="batch",
        max_retries=1,
        target_cluster="cw-us-east-02a",
        parent_cluster_config="lib/iris/config/marin.yaml",
        coordinator_timeout_hours=24,
        wandb_entity="marin-community",
        job_timeout_seconds=0,
    )
