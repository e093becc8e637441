"""Cases of the BKD checks, without those of memory."""

from typing import Any

from tools.launcher.catalog.runtime_manifest import BackendFix, NodeVersions, TaskImage
from tools.launcher.preflight.planned import PlannedFrom
from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes
from tools.launcher.preflight.testing.experiments import planned
from tools.launcher.preflight.testing.subjects import DELETED, cluster_card, model_card, pinned_runtime

PROFILE = "runtime.profile"
COMMIT = "runtime.launcher_commit"
MODE = "run.mode"
VARIANT = "iris.allocation.gpu_variant"
STRATEGY = "skyrl.trainer.strategy"
ENTRYPOINT = "skyrl.entrypoint"
BACKEND = "skyrl.generator.backend"
LOCAL = "skyrl.generator.run_engines_locally"
SYNC = "skyrl.generator.weight_sync_backend"
TRANSPORT = "skyrl.generator.weight_sync_transport"
PLACEMENT = "skyrl.trainer.placement"
COLOCATED = f"{PLACEMENT}.colocate_all"
POLICY_NODES = f"{PLACEMENT}.policy_num_nodes"
KL = "skyrl.trainer.algorithm.use_kl_loss"
TIS = "skyrl.trainer.algorithm.use_tis"
LOSS = "skyrl.trainer.algorithm.policy_loss_type"
PACKING = "skyrl.trainer.use_sample_packing"
MICRO_FORWARD = "skyrl.trainer.micro_forward_batch_size_per_gpu"
LORA = "skyrl.trainer.policy.model.lora.rank"
COLLECTIVE = "skyrl.trainer.distributed.worker_collective_timeout_seconds"
SHARE = "skyrl.generator.gpu_memory_utilization"
SAMPLING = "skyrl.generator.sampling_params"
EVAL_SAMPLING = "skyrl.generator.eval_sampling_params"
HTTP = "skyrl.generator.enable_http_endpoint"
TP = "skyrl.generator.inference_engine_tensor_parallel_size"
PP = "skyrl.generator.inference_engine_pipeline_parallel_size"
DP = "skyrl.generator.inference_engine_data_parallel_size"
EP = "skyrl.generator.inference_engine_expert_parallel_size"
DCP = "skyrl.generator.inference_engine_decode_context_parallel_size"
ENGINES = "skyrl.generator.num_inference_engines"
FSDP = "skyrl.trainer.policy.fsdp_config"
REF_FSDP = "skyrl.trainer.ref.fsdp_config"
CRITIC_FSDP = "skyrl.trainer.critic.fsdp_config"
MEGATRON = "skyrl.trainer.policy.megatron_config"
REF_MEGATRON = "skyrl.trainer.ref.megatron_config"
KWARGS = f"{MEGATRON}.transformer_config_kwargs"
ULYSSES = "skyrl.trainer.policy.sequence_parallel_size"
OPTIMIZER = f"{MEGATRON}.optimizer_config_kwargs"

_TENSOR, _PIPELINE, _CONTEXT, _EXPERT, _EXPERT_TENSOR = (
    f"{MEGATRON}.{name}"
    for name in (
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "context_parallel_size",
        "expert_model_parallel_size",
        "expert_tensor_parallel_size",
    )
)
_REF_TENSOR, _REF_PIPELINE, _REF_EXPERT = (
    f"{REF_MEGATRON}.{name}"
    for name in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "expert_model_parallel_size")
)

_RESOLVED = {
    "skyrl.context_budget": DELETED,
    "runtime.entrypoint": "skyrl_train.entrypoints.main_base",
}
_EXPORT = {**_RESOLVED, MODE: "checkpoint_export"}
_CONTEXT_TWO = {f"{FSDP}.context_parallel_size": 2, PACKING: False}
_SGLANG = {BACKEND: "sglang"}
_NO_EXPERTS = {_EXPERT: 1, _REF_EXPERT: 1, EP: 1}
"""The moe example for a dense model."""
_BLOCKS: dict[str, Any] = {
    ENTRYPOINT: "fully_async",
    TRANSPORT: "expert_block",
    "skyrl.generator.engine_init_kwargs": {"moe_backend": "triton"},
}
_REPLAY = f"{FSDP}.moe_router_replay"
_MEGATRON_REPLAY = f"{MEGATRON}.moe_router_replay"


def _model(**facts: Any) -> dict[str, Any]:
    return {"model": model_card(**facts)}


def _moe(**facts: Any) -> dict[str, Any]:
    """A model of 32 heads, 4 KV heads, 48 layers and 128 experts."""
    return _model(
        **{
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "num_hidden_layers": 48,
            "num_experts": 128,
            "moe_intermediate_size": 768,
        }
        | facts
    )


def _runtime(**facts: Any) -> Any:
    return lambda: pinned_runtime(**facts)


_SUPPORTS: dict[str, Any] = {
    "architectures": ("Qwen3ForCausalLM", "Qwen3MoeForCausalLM"),
    "weight_sync_architectures": ("Qwen3ForCausalLM", "Qwen3MoeForCausalLM"),
    "context_parallel_architectures": ("Qwen3ForCausalLM",),
    "no_sequence_parallel": ("LabHybridForCausalLM",),
    "unsupported": (),
}


def _supports(**facts: Any) -> Any:
    return _runtime(**(_SUPPORTS | facts))


def _image(**facts: Any) -> Any:
    return _runtime(images=(TaskImage(**({"arch": "x86_64"} | facts)),))


_FSDP_MODULES = (
    "flash_attn",
    "flash_attn_2_cuda",
    "memray",
    "daytona",
    "harbor",
    "quack",
    "vllm",
    "skyrl_train.models.grug_moe",
)


def _nodes(python: str, ray: str = "2.51.1") -> Any:
    head = NodeVersions(python="3.12.11", ray="2.51.1")
    return _runtime(node_versions={"head": head, "worker": NodeVersions(python=python, ray=ray)})


def _relying(*fixes: str) -> Any:
    def origin() -> PlannedFrom:
        return planned().model_copy(update={"required_fixes": fixes})

    return origin


_FIX = BackendFix(id="moe-sync-order", commit="0a1b2c3d", what="weights of experts arrive in order")

