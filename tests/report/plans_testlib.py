"""Three plans for the report: one node, eight and sixteen, made by the real planner from real cards."""

from pathlib import Path
from typing import Any

from tools.launcher.catalog.cards import HfExport, ModelCard
from tools.launcher.catalog.load import (
    load_cluster_card,
    load_dataset_card,
    load_model_card,
    load_runtime_manifest,
)
from tools.launcher.cli.plan_experiment import plan_experiment
from tools.launcher.graph.ledger import VersionLedger
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.render.plan import LaunchPlan
from tools.launcher.rl import (
    ArtifactDataSource,
    ArtifactHfModel,
    IrisSkyRLExecution,
    SkyRLContextBudget,
    SkyRLRecipe,
    SkyRLRetentionPolicy,
    SkyRLRolePlan,
    SkyRLSpec,
    SkyRLTopology,
    dataset,
    evaluate,
    hf_model,
    skyrl_step,
)
from tools.launcher.rl.inputs import BuildInputs

_CARDS = Path("third_party")
VERSION = "2026.11.30"
MOE = "qwen3-30b-a3b"


def inputs() -> BuildInputs:
    """What a target with both models would declare."""
    models = [
        load_model_card(path.read_bytes(), source=str(path))
        for path in (_CARDS / "models/qwen3_0_6b.yaml", _CARDS / "models/qwen3_30b_a3b.yaml")
    ]
    data, runtime, cluster = (
        _CARDS / name
        for name in ("datasets/gsm8k.yaml", "marinskyrl/81ae0ef7.yaml", "clusters/cw_us_east_02a.yaml")
    )
    card = load_dataset_card(data.read_bytes(), source=str(data))
    return BuildInputs(
        version=VERSION,
        runtime=load_runtime_manifest(runtime.read_bytes(), source=str(runtime)),
        cluster=load_cluster_card(cluster.read_bytes(), source=str(cluster)),
        models={model.name: model for model in models},
        datasets={card.name: card},
    )


def colocated_1x8() -> LaunchPlan:
    """FSDP2 with everything on the same eight GPUs, a reference among it, and an evaluation behind it."""
    run = _step(
        "colocated",
        model=inputs().model("qwen3-0.6b"),
        recipe={"backend": {"trainer": {"strategy": "fsdp2", "algorithm": {"use_kl_loss": True}}}},
        topology=_topology(
            1,
            colocate_all=True,
            policy_num_nodes=1,
            reference_num_nodes=1,
            num_inference_engines=4,
            inference_engine_tensor_parallel_size=2,
            train_batch_size=16,
            policy_mini_batch_size=8,
        ),
        profile="fsdp",
    )
    score = evaluate(
        run, name="users/lab/tests/colocated-score", version=VERSION, env_class="gsm8k", episodes=8, seed=1
    )
    return _planned((score,), "colocated_1x8")


def moe_8x8() -> LaunchPlan:
    """Experts under Megatron on four nodes (TP 2, PP 2, EP 8), engines of eight GPUs on four more."""
    run = _step(
        "moe",
        model=inputs().model(MOE),
        recipe={"backend": _megatron(tensor=2, pipeline=2)},
        topology=_topology(
            8,
            colocate_all=False,
            policy_num_nodes=4,
            reference_num_nodes=4,
            num_inference_engines=4,
            inference_engine_data_parallel_size=8,
            inference_engine_expert_parallel_size=8,
            train_batch_size=64,
            policy_mini_batch_size=32,
            n_samples_per_prompt=8,
        ),
        profile="megatron",
        max_turns=4,
    )
    return _planned((run,), "moe_8x8", smoke="//tests/report:colocated_1x8")


def async_16x8() -> LaunchPlan:
    """A fully asynchronous run: training on eight nodes, generation on eight others at the same time."""
    run = _step(
        "fully-async-with-a-name-that-is-rather-long-to-see-what-becomes-of-it",
        model=inputs().model(MOE),
        recipe={"backend": _megatron(tensor=4, pipeline=2), "fully_async": _FULLY_ASYNC},
        topology=_topology(
            16,
            colocate_all=False,
            policy_num_nodes=8,
            reference_num_nodes=8,
            num_inference_engines=16,
            inference_engine_tensor_parallel_size=4,
            train_batch_size=128,
            policy_mini_batch_size=128,
            n_samples_per_prompt=8,
        ),
        profile="megatron",
        job_timeout_seconds=1_800,
    )
    return _planned((run,), "async_16x8", smoke="//tests/report:moe_8x8")


PLANS = {"colocated_1x8": colocated_1x8, "moe_8x8": moe_8x8, "async_16x8": async_16x8}
"""Name -> how to make the plan."""


