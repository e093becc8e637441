"""A made-up experiment that a worker plans once for itself.

Whoever plans for the first time pays for more than the plan: indexes of the manifest, compiled patterns, and Python's
specialising of the code that it runs (PEP 659). What a worker has before it forks, no child makes for itself: a fifth
of a child's CPU.
"""

import contextlib

from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.cli.plan_experiment import PlannedExperiment, plan_experiment
from tools.launcher.graph.ledger import VersionLedger
from tools.launcher.rl import (
    ArtifactDataSource,
    ArtifactHfModel,
    ArtifactStep,
    BuildInputs,
    ClusterCard,
    DatasetCard,
    HfExport,
    IrisSkyRLExecution,
    ModelCard,
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

_NODES, _GPUS, _PROMPTS = 2, 8, 32

_MODEL = ModelCard(
    kind="model",
    name="warm-up",
    architecture="Qwen3ForCausalLM",
    num_attention_heads=16,
    num_key_value_heads=8,
    num_hidden_layers=28,
    vocab_size=151936,
    max_position_embeddings=40960,
    hidden_size=1024,
    head_dim=128,
    dtype="bfloat16",
    parameters=596049920,
    repository="warm/up",
    revision="0" * 40,
    export=HfExport(name="warm/up-model", version="2026.01.01", fingerprint="0" * 8, relative_path="hf"),
)
_DATA = DatasetCard(
    kind="dataset",
    name="warm-up",
    rows=16 * _PROMPTS,
    validation_rows=_PROMPTS,
    max_prompt_tokens=64,
    env_class="warm_up",
    export=HfExport(name="warm/up-data", version="2026.01.01", fingerprint="0" * 8),
    train_path="train.parquet",
    validation_path="validation.parquet",
)
_CLUSTER = ClusterCard(
    kind="cluster",
    name="warm-up",
    scheduler="embedded",
    config="embedded",
    gpu_variant="H100",
    gpus_per_node=_GPUS,
    max_nodes=_NODES,
    cpu_per_node=128,
    memory_per_node_gb=2014,
    disk_per_node_gb=27648,
    hbm_gb=80,
    marin_prefix="local://warm/marin",
    temp_bucket="local://warm",
    env_classes=("warm_up",),
)


@rl_build_options
def main(inputs: BuildInputs, evaluate_first: bool) -> ArtifactStep:
    """Train on two nodes, all roles on the same GPUs."""
    cards = inputs.dataset(_DATA.name), inputs.model(_MODEL.name)
    exports = [card.export for card in cards if card.export is not None]
    data, model = dataset(_DATA, exports[0]), hf_model(_MODEL, exports[1])
    spec = SkyRLSpec(
        name="warm/up",
        version=inputs.version,
        recipe=SkyRLRecipe.combine(
            objective={
                "entrypoint": "standard",
                "environment": {"env_class": _DATA.env_class},
                "trainer": {"algorithm": {"advantage_estimator": "grpo", "use_kl_loss": False}},
                "generator": {"sampling_params": {"temperature": 1.0}},
            },
            backend={
                "trainer": {"strategy": "fsdp2", "micro_forward_batch_size_per_gpu": 1},
                "generator": {"backend": "vllm", "run_engines_locally": True, "gpu_memory_utilization": 0.7},
            },
            logging={"trainer": {"logger": "console", "project_name": "warm-up"}},
            schedule={
                "data": {"kind": "parquet"},
                "trainer": {
                    "epochs": 2,
                    "max_steps": 20,
                    "ckpt_interval": 5,
                    "resume_mode": "latest",
                    "eval_before_train": evaluate_first,
                    "eval_interval": 5,
                },
            },
        ),
        context_budget=SkyRLContextBudget(
            request_window_tokens=128,
            max_new_tokens_per_turn=64,
            max_turns=1,
            generated_budget_fraction=None,
            overlong_cache_fraction=None,
        ),
        runtime=inputs.skyrl_runtime("fsdp"),
        model=ArtifactHfModel(
            step=model, tokenizer_uri="warm/up", tokenizer_revision="0" * 40, relative_path="hf"
        ),
        train_data=(ArtifactDataSource(step=data, relative_path="train.parquet"),),
        validation_data=(ArtifactDataSource(step=data, relative_path="validation.parquet"),),
        topology=SkyRLTopology(
            num_nodes=_NODES,
            gpus_per_node=_GPUS,
            gpu_variant="H100",
            role_plan=SkyRLRolePlan(
                colocate_all=True,
                colocate_policy_ref=True,
                policy_num_nodes=_NODES,
                reference_num_nodes=_NODES,
                policy_num_gpus_per_node=_GPUS,
                num_inference_engines=_NODES * _GPUS,
                inference_engine_tensor_parallel_size=1,
                inference_engine_pipeline_parallel_size=1,
                inference_engine_data_parallel_size=1,
                inference_engine_expert_parallel_size=1,
                train_batch_size=_PROMPTS,
                policy_mini_batch_size=_PROMPTS,
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


def plan_warm_up(runtime: RuntimeManifest) -> PlannedExperiment:
    """Plan the made-up experiment, on a made-up cluster. Raises like `plan_experiment`."""
    inputs = BuildInputs(
        version="2026.01.01",
        runtime=runtime,
        cluster=_CLUSTER,
        models={_MODEL.name: _MODEL},
        datasets={_DATA.name: _DATA},
    )
    options = {"evaluate_first": "false"}
    return plan_experiment(
        main.build(inputs, options),
        inputs,
        label="//warm:up",
        options=options,
        stage="rl",
        smoke=None,
        ledger=VersionLedger(),
    )


def warm_up(runtime: RuntimeManifest) -> None:
    """Make in this process what planning makes once. A manifest that refuses the experiment gives less of it."""
    # Nobody asked for this plan: what is wrong with a manifest, the experiments that use it are told.
    with contextlib.suppress(Exception):
        plan_warm_up(runtime)
