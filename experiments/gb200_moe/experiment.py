"""GRPO with KL loss on GSM8K with Qwen3-30B-A3B: Megatron, eight GB200 nodes of four GPUs, half a rack."""

from dataclasses import dataclass
from typing import Literal

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

GPUS = 4

# Where the weights were imported to: name, version and the fingerprint of that artifact's record.
MODEL = HfExport(
    name="models/qwen3-30b-a3b", version="2026.11.30", fingerprint="c0ffee30", relative_path="hf"
)
TOKENIZER_REVISION = "ad44e777bcd18fa416d9da3bd8f70d33ebb85d39"


@dataclass(frozen=True)
class Scale:
    """What differs between the run and its smoke: as many nodes for the policy as for the engines."""

    name: str
    nodes_per_side: int
    prompts: int
    steps: int
    ckpt_interval: int
    optimizer_on_host: float
    """Share of the optimizer states in host memory: on 4 GPUs they leave no room for activations."""


SCALES = {
    "smoke": Scale("users/lab/qwen30-gb200-smoke", 1, 16, 8, 4, 1.0),
    "full": Scale("users/lab/qwen30-gb200", 4, 64, 100, 20, 0.0),
}

OBJECTIVE: dict[str, object] = {
    "entrypoint": "standard",
    "environment": {"env_class": "gsm8k"},
    "trainer": {
        "algorithm": {"advantage_estimator": "grpo", "use_kl_loss": True, "kl_loss_coef": 0.001},
        "policy": {"optimizer_config": {"lr": 1.0e-6}},
    },
    "generator": {"sampling_params": {"temperature": 1.0}},
}

# Of policy and reference, which share their GPUs. A node has four GPUs, so experts go over four ranks.
SIZES: dict[str, object] = {
    "tensor_model_parallel_size": 1,
    "pipeline_model_parallel_size": 1,
    "context_parallel_size": 1,
    "expert_model_parallel_size": GPUS,
    "expert_tensor_parallel_size": 1,
}

LOGGING: dict[str, object] = {"trainer": {"logger": "wandb", "project_name": "skyrl-lab"}}


def backend(scale: Scale) -> dict[str, object]:
    """Settings of trainer and engines; a scale that needs it keeps optimizer states in host memory."""
    return {
        "trainer": {
            "strategy": "megatron",
            "micro_forward_batch_size_per_gpu": 1,
            "use_sample_packing": False,
            "offload_optimizer_during_rollouts": True,
            "policy": {
                "megatron_config": {
                    **SIZES,
                    "transformer_config_kwargs": {
                        "recompute_granularity": "full",
                        "recompute_method": "uniform",
                        "recompute_num_layers": 1,
                    },
                    "optimizer_config_kwargs": {
                        "optimizer_cpu_offload": scale.optimizer_on_host > 0,
                        "optimizer_offload_fraction": scale.optimizer_on_host,
                    },
                }
            },
            "ref": {"megatron_config": SIZES},
        },
        "generator": {"backend": "vllm", "run_engines_locally": True, "gpu_memory_utilization": 0.8},
        "extra_env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    }


def schedule(scale: Scale) -> dict[str, object]:
    """Less than one pass over the data; the last step has a checkpoint to export."""
    return {
        "data": {"kind": "parquet"},
        "trainer": {
            "epochs": 1,
            "max_steps": scale.steps,
            "ckpt_interval": scale.ckpt_interval,
            "resume_mode": "latest",
            "eval_before_train": False,
            "eval_interval": scale.ckpt_interval,
        },
    }


@rl_build_options
def main(inputs: BuildInputs, scale: Literal["smoke", "full"]) -> ArtifactStep:
    """Train and export; policy and engines on nodes of their own."""
    sized = SCALES[scale]
    gsm8k = inputs.dataset("gsm8k")
    data = dataset(gsm8k, gsm8k.export)
    spec = SkyRLSpec(
        name=sized.name,
        version=inputs.version,
        recipe=SkyRLRecipe.combine(
            objective=OBJECTIVE, backend=backend(sized), logging=LOGGING, schedule=schedule(sized)
        ),
        context_budget=SkyRLContextBudget(
            request_window_tokens=4608,
            max_new_tokens_per_turn=4096,
            max_turns=1,
            generated_budget_fraction=None,
            overlong_cache_fraction=None,
        ),
        runtime=inputs.skyrl_runtime("megatron"),
        model=ArtifactHfModel(
            step=hf_model(inputs.model("qwen3-30b-a3b"), MODEL),
            tokenizer_uri="Qwen/Qwen3-30B-A3B",
            tokenizer_revision=TOKENIZER_REVISION,
            relative_path=MODEL.relative_path,
        ),
        train_data=(ArtifactDataSource(step=data, relative_path="train.parquet"),),
        validation_data=(ArtifactDataSource(step=data, relative_path="validation.parquet"),),
        topology=SkyRLTopology(
            num_nodes=2 * sized.nodes_per_side,
            gpus_per_node=GPUS,
            gpu_variant="GB200",
            role_plan=SkyRLRolePlan(
                colocate_all=False,
                colocate_policy_ref=True,
                policy_num_nodes=sized.nodes_per_side,
                reference_num_nodes=sized.nodes_per_side,
                policy_num_gpus_per_node=GPUS,
                num_inference_engines=sized.nodes_per_side,
                inference_engine_tensor_parallel_size=1,
                inference_engine_pipeline_parallel_size=1,
                inference_engine_data_parallel_size=GPUS,
                inference_engine_expert_parallel_size=GPUS,
                train_batch_size=sized.prompts,
                policy_mini_batch_size=sized.prompts,
                micro_train_batch_size_per_gpu=1,
                n_samples_per_prompt=8,
            ),
        ),
        retention=SkyRLRetentionPolicy(resume_checkpoint_count=2, temporary_storage_ttl_days=14),
        seed=17,
    )
    execution = IrisSkyRLExecution(
        cluster=inputs.cluster.name,
        cluster_config="lib/iris/config/cw-us-east-08a.yaml",
        cpu=96,
        memory="760GB",
        disk="4TB",
        priority="batch",
        max_retries=1,
        target_cluster=inputs.cluster.name,
        parent_cluster_config="lib/iris/config/marin.yaml",
        coordinator_timeout_hours=48,
        wandb_entity="marin-community",
        job_timeout_seconds=0,
        credentials=("WANDB_API_KEY",),
    )
    return skyrl_step(spec, execution, export_hf=True)