FAILING = (
    # --- profiles ---------------------------------------------------------------------------------
    Fails(
        check="BKD-01",
        changes={STRATEGY: "megatron"},
        says="profile fsdp provides fsdp2; the recipe asks strategy megatron, which profile megatron provides",
    ),
    Fails(
        check="BKD-01",
        changes={STRATEGY: "fsdp"},
        says="profile fsdp provides fsdp2; the recipe asks strategy fsdp, which no profile provides",
    ),
    Fails(
        check="BKD-01",
        base="moe",
        changes={STRATEGY: DELETED},
        says="profile megatron provides megatron; without a strategy it is fsdp2",
    ),
    Fails(
        check="BKD-01",
        changes={PROFILE: "fdsp"},
        says="profile 'fdsp' has no image. Profiles: fsdp, megatron",
    ),
    Fails(
        check="BKD-01",
        changes={PROFILE: "deepspeed", STRATEGY: "deepspeed"},
        says="profile 'deepspeed' has no image",
    ),
    Fails(check="BKD-01", changes={PROFILE: "rl", STRATEGY: "fsdp3"}, says="profile 'rl' has no image"),
    Fails(check="BKD-01", changes={PROFILE: "fsdp-export"}, says="profile 'fsdp-export' has no image"),
    Fails(check="BKD-01", changes=_EXPORT, says="Profiles: fsdp-export, megatron-export"),
    Fails(
        check="BKD-02",
        changes={STRATEGY: "fsdp3"},
        says="unknown strategy 'fsdp3'. Known: fsdp, fsdp2, deepspeed, megatron. Did you mean fsdp2?",
    ),
    Fails(check="BKD-02", changes={STRATEGY: "megatrom", PROFILE: "x"}, says="Did you mean megatron?"),
    Fails(check="BKD-02", changes={STRATEGY: "", PROFILE: ["x"]}, says="unknown strategy ''"),
    Fails(check="BKD-03", changes={BACKEND: "vlm"}, says="unknown backend 'vlm'. Use vllm or sglang"),
    Fails(check="BKD-03", changes={BACKEND: "tensorrt"}, says="unknown backend 'tensorrt'"),
    Fails(
        check="BKD-14",
        changes={STRATEGY: "fsdp", f"{FSDP}.cpu_offload": True},
        says="strategy fsdp cannot offload the policy to the CPU. cpu_offload needs fsdp2",
    ),
    # The trainer asks it of a critic that nobody places as well.
    Fails(
        check="BKD-14",
        changes={STRATEGY: "fsdp", "skyrl.trainer.critic.fsdp_config.cpu_offload": True},
        says="strategy fsdp cannot offload the critic to the CPU",
    ),
    Fails(
        check="BKD-15",
        changes={
            STRATEGY: "deepspeed",
            "skyrl.trainer.policy.deepspeed_config.zero_optimization.stage": 2,
        },
        says="deepspeed policy has ZeRO stage 2, this runtime needs 3",
    ),
    Fails(
        check="BKD-15",
        changes={STRATEGY: "deepspeed", "skyrl.trainer.policy.optimizer_config.offload_after_step": False},
        says="deepspeed needs offload_after_step: true, of policy and critic; the policy's is false",
    ),
    Fails(
        check="BKD-15",
        changes={STRATEGY: "deepspeed", "skyrl.trainer.critic.optimizer_config.offload_after_step": False},
        says="the critic's is false",
    ),
    Fails(
        check="BKD-16",
        changes={"skyrl.trainer.offload_optimizer_during_rollouts": True},
        says="offload_optimizer_during_rollouts needs colocate_all: false",
    ),
    Fails(check="BKD-36", changes={LOCAL: DELETED}, says="run_engines_locally is not stated"),
    Fails(check="BKD-36", changes={LOCAL: False}, says="Marin places local engines only"),
    Fails(check="BKD-36", changes={BACKEND: DELETED}, says="generator.backend is not stated"),
    Fails(check="BKD-36", changes={BACKEND: ""}, says="generator.backend is not stated"),
    # --- FSDP -------------------------------------------------------------------------------------
    Fails(
        check="BKD-13",
        changes={f"{FSDP}.context_parallel_size": 2},
        says="context_parallel_size=2 needs use_sample_packing: false; it is true where it is left out",
    ),
    Fails(
        check="BKD-13",
        changes=_CONTEXT_TWO | {PACKING: True},
        says="needs use_sample_packing: false; it is true",
    ),
    Fails(
        check="BKD-13",
        changes={f"{FSDP}.context_parallel_size": 3, PACKING: False},
        says="context_parallel_size=3 does not divide the policy world of 8 GPUs (8 % 3 = 2). Valid: 1, 2, 4, 8",
    ),
    Fails(
        check="BKD-13",
        changes=_CONTEXT_TWO | {ULYSSES: 2},
        says="excludes sequence_parallel_size=2: both split the sequence",
    ),
    Fails(
        check="BKD-13",
        base="moe",
        changes=_CONTEXT_TWO,
        says="needs strategy fsdp2, got megatron. Megatron has its own size, in megatron_config",
    ),
    Fails(check="BKD-13", changes=_CONTEXT_TWO | {STRATEGY: "fsdp"}, says="needs strategy fsdp2, got fsdp"),
    Fails(
        check="BKD-13",
        changes=_CONTEXT_TWO | {f"{FSDP}.cp_style": "ring_flash_attn"},
        says="with cp_style='ring_flash_attn'. Known: ring_sdpa",
    ),
    Fails(
        check="BKD-13",
        changes=_CONTEXT_TWO | {f"{FSDP}.cp_rotate_method": "ring"},
        says="with cp_rotate_method='ring'. Known: allgather, all_to_all",
    ),
    Fails(
        check="BKD-13",
        changes={f"{REF_FSDP}.context_parallel_size": 3, PACKING: False},
        says="trainer.ref.fsdp_config.context_parallel_size=3 does not divide the ref world",
    ),
    Fails(
        check="BKD-13",
        changes={f"{CRITIC_FSDP}.context_parallel_size": 8, PACKING: False},
        says="trainer.critic.fsdp_config.context_parallel_size=8 does not divide the critic world of 4 GPUs",
    ),
    Fails(
        check="BKD-13",
        changes={f"{CRITIC_FSDP}.context_parallel_size": 2},
        says="trainer.critic.fsdp_config.context_parallel_size=2 needs use_sample_packing: false",
    ),
    Fails(check="BKD-18", changes={f"{FSDP}.fsdp_size": 6}, says="fsdp_size=6, the policy world is 8"),
    Fails(
        check="BKD-18",
        changes={f"{REF_FSDP}.fsdp_size": 4, KL: True},
        says="fsdp_size=4, the ref world is 8",
    ),
    Fails(
        check="BKD-35",
        changes={_TENSOR: 2},
        says="strategy fsdp2 does not read trainer.policy.megatron_config.tensor_model_parallel_size=2; its sizes are in "
        "fsdp_config",
        severity="warning",
    ),
    Fails(
        check="BKD-35",
        base="moe",
        changes={f"{FSDP}.expert_model_parallel_size": 8},
        says="strategy megatron does not read trainer.policy.fsdp_config.expert_model_parallel_size=8",
        severity="warning",
    ),
    Fails(
        check="BKD-37",
        changes={f"{FSDP}.expert_model_parallel_size": 3},
        says="policy: world 8 is not divisible by expert_model_parallel_size*expert_tensor_parallel_size=3*1=3",
    ),
    Fails(check="BKD-37", changes={f"{FSDP}.expert_tensor_parallel_size": 3}, says="=1*3=3"),
    # --- Megatron ---------------------------------------------------------------------------------
    Fails(check="BKD-05", base="moe", changes=_SGLANG, says="megatron needs backend vllm, got 'sglang'"),
    Fails(
        check="BKD-05", base="moe", changes={SYNC: "gloo"}, says="needs weight_sync_backend nccl, got 'gloo'"
    ),
    Fails(
        check="BKD-05",
        base="moe",
        changes={ULYSSES: 2},
        says="megatron has no Ulysses: trainer.policy.sequence_parallel_size=2 must be 1",
    ),
    Fails(
        check="BKD-05",
        base="moe",
        changes={"skyrl.trainer.ref.sequence_parallel_size": 2, KL: False},
        says="trainer.ref.sequence_parallel_size=2 must be 1",
    ),
    Fails(check="BKD-05", base="moe", changes={LORA: 16}, says="megatron trains no LoRA, rank is 16"),
    Fails(
        check="BKD-05",
        base="moe",
        changes={_REPLAY: True, f"{KWARGS}.moe_router_fusion": True},
        says="moe_router_fusion must stay off with moe_router_replay",
    ),
    Fails(
        check="BKD-05",
        base="moe",
        changes={_MEGATRON_REPLAY: True, f"{MEGATRON}.model_config_kwargs.moe": {"moe_router_fusion": True}},
        says="moe_router_fusion must stay off",
        at=f"{MEGATRON}.model_config_kwargs.moe.moe_router_fusion",
    ),
    Fails(
        check="BKD-06",
        base="moe",
        changes={_TENSOR: 3},
        says="policy: world 32 is not divisible by tp*pp*cp=3*2*1=6 (32 % 6 = 2)",
    ),
    Fails(check="BKD-06", base="moe", changes={_REF_PIPELINE: 5}, says="ref: world 32 is not divisible"),
    Fails(check="BKD-06", base="moe", changes={_TENSOR: 3, _PIPELINE: 5, _CONTEXT: 7}, says="=3*5*7=105"),
    # A context size of 4 would leave dp=4 for ep=8 (BKD-07).
    Fails(check="BKD-06", base="moe", changes={_CONTEXT: 3, PACKING: True}, says="=1*2*3=6"),
    # Failure row 50.
    Fails(
        check="BKD-06",
        base="moe",
        changes={
            "iris.allocation.num_nodes": 1,
            "iris.allocation.gpus_per_node": 1,
            POLICY_NODES: 1,
            f"{PLACEMENT}.policy_num_gpus_per_node": 1,
            _TENSOR: 2,
            _PIPELINE: 1,
        },
        says="world 1 is not divisible by tp*pp*cp=2*1*1=2",
    ),
    Fails(
        check="BKD-07",
        base="moe",
        changes={_EXPERT: 3},
        says="policy: training ep=3 does not divide dp=16 (16 % 3 = 1). Use one of 1, 2, 4, 8, 16",
    ),
    Fails(
        check="BKD-07",
        base="moe",
        changes={_EXPERT: 32, _EXPERT_TENSOR: DELETED},
        says="training ep=32 does not divide dp=16 (16 % 32 = 16)",
    ),
    Fails(check="BKD-07", base="moe", changes={_REF_EXPERT: 5}, says="ref: training ep=5 does not divide"),
    # Case n91 and the worked rows of typed-spec.md §4.
    Fails(
        check="BKD-08",
        base="moe",
        changes={_EXPERT: 16, _EXPERT_TENSOR: 2},
        says="policy: world 32 is not divisible by etp*ep*pp=2*16*2=64 (32 % 64 = 32)",
    ),
    Fails(
        check="BKD-08",
        base="moe",
        changes={POLICY_NODES: 1, f"{PLACEMENT}.ref_num_nodes": 1, "iris.allocation.num_nodes": 5},
        says="world 8 is not divisible by etp*ep*pp=1*8*2=16 (8 % 16 = 8)",
    ),
    Fails(check="BKD-08", base="moe", changes={_EXPERT_TENSOR: 3}, says="etp*ep*pp=3*8*2=48"),
    Fails(
        check="BKD-12",
        base="moe",
        changes={_TENSOR: 2, _EXPERT_TENSOR: 1, f"{KWARGS}.sequence_parallel": False},
        facts=_moe(),
        says="tp=2 with ep=8 on an MoE needs megatron sequence_parallel, it is false",
    ),
    Fails(
        check="BKD-12",
        base="moe",
        changes={_TENSOR: 2},
        runtime=_runtime(megatron_sequence_parallel_with_tp=False),
        says="it is off in this runtime",
    ),
    Fails(
        check="BKD-32",
        base="moe",
        changes={_CONTEXT: 2},
        says="policy: megatron context_parallel_size=2 needs use_sample_packing: true, it is false",
    ),
    Fails(
        check="BKD-32",
        base="moe",
        changes={f"{REF_MEGATRON}.context_parallel_size": 2},
        says="ref: megatron context_parallel_size=2 needs use_sample_packing: true",
    ),
    Fails(check="BKD-33", base="moe", changes={_TENSOR: 0}, says="must be a positive integer, got 0"),
    *(
        Fails(
            check="BKD-33",
            base="moe",
            changes={_EXPERT_TENSOR: value},
            says="must be a positive integer, got",
        )
        for value in (True, 1.5, [2])
    ),
    Fails(check="BKD-33", changes={ULYSSES: -2}, says="sequence_parallel_size must be a positive integer"),
    Fails(
        check="BKD-33",
        changes={"skyrl.trainer.critic.sequence_parallel_size": 0},
        says="sequence_parallel_size must be a positive integer, got 0",
    ),
    Fails(check="BKD-33", changes={f"{CRITIC_FSDP}.context_parallel_size": 0}, says="got 0"),
    Fails(check="BKD-33", changes={MICRO_FORWARD: 0}, says="micro_forward_batch_size_per_gpu must be"),
    Fails(check="BKD-33", changes={f"{FSDP}.fsdp_size": 0}, says="fsdp_size must be a positive integer"),
    Fails(
        check="BKD-33",
        changes={f"{FSDP}.context_parallel_size": 2**40},
        says="context_parallel_size must be a positive integer of at most 1000000000, got 1099511627776",
    ),
    Fails(
        check="BKD-38",
        base="moe",
        changes={f"{KWARGS}.recompute_granularity": "fulll"},
        says="recompute_granularity 'fulll' is unknown. Known: full, selective",
    ),
    Fails(
        check="BKD-38",
        base="moe",
        changes={f"{KWARGS}.recompute_method": "blocks"},
        says="recompute_method 'blocks' is unknown. Known: uniform, block",
    ),
    Fails(
        check="BKD-38",
        base="moe",
        changes={f"{KWARGS}.recompute_granularity": "selective"},
        says="selective takes no recompute_num_layers, and the base configuration's 1 stays",
        severity="warning",
    ),
    Fails(
        check="BKD-39",
        base="moe",
        changes={f"{OPTIMIZER}.optimizer_offload_fraction": 1.5, f"{OPTIMIZER}.optimizer_cpu_offload": True},
        says="optimizer_offload_fraction must be in [0, 1], got 1.5",
    ),
    Fails(
        check="BKD-39",
        base="moe",
        changes={f"{OPTIMIZER}.optimizer_offload_fraction": 1.5},
        says="got 1.5 (optimizer_cpu_offload is off, so that nothing reads it)",
        severity="warning",
    ),
    Fails(
        check="BKD-39",
        base="moe",
        changes={f"{OPTIMIZER}.optimizer_cpu_offload": True},
        says="optimizer_offload_fraction 0 offloads nothing",
        severity="warning",
    ),
    Fails(
        check="BKD-41",
        base="moe",
        changes={_TENSOR: 16},
        says="policy: groups of tp=16 do not tile 8 GPUs per node, so their all-reduces cross nodes",
        severity="warning",
    ),
    # --- the model --------------------------------------------------------------------------------
    Fails(
        check="BKD-09",
        base="moe",
        changes={_PIPELINE: 8},
        facts=_model(),
        says="policy: 28 layers over pp=8 stages (28 % 8 = 4). Use pp from 1, 2, 4",
    ),
    Fails(check="BKD-09", base="moe", changes={_REF_PIPELINE: 8}, facts=_model(), says="ref: 28 layers"),
    Fails(
        check="BKD-09",
        base="moe",
        changes={_PIPELINE: 4, f"{KWARGS}.num_layers_in_first_pipeline_stage": 5},
        facts=_model(),
        says="28 layers over pp=4 with 5 in the first stage: 23 layers do not fill 3 stages evenly",
    ),
    Fails(
        check="BKD-09",
        base="moe",
        changes={
            f"{KWARGS}.num_layers_in_first_pipeline_stage": 10,
            f"{KWARGS}.num_layers_in_last_pipeline_stage": 10,
        },
        facts=_model(),
        says="with 10 in the first stage and 10 in the last stage: 8 layers do not fill 0 stages evenly",
    ),
    Fails(
        check="BKD-09",
        base="moe",
        changes={f"{KWARGS}.account_for_loss_in_pipeline_split": True},
        facts=_model(),
        says="28 layers and 1 counted as layers over pp=2 stages (29 % 2 = 1)",
    ),
    Fails(
        check="BKD-09",
        base="moe",
        changes={
            f"{KWARGS}.account_for_loss_in_pipeline_split": True,
            f"{KWARGS}.num_layers_in_last_pipeline_stage": 30,
        },
        facts=_model(),
        says="with 30 in the last stage: -1 layers do not fill 1 stage evenly",
    ),
    Fails(
        check="BKD-10",
        base="moe",
        changes={_TENSOR: 4},
        facts=_model(num_attention_heads=14, num_key_value_heads=2),
        says="policy: tp=4 does not divide 14 attention heads. Valid tp: 1, 2, 7, 14",
    ),
    Fails(
        check="BKD-10",
        base="moe",
        changes={_TENSOR: 4},
        facts=_model(num_attention_heads=24, num_key_value_heads=6),
        says="policy: tp=4: 24 heads, 6 KV heads (6 % 4 = 2 and 4 % 6 = 4). Valid tp: 1, 2, 3, 6",
    ),
    Fails(
        check="BKD-10",
        base="moe",
        changes={_TENSOR: 8},
        facts=_moe(),
        says="tp=8: 32 heads, 4 KV heads (4 % 8 = 4): whether this runtime replicates KV heads is not known",
        severity="warning",
    ),
    Fails(
        check="BKD-10",
        base="moe",
        changes={_TENSOR: 8},
        facts=_moe(),
        runtime=_runtime(megatron_replicates_kv_heads=False),
        says="and this runtime does not replicate KV heads",
    ),
    Fails(
        check="BKD-11",
        base="moe",
        facts=_moe(num_experts=60),
        says="policy: 60 experts over ep=8 (60 % 8 = 4). Valid: 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60",
    ),
    Fails(
        check="BKD-11",
        changes={f"{FSDP}.expert_model_parallel_size": 8},
        facts=_moe(num_experts=60),
        says="policy: 60 experts over ep=8",
    ),
    Fails(
        check="BKD-28",
        base="moe",
        facts=_model(),
        says="policy: ep=8 on a dense model: there are no experts to share",
    ),
    Fails(
        check="BKD-28",
        changes={f"{FSDP}.expert_model_parallel_size": 2},
        facts=_model(),
        says="policy: ep=2 on a dense model",
    ),
    Fails(
        check="BKD-28",
        base="moe",
        changes={_EXPERT: 16},
        facts=_moe(num_experts=8),
        says="policy: ep=16 exceeds 8 experts",
    ),
    Fails(
        check="BKD-28",
        base="moe",
        changes={_PIPELINE: 32},
        facts=_moe(num_hidden_layers=24),
        says="policy: pp=32 exceeds 24 layers",
    ),
    # 28 stages would not divide a world of 32 (BKD-06).
    Fails(
        check="BKD-28",
        base="moe",
        changes={_PIPELINE: 32},
        facts=_moe(num_hidden_layers=28),
        says="policy: pp=32 exceeds 28 layers",
    ),
    Fails(
        check="BKD-28",
        base="moe",
        changes={_TENSOR: 16},
        facts=_moe(num_attention_heads=8),
        says="policy: tp=16 exceeds 8 attention heads",
    ),
    Fails(
        check="BKD-28",
        changes={PP: 8, ENGINES: 1},
        facts=_model(num_hidden_layers=4),
        says="engine PP=8 exceeds 4 layers",
    ),
    Fails(
        check="BKD-29",
        changes={TP: 8, ENGINES: 1},
        facts=_model(linear_key_heads=4, linear_value_heads=12),
        says="engine TP=8 does not divide 4 linear key heads and 12 linear value heads. Valid: 1, 2, 4",
    ),
    Fails(
        check="BKD-29",
        base="moe",
        changes={_TENSOR: 8},
        facts=_moe(linear_key_heads=16, linear_value_heads=36),
        says="policy: tp=8 does not divide 36 linear value heads. Valid: 1, 2, 4",
    ),
    Fails(
        check="BKD-40",
        base="moe",
        changes={_EXPERT_TENSOR: 4, _EXPERT: 4},
        facts=_moe(moe_intermediate_size=766),
        says="policy: etp=4 does not divide the expert's width 766",
    ),
    # --- rollout ----------------------------------------------------------------------------------
    Fails(
        check="BKD-04",
        changes=_SGLANG | {TP: 2, ENGINES: 4},
        says="backend sglang cannot run engines with TP=2, only 1. Use vllm",
    ),
    Fails(check="BKD-04", changes=_SGLANG | {TP: DELETED}, says="engines with TP=4"),
    Fails(check="BKD-04", base="moe", changes=_SGLANG, says="engines with DP=8, only 1"),
    Fails(check="BKD-04", base="moe", changes=_SGLANG, says="engines with EP=8, only 1"),
    Fails(check="BKD-04", changes=_SGLANG | {DCP: 2}, says="with decode context parallel size=2"),
    Fails(check="BKD-04", changes=_SGLANG | {LOCAL: False, DP: 2}, says="engines with DP=2"),
    Fails(
        check="BKD-04",
        changes=_SGLANG | {"skyrl.generator.use_conversation_multi_turn": False},
        says="backend sglang needs use_conversation_multi_turn: true",
    ),
    Fails(
        check="BKD-04",
        changes=_SGLANG | _RESOLVED | {"skyrl.generator.use_conversation_multi_turn": False},
        says="backend sglang needs use_conversation_multi_turn: true",
    ),
    Fails(
        check="BKD-04", changes=_SGLANG | {f"{SAMPLING}.stop": ["</a>"]}, says="backend sglang has no stop"
    ),
    Fails(
        check="BKD-04", changes=_SGLANG | {f"{EVAL_SAMPLING}.stop": "x"}, says="backend sglang has no stop"
    ),
    Fails(
        check="BKD-04",
        changes=_SGLANG | {f"{EVAL_SAMPLING}.min_new_tokens": None},
        says="backend sglang has no min_new_tokens",
    ),
    Fails(
        check="BKD-04",
        changes=_SGLANG | {f"{SAMPLING}.logprobs": 0},
        says="backend sglang returns no rollout log-probabilities",
        severity="warning",
    ),
    Fails(check="BKD-04", changes=_SGLANG | {TIS: True}, says="use_tis needs rollout log-probabilities"),
    Fails(
        check="BKD-04", changes=_SGLANG | {LOSS: "behavior_clip"}, says="behavior_clip needs rollout log-prob"
    ),
    Fails(check="BKD-04", changes=_SGLANG | {HTTP: True}, says="backend sglang has no HTTP endpoint"),
    Fails(
        check="BKD-17",
        base="moe",
        changes=_BLOCKS | {TP: 2, DP: 4},
        says="expert_block transport needs engine TP=1 and EP=DP>1 (got TP=2, EP=8, DP=4)",
    ),
    Fails(
        check="BKD-17",
        changes={
            TRANSPORT: "expert_block",
            SYNC: "gloo",
            LOCAL: False,
            "skyrl.generator.async_engine": False,
        },
        says="entry point fully_async (got standard); strategy megatron (got fsdp2); colocate_all: false (got true); "
        "weight_sync_backend nccl (got gloo); run_engines_locally: true (got false); async_engine: true (got false); "
        "moe_backend triton (got null); engine TP=1 and EP=DP>1 (got TP=1, EP=1, DP=1)",
    ),
    Fails(
        check="BKD-17",
        base="moe",
        changes=_BLOCKS
        | {_TENSOR: 2, _EXPERT_TENSOR: None, "skyrl.generator.expert_block_sync.timeout_seconds": 0},
        says="timeout_seconds > 0 (got 0); training tp=etp=1 (got tp=2, etp=2)",
    ),
    Fails(check="BKD-17", base="moe", changes=_BLOCKS | _SGLANG, says="backend vllm (got sglang)"),
    Fails(
        check="BKD-19",
        changes=_SGLANG | {"skyrl.trainer.algorithm.batch_invariant": True},
        says="batch_invariant needs local engines of backend vllm, got local sglang",
    ),
    Fails(
        check="BKD-19",
        changes={LOCAL: False, "skyrl.trainer.algorithm.batch_invariant": True},
        says="got remote vllm",
    ),
    Fails(
        check="BKD-26",
        changes={_REPLAY: True, STRATEGY: "deepspeed", BACKEND: "sglang", DCP: 2},
        says="router replay is not available with strategy deepspeed, backend sglang, decode context parallel size 2",
    ),
    Fails(
        check="BKD-26",
        base="moe",
        changes={f"{REF_MEGATRON}.moe_router_replay": True, DCP: 2},
        says="not available with decode context parallel size 2",
    ),
    Fails(
        check="BKD-27",
        changes={LORA: 16, BACKEND: "sglang"},
        says="LoRA of rank 16 needs fsdp2 and vllm, got fsdp2 and sglang",
    ),
    Fails(check="BKD-27", changes={LORA: 8, STRATEGY: "deepspeed"}, says="got deepspeed and vllm"),
    Fails(
        check="BKD-27",
        changes={LORA: -1},
        says="lora.rank=-1 trains no LoRA; write 0",
        severity="warning",
    ),
    Fails(
        check="BKD-27",
        changes={LORA: 100},
        runtime=_runtime(engine_lora_ranks=(8, 16, 32, 64, 128)),
        says="LoRA rank 100: engines are built for 8, 16, 32, 64, 128",
    ),
    Fails(check="BKD-31", changes={SHARE: 1.5}, says="gpu_memory_utilization is a share in (0, 1], got 1.5"),
    Fails(check="BKD-31", changes={SHARE: 0}, says="got 0"),
    Fails(check="BKD-31", changes={SHARE: float("nan")}, says="got nan"),
    # --- the runtime ------------------------------------------------------------------------------
    Fails(
        check="BKD-20",
        changes={COMMIT: "b5287591" * 5},
        runtime=_supports(),
        facts=_model(architecture="Qwen3ForCausalLM"),
        says="by which this document is judged: its own runtime may differ",
        severity="warning",
    ),
    Fails(
        check="BKD-20",
        changes={COMMIT: "81ae0ef"},
        says="launcher_commit '81ae0ef' is not the runtime 81ae0ef7",
    ),
    Fails(
        check="BKD-20",
        changes={COMMIT: "b5287591" * 5},
        planned=planned,
        says="is not the runtime 81ae0ef7033c500207b191a2ae7c3806f6dc78ff of the manifest",
    ),
    # Failure row 25.
    Fails(
        check="BKD-20",
        runtime=_runtime(torch="2.7.1+cu128", torch_required_by_vllm="2.6.0"),
        says="runtime 81ae0ef7 has torch 2.7.1+cu128, its vLLM needs 2.6.0: engines do not start",
    ),
    # Failure row 5.
    Fails(
        check="BKD-20",
        runtime=_supports(),
        facts=_model(architecture="Qwen3NextForCausalLM"),
        says="runtime 81ae0ef7 does not send the weights of architecture Qwen3NextForCausalLM. Supported: "
        "Qwen3ForCausalLM, Qwen3MoeForCausalLM",
    ),
    Fails(
        check="BKD-20",
        runtime=_supports(),
        facts=_model(architecture="Qwen3NextForCausalLM"),
        says="does not train architecture Qwen3NextForCausalLM",
    ),
    # Failure row 4.
    Fails(
        check="BKD-20",
        changes=_CONTEXT_TWO,
        runtime=_supports(),
        facts=_model(architecture="Qwen3MoeForCausalLM"),
        says="does not split the context (size 2) of architecture Qwen3MoeForCausalLM. Supported: Qwen3ForCausalLM",
    ),
    Fails(
        check="BKD-20",
        base="moe",
        changes={_CONTEXT: 4, PACKING: True},
        runtime=_supports(context_parallel_architectures=()),
        facts=_moe(architecture="Qwen3MoeForCausalLM"),
        says="split the context (size 4) of architecture Qwen3MoeForCausalLM. Supported: none",
    ),
    # Failure row 47.
    Fails(
        check="BKD-20",
        base="moe",
        changes={_TENSOR: 2, f"{KWARGS}.sequence_parallel": True},
        runtime=_runtime(no_sequence_parallel=("LabHybridForCausalLM",)),
        facts=_model(architecture="LabHybridForCausalLM"),
        says="has no sequence parallelism for architecture LabHybridForCausalLM, and policy tp=2 with sequence_parallel: "
        "true switches it on",
    ),
    Fails(
        check="BKD-20",
        base="moe",
        changes={_TENSOR: 2},
        runtime=_runtime(no_sequence_parallel=("LabHybridForCausalLM",)),
        facts=_model(architecture="LabHybridForCausalLM"),
        says="and policy tp=2 switches it on",
    ),
    Fails(
        check="BKD-20",
        changes={ULYSSES: 2},
        runtime=_supports(no_sequence_parallel=("Qwen3ForCausalLM",)),
        facts=_model(architecture="Qwen3ForCausalLM"),
        says="and trainer.policy.sequence_parallel_size=2 switches it on",
    ),
    # Failure rows 23 and 41.
    Fails(
        check="BKD-20",
        changes={ENGINES: 1, DP: 4},
        runtime=_runtime(unsupported=("single_engine_data_parallel",)),
        says="runtime 81ae0ef7 does not support single_engine_data_parallel",
    ),
    Fails(
        check="BKD-20",
        changes={TP: 4, ENGINES: 2},
        runtime=_runtime(unsupported=("colocated_tensor_parallel",)),
        says="does not support colocated_tensor_parallel",
    ),
    *(
        Fails(
            check="BKD-20",
            changes={path: value},
            runtime=_runtime(unsupported=(feature,)),
            says=f"does not support {feature}",
        )
        for feature, path, value in (
            ("decode_context_parallel", DCP, 2),
            ("engine_pipeline_parallel", PP, 2),
            ("lora", LORA, 8),
            ("router_replay", _REPLAY, True),
            ("speculative_decoding", "skyrl.generator.speculative_decoding", {"method": "eagle3"}),
        )
    ),
    # Failure row 1.
    Fails(
        check="BKD-21",
        changes={VARIANT: "GB200"},
        runtime=_image(
            arch="aarch64", wheel_sm=("10.0",), compiles_at_run_time=("flashinfer",), cuda_compiler=False
        ),
        says="no image serves GB200 (SM 10.0 on aarch64): the aarch64 image has no CUDA compiler, flashinfer needs one at "
        "run time",
    ),
    # Failure row 2.
    Fails(
        check="BKD-21",
        changes={VARIANT: "GB200"},
        runtime=_image(wheel_sm=("9.0",)),
        says="the x86_64 image does not run on aarch64",
    ),
    # Failure row 26.
    Fails(
        check="BKD-21",
        changes={VARIANT: "B300"},
        facts={"cluster": cluster_card(gpu_variant="B300", sm="10.3")},
        runtime=_image(cuda="12.8", compilable_sm=("9.0", "10.0")),
        says="no image serves B300 (SM 10.3 on an unknown processor): the compiler of CUDA 12.8 in the x86_64 image builds "
        "for SM 9.0, 10.0, not for 10.3",
    ),
    # Failure row 56.
    Fails(
        check="BKD-21",
        changes={VARIANT: ["x"]},
        facts={"cluster": cluster_card(gpu_variant="RTX-lab", sm="12.0")},
        runtime=_image(wheel_sm=("8.0", "9.0")),
        says="no image serves the GPU (SM 12.0 on an unknown processor): the x86_64 image has kernels for SM 8.0, 9.0, not "
        "for 12.0",
    ),
    Fails(
        check="BKD-21",
        facts={"cluster": cluster_card(sm="10.3", arch="x86_64")},
        runtime=_image(wheel_sm=("10.0a", "odd")),
        says="has kernels for SM 10.0a, odd, not for 10.3",
    ),
    # Failure row 5.
    Fails(
        check="BKD-22",
        runtime=_image(modules=("torch", "vllm")),
        says="image of profile fsdp lacks flash_attn, flash_attn_2_cuda, memray, daytona, harbor, quack, "
        "skyrl_train.models.grug_moe",
    ),
    Fails(
        check="BKD-22",
        base="moe",
        runtime=_image(modules=_FSDP_MODULES),
        says="image of profile megatron lacks transformer_engine.common",
    ),
    Fails(
        check="BKD-23",
        runtime=_nodes("3.12.12"),
        says="python 3.12.11 on head and 3.12.12 on worker. Ray wants one patch version",
    ),
    Fails(
        check="BKD-23", runtime=_nodes("3.12.11", "2.51.0"), says="ray 2.51.1 on head and 2.51.0 on worker"
    ),
    Fails(
        check="BKD-30",
        planned=_relying("moe-sync-order"),
        says="required fix 'moe-sync-order' is not among those of runtime 81ae0ef7. It contains: none that are listed",
    ),
    Fails(
        check="BKD-30",
        planned=_relying("moe-sync-order", "other"),
        runtime=_runtime(fixes=(_FIX,)),
        says="required fix 'other' is not among those of runtime 81ae0ef7. It contains: moe-sync-order",
    ),
    # Failure row 4.
    Fails(
        check="BKD-34",
        changes={COLLECTIVE: 900},
        runtime=_runtime(engine_start_seconds=1500),
        says="collectives time out after 900 s, engines of this runtime were seen to take 1500 s to start",
        severity="warning",
    ),
)