def _megatron(*, tensor: int, pipeline: int) -> dict[str, Any]:
    sizes = {
        "tensor_model_parallel_size": tensor,
        "pipeline_model_parallel_size": pipeline,
        "context_parallel_size": 1,
        "expert_model_parallel_size": 8,
        "expert_tensor_parallel_size": 1,
    }
    return {
        "trainer": {
            "strategy": "megatron",
            "use_sample_packing": False,
            "offload_optimizer_during_rollouts": True,
            "algorithm": {"use_kl_loss": True},
            "policy": {"optimizer_config": {"lr": 1e-06}, "megatron_config": sizes},
            "ref": {"megatron_config": sizes},
        },
        "generator": {"vllm_attention_backend": "FLASH_ATTN"},
    }


def _topology(nodes: int, **sizes: Any) -> SkyRLTopology:
    plan = {
        "colocate_policy_ref": True,
        "policy_num_gpus_per_node": 8,
        "inference_engine_tensor_parallel_size": 1,
        "inference_engine_pipeline_parallel_size": 1,
        "inference_engine_data_parallel_size": 1,
        "inference_engine_expert_parallel_size": 1,
        "micro_train_batch_size_per_gpu": 1,
        "n_samples_per_prompt": 4,
    }
    return SkyRLTopology(
        num_nodes=nodes, gpus_per_node=8, gpu_variant="H100", role_plan=SkyRLRolePlan(**(plan | sizes))
    )


def _step(
    name: str,
    *,
    model: ModelCard,
    recipe: dict[str, Any],
    topology: SkyRLTopology,
    profile: str,
    max_turns: int = 1,
    job_timeout_seconds: int = 0,
) -> ArtifactStep:
    declared = inputs()
    export = model.export or HfExport(
        name=f"tests/{model.name}-sft",
        version="2026.11.01",
        fingerprint="1512cff8",
        uri=f"s3://lab/{model.name}",
    )
    gsm8k = declared.dataset("gsm8k")
    data = dataset(gsm8k, gsm8k.export)
    spec = SkyRLSpec(
        name=f"users/lab/tests/{name}",
        version=VERSION,
        recipe=SkyRLRecipe.combine(common=_COMMON, **recipe),
        context_budget=SkyRLContextBudget(
            request_window_tokens=9216,
            max_new_tokens_per_turn=6144,
            max_turns=max_turns,
            generated_budget_fraction=None,
            overlong_cache_fraction=None,
        ),
        runtime=declared.skyrl_runtime("fsdp" if profile == "fsdp" else "megatron"),
        model=ArtifactHfModel(
            step=hf_model(model, export),
            tokenizer_uri="Qwen/Qwen3-0.6B",
            tokenizer_revision="c1899de289a04d12100db370d81485cdf75e47ca",
            relative_path="hf/step-32",
        ),
        train_data=(ArtifactDataSource(step=data, relative_path="train.parquet"),),
        validation_data=(ArtifactDataSource(step=data, relative_path="validation.parquet"),),
        topology=topology,
        retention=SkyRLRetentionPolicy(resume_checkpoint_count=2, temporary_storage_ttl_days=14),
        seed=17,
    )
    execution = IrisSkyRLExecution(
        cluster=declared.cluster.name,
        cluster_config="lib/iris/config/cw-us-east-02a.yaml",
        cpu=48,
        memory="1400GB",
        disk="4TB",
        priority="batch",
        max_retries=1,
        target_cluster=declared.cluster.name,
        parent_cluster_config="lib/iris/config/marin.yaml",
        coordinator_timeout_hours=24,
        wandb_entity="marin-community",
        job_timeout_seconds=job_timeout_seconds,
        credentials=("WANDB_API_KEY",),
    )
    return skyrl_step(spec, execution, export_hf=True)


_FULLY_ASYNC: dict[str, Any] = {
    "entrypoint": "fully_async",
    "trainer": {"fully_async": {"num_parallel_generation_workers": 256}},
    "generator": {"enable_http_endpoint": True, "chat_template": {"name_or_path": "qwen3"}},
}

_COMMON: dict[str, Any] = {
    "environment": {"env_class": "gsm8k"},
    "data": {"kind": "parquet"},
    "trainer": {
        "algorithm": {"advantage_estimator": "grpo"},
        "epochs": 1,
        "max_steps": 20,
        "ckpt_interval": 10,
        "resume_mode": "latest",
        "logger": "wandb",
        "project_name": "skyrl-lab",
        "micro_forward_batch_size_per_gpu": 1,
    },
    "generator": {
        "backend": "vllm",
        "async_engine": True,
        "run_engines_locally": True,
        "gpu_memory_utilization": 0.7,
        "sampling_params": {"temperature": 1.0},
    },
    "extra_env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
}


def _planned(terminals: tuple[ArtifactStep, ...], name: str, *, smoke: str | None = None) -> LaunchPlan:
    planned = plan_experiment(
        terminals,
        inputs(),
        label=f"//tests/report:{name}",
        options={"scale": "full"},
        stage="rl",
        smoke=smoke,
        ledger=VersionLedger(),
    )
    return LaunchPlan.model_validate_json(planned.plan)