PASSING = (
    *(
        Passes(check=f"BKD-{number:02}", base=base)
        for number in (
            1,
            2,
            3,
            4,
            5,
            6,
            7,
            8,
            13,
            14,
            15,
            16,
            17,
            18,
            19,
            26,
            27,
            31,
            32,
            33,
            35,
            36,
            37,
            38,
            39,
            41,
        )
        for base in ("smoke", "moe")
    ),
    Passes(check="BKD-01", changes={STRATEGY: DELETED}),
    Passes(check="BKD-01", changes={STRATEGY: "fsdp3"}),
    Passes(check="BKD-07", base="moe", changes={_REF_PIPELINE: 5}),
    Passes(check="BKD-08", base="moe", changes={_TENSOR: 3, _EXPERT: 5}),
    Passes(check="BKD-27", base="moe", changes={LORA: 16}),
    Passes(check="BKD-01", base="moe", changes=_EXPORT | {PROFILE: "megatron-export"}),
    # EXE-08 reports the mode; which profile is right depends on it.
    Passes(check="BKD-01", changes={MODE: "checkpoint_export"}),
    Passes(check="BKD-02", changes={STRATEGY: "deepspeed"}),
    Passes(check="BKD-03", changes=_SGLANG),
    Passes(check="BKD-04", changes=_SGLANG),
    Passes(check="BKD-04", changes=_SGLANG | {LOCAL: False, TP: 4}),
    Passes(check="BKD-04", changes=_SGLANG | {f"{SAMPLING}.stop": None}),
    Passes(check="BKD-05", base="moe", changes={_REPLAY: True, f"{KWARGS}.moe_router_fusion": False}),
    Passes(check="BKD-05", base="moe", changes={f"{KWARGS}.moe_router_fusion": True}),
    # An inactive reference has no layout.
    Passes(check="BKD-06", base="moe", changes={_REF_PIPELINE: 5, KL: False}),
    # Case n90: tp and etp differ.
    Passes(check="BKD-07", base="moe", changes=_NO_EXPERTS | {_TENSOR: 4, _REF_TENSOR: 2}),
    Passes(check="BKD-08", base="moe", changes=_NO_EXPERTS | {_TENSOR: 4, _REF_TENSOR: 2}),
    Passes(check="BKD-07", base="moe", changes={_EXPERT: 16}),
    Passes(check="BKD-08", base="moe", changes={_EXPERT: 16}),
    Passes(check="BKD-08", base="moe", changes={_EXPERT_TENSOR: None}),
    Passes(check="BKD-09", base="moe", facts=_moe()),
    Passes(check="BKD-09", base="moe", changes={_PIPELINE: 1, _REF_PIPELINE: 1}),
    # A public recipe of Grug: 26 layers in 6 stages, 5 in the first and in the last.
    Passes(
        check="BKD-09",
        base="moe",
        changes={
            _PIPELINE: 6,
            f"{KWARGS}.num_layers_in_first_pipeline_stage": 5,
            f"{KWARGS}.num_layers_in_last_pipeline_stage": 5,
        },
        facts=_moe(num_hidden_layers=26),
    ),
    Passes(
        check="BKD-09",
        base="moe",
        changes={
            f"{KWARGS}.num_layers_in_first_pipeline_stage": 15,
            f"{KWARGS}.num_layers_in_last_pipeline_stage": 13,
        },
        facts=_model(),
    ),
    Passes(
        check="BKD-09",
        base="moe",
        changes={
            f"{KWARGS}.account_for_loss_in_pipeline_split": True,
            f"{KWARGS}.account_for_embedding_in_pipeline_split": True,
            _REF_PIPELINE: 1,
        },
        facts=_moe(num_hidden_layers=26),
    ),
    Passes(
        check="BKD-09",
        base="moe",
        changes={_PIPELINE: 8, f"{KWARGS}.pipeline_model_parallel_layout": "Et*4|t*4L"},
        facts=_model(),
    ),
    Passes(check="BKD-10", base="moe", changes={_TENSOR: 4}, facts=_moe()),
    Passes(check="BKD-10", base="moe", changes={_TENSOR: 4}, facts=_moe(num_key_value_heads=None)),
    Passes(
        check="BKD-10",
        base="moe",
        changes={_TENSOR: 8},
        facts=_moe(),
        runtime=_runtime(megatron_replicates_kv_heads=True),
    ),
    Passes(check="BKD-10", changes={TP: 8}),
    Passes(check="BKD-11", base="moe", facts=_moe()),
    Passes(check="BKD-11", base="moe", facts=_model()),
    Passes(check="BKD-11", changes={f"{FSDP}.expert_model_parallel_size": 1}),
    Passes(check="BKD-11", changes={STRATEGY: "deepspeed"}),
    Passes(check="BKD-12", base="moe", changes={_TENSOR: 2}),
    Passes(check="BKD-12", base="moe", changes={_TENSOR: 2, f"{KWARGS}.sequence_parallel": True}),
    Passes(
        check="BKD-12", base="moe", changes={_TENSOR: 2, f"{KWARGS}.sequence_parallel": False}, facts=_model()
    ),
    Passes(check="BKD-12", base="moe", changes={_TENSOR: 2, _EXPERT: 1}),
    Passes(check="BKD-13", changes=_CONTEXT_TWO),
    Passes(check="BKD-13", changes={f"{CRITIC_FSDP}.context_parallel_size": 4, PACKING: False}),
    Passes(check="BKD-13", changes={f"{FSDP}.context_parallel_size": 8, PACKING: False, KL: True}),
    Passes(check="BKD-14", changes={f"{FSDP}.cpu_offload": True}),
    Passes(check="BKD-14", changes={f"{CRITIC_FSDP}.cpu_offload": True}),
    Passes(check="BKD-15", changes={STRATEGY: "deepspeed"}),
    Passes(check="BKD-16", base="moe", changes={"skyrl.trainer.offload_optimizer_during_rollouts": True}),
    Passes(check="BKD-17", base="moe", changes=_BLOCKS),
    Passes(check="BKD-17", base="moe", changes=_BLOCKS | {_EXPERT_TENSOR: None}),
    Passes(check="BKD-18", changes={f"{FSDP}.fsdp_size": 8}),
    Passes(check="BKD-18", changes={f"{REF_FSDP}.fsdp_size": 4}),
    Passes(check="BKD-18", base="moe", changes={f"{FSDP}.fsdp_size": 6}),
    Passes(check="BKD-19", changes={"skyrl.trainer.algorithm.batch_invariant": True}),
    Passes(check="BKD-20", runtime=_supports(), facts=_model(architecture="Qwen3ForCausalLM")),
    Passes(
        check="BKD-20",
        base="moe",
        changes={_TENSOR: 2, f"{KWARGS}.sequence_parallel": False},
        runtime=_supports(no_sequence_parallel=("Qwen3MoeForCausalLM",)),
        facts=_moe(architecture="Qwen3MoeForCausalLM"),
    ),
    Passes(
        check="BKD-20",
        changes=_CONTEXT_TWO,
        runtime=_supports(torch="2.6.0+cu124", torch_required_by_vllm="2.6.0"),
        facts=_model(architecture="Qwen3ForCausalLM"),
    ),
    Passes(
        check="BKD-20",
        changes={DP: 2, ENGINES: 4},
        runtime=_supports(unsupported=("single_engine_data_parallel", "colocated_tensor_parallel")),
        facts=_model(architecture="Qwen3ForCausalLM"),
    ),
    Passes(check="BKD-21", runtime=_image(wheel_sm=("9.0",), compiles_at_run_time=(), cuda_compiler=False)),
    Passes(check="BKD-21", runtime=_image(wheel_sm=("9.0a",), profile="fsdp")),
    Passes(check="BKD-21", runtime=_image(wheel_sm=("8.0", "9.0"), compilable_sm=("8.0",))),
    Passes(
        check="BKD-21",
        facts={"cluster": cluster_card(sm="8.9", arch="x86_64")},
        runtime=_image(wheel_sm=("8.0",)),
    ),
    Passes(
        check="BKD-21",
        changes={VARIANT: "GB200"},
        runtime=_runtime(
            images=(
                TaskImage(arch="x86_64", wheel_sm=("9.0",)),
                TaskImage(arch="aarch64", wheel_sm=("10.0",)),
            )
        ),
    ),
    Passes(check="BKD-22", runtime=_image(modules=_FSDP_MODULES)),
    Passes(
        check="BKD-22",
        changes={ENTRYPOINT: "generate"},
        runtime=_image(modules=("flash_attn", "flash_attn_2_cuda")),
    ),
    Passes(check="BKD-23", runtime=_nodes("3.12.11")),
    Passes(check="BKD-26", base="moe", changes={_REPLAY: True}),
    Passes(
        check="BKD-26", changes={_REPLAY: True, DCP: 2, "runtime.task_env.VLLM_ALLOW_ROUTED_EXPERTS_DCP": "1"}
    ),
    Passes(check="BKD-27", changes={LORA: 16}, runtime=_runtime(engine_lora_ranks=(8, 16))),
    Passes(check="BKD-28", base="moe", facts=_moe()),
    Passes(check="BKD-28", base="moe", changes=_NO_EXPERTS, facts=_model()),
    Passes(check="BKD-28", changes={TP: 8}),
    Passes(check="BKD-29", changes={TP: 2}, facts=_model(linear_key_heads=16, linear_value_heads=32)),
    Passes(check="BKD-29", changes={TP: 2}, facts=_model(linear_key_heads=None, linear_value_heads=None)),
    Passes(check="BKD-29", changes={TP: 1}),
    Passes(check="BKD-30"),
    Passes(check="BKD-30", planned=_relying()),
    Passes(check="BKD-30", planned=_relying("moe-sync-order"), runtime=_runtime(fixes=(_FIX,))),
    Passes(check="BKD-31", changes={SHARE: 1}),
    Passes(check="BKD-31", changes={SHARE: 0.05}),
    Passes(check="BKD-32", base="moe", changes={_CONTEXT: 2, PACKING: True}),
    Passes(check="BKD-32", base="moe", changes={_CONTEXT: 2, PACKING: DELETED}),
    Passes(check="BKD-33", changes={f"{FSDP}.fsdp_size": -1, ULYSSES: 2}),
    Passes(check="BKD-33", changes={f"{FSDP}.fsdp_size": "8"}),
    Passes(check="BKD-34", runtime=_runtime(engine_start_seconds=1500)),
    Passes(check="BKD-35", changes={STRATEGY: "deepspeed", _TENSOR: 2}),
    Passes(check="BKD-36", changes=_RESOLVED | {LOCAL: False}),
    Passes(check="BKD-37", changes={f"{FSDP}.expert_model_parallel_size": 8}),
    Passes(check="BKD-38", base="moe", changes={f"{KWARGS}.recompute_method": "block"}),
    Passes(check="BKD-39", base="moe", changes={f"{OPTIMIZER}.optimizer_offload_fraction": 0.5}),
    Passes(
        check="BKD-39",
        base="moe",
        changes={f"{OPTIMIZER}.optimizer_offload_fraction": 1, f"{OPTIMIZER}.optimizer_cpu_offload": True},
    ),
    Passes(check="BKD-40", base="moe", changes={_EXPERT_TENSOR: 2}, facts=_moe()),
    Passes(check="BKD-40", base="moe", changes={_EXPERT_TENSOR: 2}, facts=_model()),
    Passes(check="BKD-40", base="moe", changes={_EXPERT_TENSOR: 2}, facts=_moe(moe_intermediate_size=None)),
    Passes(check="BKD-40", base="moe", changes={_EXPERT_TENSOR: 1}),
)

NOT_CHECKED = (
    NotChecked(check="BKD-01", changes={STRATEGY: 2}, needs=f"a usable value: {STRATEGY} as str, it is 2"),
    NotChecked(
        check="BKD-01",
        runtime=_runtime(strategy_of_profile={}),
        needs="strategy_of_profile in the runtime manifest",
    ),
    NotChecked(check="BKD-03", changes={BACKEND: ["vllm"]}, needs=f"a usable value: {BACKEND} as str"),
    NotChecked(
        check="BKD-08",
        base="moe",
        changes={_EXPERT: "8"},
        needs=f"a usable value: {_EXPERT} as int, it is '8'",
    ),
    NotChecked(
        check="BKD-15",
        changes={STRATEGY: "deepspeed"},
        runtime=_runtime(deepspeed_zero_stage=None),
        needs="deepspeed_zero_stage and deepspeed_needs_offload_after_step in the runtime manifest",
    ),
    NotChecked(check="BKD-09", base="moe", needs="a model card with num_hidden_layers"),
    NotChecked(
        check="BKD-10", base="moe", changes={_TENSOR: 2}, needs="a model card with num_attention_heads"
    ),
    NotChecked(check="BKD-11", base="moe", needs="a model card with num_experts"),
    NotChecked(
        check="BKD-11",
        base="moe",
        facts=_moe(num_experts=DELETED),
        needs="num_experts in the model card 'lab-model'",
    ),
    NotChecked(
        check="BKD-12",
        base="moe",
        changes={_TENSOR: 2},
        runtime=_runtime(megatron_sequence_parallel_with_tp=None),
        needs="megatron_sequence_parallel_with_tp in the runtime manifest",
    ),
    NotChecked(check="BKD-20", needs="architectures in the runtime manifest"),
    NotChecked(check="BKD-20", runtime=_supports(), needs="a model card with architecture"),
    NotChecked(
        check="BKD-20",
        runtime=_supports(weight_sync_architectures=None),
        facts=_model(architecture="Qwen3ForCausalLM"),
        needs="weight_sync_architectures in the runtime manifest",
    ),
    NotChecked(
        check="BKD-20",
        changes=_CONTEXT_TWO,
        runtime=_supports(context_parallel_architectures=None),
        facts=_model(architecture="Qwen3ForCausalLM"),
        needs="context_parallel_architectures in the runtime manifest",
    ),
    NotChecked(
        check="BKD-20",
        changes={ULYSSES: 2},
        runtime=_supports(no_sequence_parallel=None),
        facts=_model(architecture="Qwen3ForCausalLM"),
        needs="no_sequence_parallel in the runtime manifest",
    ),
    NotChecked(
        check="BKD-20",
        runtime=_supports(unsupported=None),
        facts=_model(architecture="Qwen3ForCausalLM"),
        needs="unsupported features in the runtime manifest",
    ),
    NotChecked(
        check="BKD-09",
        base="moe",
        facts=_moe(num_hidden_layers=None),
        needs="num_hidden_layers in the model card, where it is null",
    ),
    NotChecked(
        check="BKD-20",
        runtime=_supports(),
        facts=_model(architecture=None),
        needs="architecture in the model card, where it is null",
    ),
    NotChecked(check="BKD-21", needs="images in the runtime manifest"),
    NotChecked(
        check="BKD-21",
        changes={VARIANT: "B300"},
        runtime=_image(wheel_sm=("9.0",)),
        needs="a cluster card with arch and sm",
    ),
    NotChecked(check="BKD-22", needs="images in the runtime manifest"),
    NotChecked(check="BKD-22", runtime=_image(), needs="modules of an image of profile 'fsdp'"),
    NotChecked(
        check="BKD-22",
        changes={PROFILE: "deepspeed"},
        needs="profile_imports of 'deepspeed' in the runtime manifest",
    ),
    NotChecked(check="BKD-23", needs="node_versions in the runtime manifest"),
    NotChecked(check="BKD-27", changes={LORA: 16}, needs="engine_lora_ranks in the runtime manifest"),
    NotChecked(check="BKD-28", base="moe", needs="a model card with num_experts"),
    NotChecked(check="BKD-29", changes={TP: 2}, needs="a model card with linear_key_heads"),
    NotChecked(
        check="BKD-30",
        planned=_relying("moe-sync-order"),
        runtime=_runtime(fixes=None),
        needs="fixes in the runtime manifest",
    ),
    NotChecked(check="BKD-34", needs="engine_start_seconds in the runtime manifest"),
    NotChecked(
        check="BKD-40", base="moe", changes={_EXPERT_TENSOR: 2}, needs="a model card with num_experts"
    ),
)
