"""Cases of the CTX checks on window, model geometry, engine modes, sampling, drafts and templates."""

from typing import Any

from tools.launcher.preflight.testing.cases.batches import ENTRYPOINT, STRATEGY
from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes
from tools.launcher.preflight.testing.cases.context import BUDGET, NEW, WINDOW
from tools.launcher.preflight.testing.cases.geometry import (
    COLOCATED,
    DRAFT,
    ENGINES,
    EP,
    LOCAL,
    PP,
    TP,
    VARIANT,
)
from tools.launcher.preflight.testing.experiments import planned
from tools.launcher.preflight.testing.subjects import DELETED, model_card, pinned_runtime
from tools.launcher.rl.recipe import SkyRLRecipe

GENERATOR = "skyrl.generator"
KWARGS = f"{GENERATOR}.engine_init_kwargs"
MAX_LEN = f"{KWARGS}.max_model_len"
OVERRIDES = f"{KWARGS}.hf_overrides"
POSITIONS = f"{OVERRIDES}.max_position_embeddings"
TRAINER_ROPE = "skyrl.trainer.rope_scaling"
ENGINE_ROPE = f"{GENERATOR}.rope_scaling"
CHUNKED = f"{GENERATOR}.enable_chunked_prefill"
BATCHED_TOKENS = f"{GENERATOR}.max_num_batched_tokens"
SEQUENCES = f"{GENERATOR}.max_num_seqs"
BACKEND = f"{GENERATOR}.backend"
ASYNC = f"{GENERATOR}.async_engine"
BATCHED = f"{GENERATOR}.batched"
HTTP = f"{GENERATOR}.enable_http_endpoint"
URLS = f"{GENERATOR}.remote_inference_engine_urls"
HEADS = "skyrl.model_num_attention_heads"
DCP = f"{GENERATOR}.inference_engine_decode_context_parallel_size"
REPLAY = "skyrl.trainer.policy.fsdp_config.moe_router_replay"
MEGATRON_REPLAY = "skyrl.trainer.policy.megatron_config.moe_router_replay"
PAUSE = "skyrl.trainer.fully_async.pause_mode"
SAMPLING = f"{GENERATOR}.sampling_params"
EVALUATION = f"{GENERATOR}.eval_sampling_params"
TEMPERATURE = f"{SAMPLING}.temperature"
ALGORITHM = "skyrl.trainer.algorithm"
TIS = f"{ALGORITHM}.use_tis"
LOSS = f"{ALGORITHM}.policy_loss_type"
POLICY_TP = "skyrl.trainer.policy.megatron_config.tensor_model_parallel_size"
POLICY_CP = "skyrl.trainer.policy.megatron_config.context_parallel_size"
TEMPLATE = f"{GENERATOR}.chat_template.name_or_path"
TEMPLATE_SOURCE = f"{GENERATOR}.chat_template.source"
INPUT_TEMPLATE = "inputs.model.chat_template"

RESOLVED: dict[str, Any] = {BUDGET: DELETED, "runtime.entrypoint": "skyrl_train.entrypoints.main_base"}
"""The smoke example without the marks of a source document."""

_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
_KEEPING = {ENTRYPOINT: "fully_async", PAUSE: "keep"}
_HF_MODEL = {"source_uri": "hf://lab/draft", "source_identity": "ab" * 20}
_STORED_MODEL = {"source_uri": "s3://lab/draft", "source_identity": "lab/draft@2026.09.01:0badcafe"}
_SERVED: dict[str, Any] = {"method": "eagle3", "num_speculative_tokens": 3, "model": _STORED_MODEL}
_TRAINED = {DRAFT: _SERVED | {"training": {"interval_steps": 1}}, ENGINES: 1}
_FIELD = f"{DRAFT}.training"


def _model(**facts: Any) -> dict[str, Any]:
    return {"model": model_card(**facts)}


def _runtime(**facts: Any) -> Any:
    return lambda: pinned_runtime(**facts)


def _recipe(**generator: Any) -> SkyRLRecipe:
    return SkyRLRecipe.combine(mine={"generator": generator})


FAILING = (
    # --- window -------------------------------------------------------------------------------
    Fails(
        check="CTX-04",
        changes={WINDOW: 65536},
        facts=_model(),
        says="window 65536 exceeds the 40960 positions of the model. Reduce it, or scale by trainer.rope_scaling "
        "with a factor of at least 1.6",
        at=WINDOW,
    ),
    Fails(
        check="CTX-04",
        changes={WINDOW: 40961},
        facts=_model(),
        says="window 40961 exceeds the 40960 positions",
    ),
    Fails(check="CTX-04", changes={WINDOW: 65536, NEW: 50000}, facts=_model(), says="window 65536 exceeds"),
    Fails(
        check="CTX-04",
        changes=RESOLVED | {MAX_LEN: 65536},
        facts=_model(),
        says="window 65536 exceeds the 40960 positions of the model",
        at=MAX_LEN,
    ),
    Fails(
        check="CTX-04",
        changes={WINDOW: 140000, TRAINER_ROPE: _YARN},
        facts=_model(),
        says="window 140000 exceeds the 40960 positions of the model, scaled to 131072 by trainer.rope_scaling",
    ),
    Fails(
        check="CTX-04",
        changes={WINDOW: 65536, TRAINER_ROPE: {"rope_type": "llama3", "factor": 8.0}},
        facts=_model(),
        says="scaled to 40960 by trainer.rope_scaling",
    ),
    Fails(
        check="CTX-04",
        changes={POSITIONS: 1024},
        facts=_model(),
        says="window 1536 exceeds the 1024 positions that hf_overrides.max_position_embeddings gives the engine",
    ),
    Fails(
        check="CTX-04",
        changes={ENGINE_ROPE: _YARN},
        facts=_model(),
        says="generator.rope_scaling scales the engine's positions by 4.0, the trainer has none",
        at=ENGINE_ROPE,
    ),
    Fails(
        check="CTX-04",
        changes={WINDOW: 131072, ENGINE_ROPE: _YARN},
        facts=_model(),
        says="generator.rope_scaling scales the engine's positions by 4.0, the trainer has none",
    ),
    Fails(
        check="CTX-04",
        changes=RESOLVED | {MAX_LEN: 131072, TRAINER_ROPE: None, ENGINE_ROPE: _YARN},
        facts=_model(),
        says="generator.rope_scaling scales the engine's positions by 4.0, the trainer has none",
    ),
    Fails(
        check="CTX-04",
        changes={ENGINE_ROPE: _YARN | {"sections": [1, 2]}},
        facts=_model(),
        says="generator.rope_scaling scales the engine's positions by 4.0, the trainer has none",
    ),
    Fails(
        check="CTX-04",
        changes={WINDOW: 65536, POSITIONS: 65536},
        facts=_model(),
        says="hf_overrides.max_position_embeddings widens the engine alone: the trainer has 40960 positions for the "
        "window 65536. Scale both by trainer.rope_scaling with a factor of at least 1.6",
        at=POSITIONS,
        severity="warning",
    ),
    Fails(
        check="CTX-04",
        changes={ENGINE_ROPE: _YARN, TRAINER_ROPE: _YARN | {"factor": 2.0}},
        facts=_model(),
        says="skyrl.trainer.rope_scaling is another: both must scale alike",
    ),
    Fails(
        check="CTX-04",
        changes={f"{OVERRIDES}.rope_scaling": _YARN},
        facts=_model(),
        says="engine_init_kwargs.hf_overrides.rope_scaling scales the engine's positions by 4.0, the trainer has none",
    ),
    Fails(
        check="CTX-04",
        changes=RESOLVED | {MAX_LEN: 1536, TRAINER_ROPE: _YARN, ENGINE_ROPE: None},
        facts=_model(),
        says="trainer.rope_scaling scales by 4.0, the engine does not",
    ),
    # Case n22; failure rows 34 and 59.
    Fails(
        check="CTX-06",
        base="moe",
        changes={CHUNKED: False, BATCHED_TOKENS: 9215},
        says="max_num_batched_tokens=9215 < window 9216 without chunked prefill",
    ),
    Fails(
        check="CTX-06",
        base="moe",
        changes={CHUNKED: False},
        says="max_num_batched_tokens=8192 < window 9216 without chunked prefill",
    ),
    Fails(
        check="CTX-06",
        changes={WINDOW: 65536, NEW: 32768, CHUNKED: False, BATCHED_TOKENS: 16384},
        says="max_num_batched_tokens=16384 < window 65536",
    ),
    Fails(
        check="CTX-18",
        changes={BATCHED_TOKENS: 512},
        says="max_num_seqs=1024 > max_num_batched_tokens=512",
        severity="warning",
    ),
    Fails(
        check="CTX-19",
        changes={TRAINER_ROPE: _YARN},
        facts=_model(),
        says="the model supports 40960 positions >= window 1536: trainer.rope_scaling is not needed",
        severity="warning",
    ),
    Fails(
        check="CTX-19",
        changes={POSITIONS: 65536},
        facts=_model(),
        says="hf_overrides.max_position_embeddings is not needed",
        severity="warning",
    ),
    # Failure row 58.
    Fails(
        check="CTX-22",
        changes={WINDOW: 49152, NEW: 40960},
        runtime=_runtime(token_cap_per_gpu=24576),
        says="token cap 24576 (of the runtime) is below the window 49152",
    ),
    Fails(
        check="CTX-22",
        changes={"skyrl.trainer.max_tokens_per_gpu": 1024},
        runtime=_runtime(token_cap_per_gpu="trainer.max_tokens_per_gpu"),
        says="token cap 1024 (trainer.max_tokens_per_gpu) is below the window 1536",
    ),
    Fails(
        check="CTX-23",
        base="moe",
        changes={POLICY_TP: 4, WINDOW: 9218},
        runtime=_runtime(pads_sequences=False),
        says="window 9218 is not a multiple of 4 (policy: tp=4, cp=1)",
    ),
    Fails(
        check="CTX-23",
        base="moe",
        changes={POLICY_CP: 4, WINDOW: 9220},
        runtime=_runtime(pads_sequences=False),
        says="window 9220 is not a multiple of 8 (policy: tp=1, cp=4)",
    ),
    # --- model geometry -------------------------------------------------------------------------
    # The repair keeps a colocated plan whole: TP=2 needs four engines.
    Fails(
        check="CTX-08",
        changes={TP: 4, ENGINES: 2},
        facts=_model(num_attention_heads=14, num_key_value_heads=2),
        says="TP=4 does not divide 14 attention heads of lab-model. Valid: 1, 2, 14",
    ),
    # Failure row 16.
    Fails(
        check="CTX-08",
        changes={TP: 4},
        facts=_model(num_attention_heads=42, num_key_value_heads=14),
        says="TP=4 does not divide 42 attention heads of lab-model. Valid: 1, 2, 7, 14, 42",
    ),
    # Case 59.
    Fails(check="CTX-08", changes={TP: 8, HEADS: 42}, says="TP=8 does not divide 42 attention heads. Valid"),
    Fails(
        check="CTX-08", changes={TP: 8}, facts=_model(num_attention_heads=28), says="TP=8 does not divide 28"
    ),
    Fails(
        check="CTX-08",
        changes={HEADS: 42},
        facts=_model(),
        says="model_num_attention_heads=42, the model card says 16 of lab-model",
    ),
    Fails(
        check="CTX-08",
        changes={HEADS: "16"},
        facts=_model(),
        says="model_num_attention_heads must be a positive integer, got '16'",
    ),
    Fails(check="CTX-08", changes={HEADS: True}, facts=_model(), says="a positive integer, got true"),
    # Case n02.
    Fails(
        check="CTX-09",
        changes={TP: 4},
        facts=_model(num_attention_heads=24, num_key_value_heads=6),
        says="TP=4 and 6 KV heads of lab-model: neither divides the other. Valid TP: 1, 2, 3, 6, 12, 24",
    ),
    Fails(check="CTX-09", base="moe", facts=_model(), says="EP=8 on a dense model of lab-model", at=EP),
    # TP=6 divides the KV heads, but tiles no node of 8 GPUs: the repair offers 2.
    Fails(
        check="CTX-09",
        changes={TP: 4, ENGINES: 2},
        facts=_model(num_attention_heads=48, num_key_value_heads=6),
        says="TP=4 and 6 KV heads of lab-model: neither divides the other",
    ),
    # TP=8 spreads 12 experts unevenly over EP=TP*DP: the repair offers EP=1.
    Fails(
        check="CTX-09",
        changes={TP: 8, EP: 8, ENGINES: 1},
        facts=_model(num_attention_heads=64, num_experts=12, moe_intermediate_size=1024),
        says="12 experts of lab-model over EP=8. Valid EP: 1, 2, 3, 4, 6, 12",
        at=EP,
    ),
    # Failure row 53.
    Fails(
        check="CTX-09",
        changes={TP: 3, EP: 3},
        facts=_model(num_attention_heads=64, num_experts=256),
        says="256 experts of lab-model over EP=3. Valid EP: 1, 2, 4, 8, 16, 32, 64, 128, 256",
    ),
    Fails(
        check="CTX-09",
        changes={TP: 8},
        facts=_model(num_experts=64, moe_intermediate_size=1284),
        says="TP=8 splits the experts, whose intermediate size 1284 it does not divide",
    ),
    # Case 87.
    Fails(
        check="CTX-10",
        changes={TP: 4, DCP: 3},
        facts=_model(),
        says="dcp=3 does not divide TP=4. Valid: 1, 2, 4",
    ),
    Fails(check="CTX-10", changes={TP: 4, DCP: 3}, says="dcp=3 does not divide TP=4"),
    Fails(
        check="CTX-10",
        changes={TP: 8, DCP: 4},
        facts=_model(num_key_value_heads=4),
        says="dcp=4 needs TP >= 4*4=16, TP is 8: dcp may be at most 2",
    ),
    Fails(check="CTX-10", changes={TP: 8, DCP: 2}, facts=_model(), says="dcp may be at most 1"),
    Fails(check="CTX-10", changes={DCP: 0}, says="dcp=0 must be at least 1"),
    Fails(
        check="CTX-10",
        changes={DCP: 2, TP: 2, BACKEND: "sglang"},
        says="dcp=2 needs backend vllm, got 'sglang'",
    ),
    Fails(
        check="CTX-10",
        changes={DCP: 2, TP: 2, REPLAY: True},
        says="dcp=2 does not go with routing replay (trainer.policy.fsdp_config.moe_router_replay)",
    ),
    Fails(
        check="CTX-10",
        base="moe",
        changes={DCP: 2, TP: 2, MEGATRON_REPLAY: True},
        says="routing replay (trainer.policy.megatron_config.moe_router_replay)",
    ),
    Fails(
        check="CTX-10",
        changes={DCP: 2, TP: 2, f"{KWARGS}.enable_return_routed_experts": True},
        says="dcp=2 does not go with router capture (generator.engine_init_kwargs.enable_return_routed_experts)",
    ),
    # --- engine modes -----------------------------------------------------------------------------
    Fails(
        check="CTX-07",
        changes={f"{KWARGS}.tensor_parallel_size": 2},
        says="engine_init_kwargs.tensor_parallel_size=2: SkyRL sets it. Use "
        "generator.inference_engine_tensor_parallel_size",
    ),
    Fails(
        check="CTX-07", changes={f"{KWARGS}.bundle_indices": None}, says="=null: SkyRL sets it. Leave it out"
    ),
    Fails(
        check="CTX-07",
        changes=RESOLVED | {f"{KWARGS}.seed": 3},
        says="engine_init_kwargs.seed=3: SkyRL sets it. Use run.seed",
    ),
    Fails(
        check="CTX-07",
        planned=lambda: planned(recipe=_recipe(engine_init_kwargs={"dtype": "float16"})),
        says="recipe part 'mine' sets engine_init_kwargs.dtype='float16': SkyRL sets it. Use generator.model_dtype",
    ),
    # Case 88.
    Fails(
        check="CTX-12",
        changes={HTTP: True, ASYNC: False},
        says="enable_http_endpoint needs async_engine: true",
    ),
    Fails(
        check="CTX-12",
        changes={HTTP: True, BACKEND: "sglang"},
        says="enable_http_endpoint is true, which backend sglang does not support",
    ),
    # Failure row 22.
    Fails(
        check="CTX-12",
        changes={PP: 4, ASYNC: False, BATCHED: True},
        says="engine PP=4 needs async_engine: true",
    ),
    Fails(
        check="CTX-12",
        changes={ASYNC: False, BATCHED: True, "skyrl.trainer.step_wise_training": True},
        says="step_wise_training generates answer by answer: batched is true",
        severity="warning",
    ),
    Fails(
        check="CTX-12",
        changes={BATCHED: True, f"{GENERATOR}.chat_template_kwargs": {"enable_thinking": False}},
        says="chat_template_kwargs do not reach the engine where batched is true",
        severity="warning",
    ),
    # Case 89.
    Fails(check="CTX-12", changes={ASYNC: False}, says="async_engine: false needs batched: true"),
    Fails(
        check="CTX-24",
        base="moe",
        changes=_KEEPING,
        runtime=_runtime(in_flight_weight_update={"vllm": ("GB200",)}),
        says="which is not available with vllm on H100",
    ),
    Fails(
        check="CTX-24",
        base="moe",
        changes=_KEEPING,
        runtime=_runtime(in_flight_weight_update={}),
        says="which is not available with vllm on H100",
    ),
    Fails(
        check="CTX-25",
        changes=RESOLVED | {LOCAL: False},
        says="num_inference_engines=8, but remote_inference_engine_urls has 1 URL",
    ),
    Fails(check="CTX-25", changes=RESOLVED | {LOCAL: False, URLS: []}, says="has 0 URLs"),
    Fails(check="CTX-26", changes={SEQUENCES: 0}, says="generator.max_num_seqs=0 must be >= 1"),
    Fails(
        check="CTX-26", changes={BATCHED_TOKENS: -1}, says="generator.max_num_batched_tokens=-1 must be >= 1"
    ),
    Fails(
        check="CTX-26",
        changes={f"{GENERATOR}.http_endpoint_port": 70000},
        says="generator.http_endpoint_port=70000 must be in [1, 65535]",
    ),
    # --- sampling -----------------------------------------------------------------------------------
    # Case 86.
    Fails(
        check="CTX-13",
        changes={f"{SAMPLING}.logprobs": 5},
        says="sampling logprobs=5: allowed are null and 0",
    ),
    Fails(check="CTX-13", changes={f"{SAMPLING}.logprobs": -1}, says="sampling logprobs=-1: allowed are"),
    Fails(check="CTX-13", changes={f"{SAMPLING}.logprobs": True}, says="sampling logprobs=true: allowed are"),
    Fails(
        check="CTX-13",
        changes={f"{SAMPLING}.logprobs": 8, "skyrl.teachers.a": {"top_k": 4}},
        says="sampling logprobs=8: allowed are",
    ),
    Fails(
        check="CTX-13",
        changes=RESOLVED | {f"{SAMPLING}.logprobs": 0, LOCAL: False},
        says="sampling logprobs=0: remote engines return none",
    ),
    Fails(
        check="CTX-13",
        changes={TIS: True, f"{SAMPLING}.top_p": 0.9},
        says="use_tis needs the whole distribution: top_p=1, got 0.9",
    ),
    Fails(
        check="CTX-13",
        changes={LOSS: "behavior_clip", f"{SAMPLING}.top_k": 50},
        says="policy loss behavior_clip needs the whole distribution: top_k=-1, got 50",
    ),
    Fails(
        check="CTX-13",
        changes={TIS: True, TEMPERATURE: 1e-06},
        says="use_tis needs temperature >= 1e-05, got 1e-06",
    ),
    Fails(
        check="CTX-13",
        changes={TIS: True, f"{KWARGS}.logprobs_mode": "raw_logprobs"},
        says="use_tis needs engine_init_kwargs.logprobs_mode=processed_logprobs, got 'raw_logprobs'",
    ),
    Fails(
        check="CTX-13",
        changes={TIS: True, f"{KWARGS}.override_generation_config": {"top_k": 20}},
        says="engine_init_kwargs.override_generation_config changes the distribution",
    ),
    Fails(check="CTX-21", changes={TEMPERATURE: 0}, says="temperature 0 gives no behaviour probabilities"),
    Fails(check="CTX-21", changes={TEMPERATURE: -0.5}, says="temperature -0.5: it must be > 0"),
    Fails(check="CTX-21", changes={TEMPERATURE: float("inf")}, says="temperature inf: it must be > 0"),
    Fails(
        check="CTX-21",
        changes={TEMPERATURE: 1e-06},
        says="temperature 1e-06 is below 1e-05",
        severity="warning",
    ),
    Fails(
        check="CTX-21",
        changes={ENTRYPOINT: "generate", TEMPERATURE: -1},
        says="temperature -1: it must be >= 0",
    ),
    Fails(
        check="CTX-21",
        changes={f"{EVALUATION}.temperature": -1.0},
        says="generator.eval_sampling_params.temperature=-1.0 must be >= 0",
    ),
    Fails(
        check="CTX-27",
        changes={f"{SAMPLING}.top_p": 1.5},
        says="generator.sampling_params.top_p=1.5 must be in (0, 1]",
    ),
    Fails(
        check="CTX-27",
        changes={f"{EVALUATION}.top_p": 0},
        says="eval_sampling_params.top_p=0 must be in (0, 1]",
    ),
    Fails(check="CTX-27", changes={f"{SAMPLING}.top_k": -2}, says="sampling_params.top_k=-2 must be >= -1"),
    Fails(
        check="CTX-27", changes={f"{SAMPLING}.min_p": 1.2}, says="sampling_params.min_p=1.2 must be in [0, 1]"
    ),
    Fails(
        check="CTX-27",
        changes={f"{SAMPLING}.repetition_penalty": 0.0},
        says="sampling_params.repetition_penalty=0.0 must be > 0",
    ),
    Fails(check="CTX-27", changes={f"{SAMPLING}.top_p": float("nan")}, says="top_p=nan must be in (0, 1]"),
    Fails(
        check="CTX-27",
        changes={f"{EVALUATION}.top_k": 0},
        says="top_k=0: some engines refuse it",
        severity="warning",
    ),
    Fails(
        check="CTX-27",
        changes={f"{EVALUATION}.logprobs": 5},
        says="evaluation logprobs=5: the engines are started with max_logprobs=1",
        severity="warning",
    ),
    # --- speculative decoding -----------------------------------------------------------------------
    # Case 91.
    Fails(
        check="CTX-14",
        base="moe",
        changes={DRAFT: _SERVED | {"model": _HF_MODEL | {"source_identity": "main"}}},
        says="draft source_identity 'main' is not a full commit",
    ),
    Fails(
        check="CTX-14",
        base="moe",
        changes={DRAFT: _SERVED | {"model": _HF_MODEL | {"source_identity": "AB" * 20}}},
        says="is not a full commit (40 lower-case hex digits)",
    ),
    Fails(
        check="CTX-14",
        changes={DRAFT: _SERVED},
        says="speculative_decoding needs colocate_all: false, got true",
    ),
    Fails(
        check="CTX-14",
        base="moe",
        changes={DRAFT: _SERVED, BACKEND: "sglang"},
        says="speculative_decoding needs backend: vllm, got sglang",
    ),
    Fails(
        check="CTX-14",
        base="moe",
        changes={DRAFT: _SERVED, LOCAL: False},
        says="speculative_decoding needs run_engines_locally: true, got false",
    ),
    Fails(check="CTX-14", base="moe", changes={DRAFT: 3}, says="speculative_decoding is 3, not a mapping"),
    Fails(check="CTX-14", base="moe", changes={DRAFT: {}}, says="speculative_decoding is empty"),
    Fails(
        check="CTX-14",
        base="moe",
        changes={DRAFT: _SERVED | {"model": {"source_uri": "HF://lab/draft", "source_identity": "main"}}},
        says="draft source_identity 'main' is not a full commit",
    ),
    Fails(
        check="CTX-14",
        base="moe",
        changes={DRAFT: _SERVED | {"method": "medusa"}},
        says="speculative_decoding.method is 'medusa'. Known: eagle3",
    ),
    Fails(check="CTX-14", base="moe", changes={f"{DRAFT}.model": _HF_MODEL}, says="method is null"),
    Fails(
        check="CTX-14",
        base="moe",
        changes={DRAFT: _SERVED | {"num_speculative_tokens": 0}},
        says="num_speculative_tokens must be a positive integer, got 0",
    ),
    Fails(
        check="CTX-14",
        base="moe",
        changes={DRAFT: _SERVED | {"tokens": 3}},
        says="speculative_decoding has no field 'tokens'. Its fields: method, model",
    ),
    Fails(
        check="CTX-14",
        base="moe",
        changes={DRAFT: _SERVED | {"model": "lab/draft"}},
        says="speculative_decoding.model is 'lab/draft', not a mapping",
    ),
    Fails(
        check="CTX-14",
        base="moe",
        changes={DRAFT: _SERVED | {"model": _STORED_MODEL | {"source_identity": " "}}},
        says="the draft model needs a source_identity, got ' '",
    ),
    *(
        Fails(
            check="CTX-14",
            base="moe",
            changes={DRAFT: _SERVED | {"model": _HF_MODEL | {"source_uri": uri}}},
            says=says,
        )
        for uri, says in (
            ("hf://lab", "is not of the form hf://namespace/repository"),
            ("hf://lab/draft/", "is not of the form hf://namespace/repository"),
            ("hf://../draft", "is not of the form hf://namespace/repository"),
            ("hf://lab/draft::sub", "is not of the form hf://namespace/repository"),
            ("hf://lab/dra\\ft", "is not of the form hf://namespace/repository"),
            ("hf://~lab/draft", "is not of the form hf://namespace/repository"),
            ("S3://lab/draft", "must use hf, s3, gs or gcs"),
            ("lab/draft", "must use hf, s3, gs or gcs"),
            ("s3://lab", "is not a complete address in an object store"),
            ("s3://[lab", "draft source_uri 's3://[lab' is no address"),
            (None, "draft source_uri null is no address"),
        )
    ),
    # Case n44.
    Fails(
        check="CTX-14",
        base="moe",
        changes=_TRAINED | {ENGINES: 2},
        says="speculative_decoding.training needs num_inference_engines=1, got 2",
    ),
    Fails(check="CTX-14", base="moe", changes=_TRAINED | {TP: 2}, says="tensor_parallel_size=1, got 2"),
    Fails(check="CTX-14", base="moe", changes=_TRAINED | {PP: 2}, says="pipeline_parallel_size=1, got 2"),
    Fails(
        check="CTX-14",
        base="moe",
        changes=_TRAINED | {ASYNC: False},
        says="needs async_engine: true, got false",
    ),
    Fails(
        check="CTX-14",
        base="moe",
        changes=_TRAINED | {ENTRYPOINT: "fully_async"},
        says="training needs the entry point standard, got fully_async",
    ),
    Fails(
        check="CTX-14",
        base="moe",
        changes=_TRAINED | {f"{KWARGS}.async_scheduling": True},
        says="does not go with engine_init_kwargs.async_scheduling",
    ),
    Fails(
        check="CTX-14",
        base="moe",
        changes=_TRAINED | {f"{_FIELD}.holdout_fraction": 1.0},
        says="training.holdout_fraction=1.0 must be in (0, 1)",
    ),
    Fails(
        check="CTX-14",
        base="moe",
        changes=_TRAINED | {f"{_FIELD}.interval_steps": 1.5},
        says="training.interval_steps=1.5 must be an integer >= 1",
    ),
    Fails(
        check="CTX-14",
        base="moe",
        changes=_TRAINED | {_FIELD: 4},
        says="speculative_decoding.training is 4, not a mapping",
    ),
    # --- chat template ------------------------------------------------------------------------------
    Fails(
        check="CTX-15",
        changes={TEMPLATE: "qwen3_with_thinkin"},
        says="chat template 'qwen3_with_thinkin' does not exist, as far as is known. Known: qwen3_with_thinking",
        severity="warning",
    ),
    Fails(
        check="CTX-15",
        changes={TEMPLATE: "lab"},
        runtime=_runtime(chat_templates=("other",), chat_templates_complete=True),
        says="chat template 'lab' does not exist. Known: other",
    ),
    Fails(
        check="CTX-15",
        changes={TEMPLATE: "qwen3_with_thinking", TEMPLATE_SOURCE: "path"},
        says="chat_template.source is 'path'. Known: name, file",
    ),
    Fails(
        check="CTX-15",
        changes={TEMPLATE: "lab.jinja", TEMPLATE_SOURCE: "file"},
        says="chat template file 'lab.jinja' is a relative path",
        severity="warning",
    ),
    Fails(
        check="CTX-15",
        changes={INPUT_TEMPLATE: "lab"},
        says="inputs.model.chat_template is 'lab', the rollout uses the template of the tokenizer",
        severity="warning",
    ),
)

PASSING = (
    *(
        Passes(check=check, base=base)
        for base in ("smoke", "moe")
        for check in (
            *(
                "CTX-06",
                "CTX-07",
                "CTX-12",
                "CTX-13",
                "CTX-14",
                "CTX-15",
                "CTX-18",
                "CTX-21",
                "CTX-22",
                "CTX-23",
            ),
            *("CTX-24", "CTX-25", "CTX-26", "CTX-27"),
        )
    ),
    Passes(check="CTX-04", facts=_model()),
    # Case n10.
    Passes(check="CTX-04", changes={WINDOW: 40960, NEW: 8192}, facts=_model()),
    Passes(check="CTX-04", changes={WINDOW: 131072, TRAINER_ROPE: _YARN}, facts=_model()),
    Passes(check="CTX-04", changes={WINDOW: 131072, TRAINER_ROPE: _YARN, ENGINE_ROPE: {}}, facts=_model()),
    Passes(check="CTX-04", changes={WINDOW: 131072, TRAINER_ROPE: _YARN, ENGINE_ROPE: _YARN}, facts=_model()),
    Passes(check="CTX-04", changes={WINDOW: 40000, POSITIONS: 65536}, facts=_model()),
    Passes(check="CTX-04", changes={WINDOW: 65536, POSITIONS: 65536, TRAINER_ROPE: _YARN}, facts=_model()),
    Passes(
        check="CTX-04",
        changes=RESOLVED | {MAX_LEN: 131072, TRAINER_ROPE: _YARN, ENGINE_ROPE: _YARN},
        facts=_model(),
    ),
    Passes(check="CTX-04", changes=RESOLVED | {MAX_LEN: 40960}, facts=_model()),
    Passes(
        check="CTX-04",
        changes={f"{OVERRIDES}.rope_parameters": {"rope_theta": 1e6}, f"{OVERRIDES}.architectures": ["Lab"]},
        facts=_model(),
    ),
    Passes(check="CTX-06", base="moe", changes={CHUNKED: False, BATCHED_TOKENS: 9216}),
    Passes(check="CTX-06", base="moe", changes={BATCHED_TOKENS: 512}),
    Passes(check="CTX-06", base="moe", changes={CHUNKED: False, BACKEND: "sglang"}),
    Passes(check="CTX-18", changes={BATCHED_TOKENS: 1024}),
    Passes(check="CTX-18", changes={BATCHED_TOKENS: 512, BACKEND: "sglang"}),
    Passes(check="CTX-19", changes={WINDOW: 65536, TRAINER_ROPE: _YARN}, facts=_model()),
    Passes(check="CTX-19", changes={POSITIONS: 40960}, facts=_model()),
    Passes(check="CTX-19", changes={TRAINER_ROPE: {}, f"{OVERRIDES}.architectures": ["Lab"]}),
    Passes(check="CTX-22", runtime=_runtime(token_cap_per_gpu=1536), changes={NEW: 512}),
    Passes(check="CTX-23", base="moe", changes={POLICY_TP: 4, WINDOW: 9218}),
    Passes(check="CTX-23", base="moe", changes={POLICY_TP: 4}, runtime=_runtime(pads_sequences=False)),
    Passes(check="CTX-08", changes={TP: 8}, facts=_model()),
    Passes(check="CTX-08", changes={TP: 8, HEADS: 16}),
    Passes(check="CTX-08", changes={TP: 7, HEADS: 14}, facts=_model(num_attention_heads=14)),
    Passes(check="CTX-09", facts=_model(), changes={TP: 16}),
    Passes(check="CTX-09", facts=_model(num_key_value_heads=4), changes={TP: 8}),
    Passes(check="CTX-09", base="moe", facts=_model(num_experts=64), changes={TP: 1}),
    Passes(
        check="CTX-09",
        facts=_model(num_experts=64, moe_intermediate_size=768, num_key_value_heads=4),
        changes={TP: 8},
    ),
    Passes(
        check="CTX-09",
        changes={TP: 4},
        facts=_model(num_key_value_heads=6, architecture="DeepseekV3ForCausalLM"),
    ),
    Passes(check="CTX-09", changes={TP: 1}),
    # Case n09.
    Passes(check="CTX-10", changes={TP: 8, DCP: 4}, facts=_model(num_key_value_heads=2)),
    Passes(check="CTX-10", changes={TP: 8, DCP: 1}),
    # The trainer and vLLM take both together where this variable is 1.
    Passes(
        check="CTX-10",
        changes={
            TP: 8,
            DCP: 4,
            REPLAY: True,
            f"{KWARGS}.enable_return_routed_experts": True,
            "runtime.task_env.VLLM_ALLOW_ROUTED_EXPERTS_DCP": "1",
        },
        facts=_model(num_key_value_heads=2),
    ),
    Passes(
        check="CTX-10",
        changes={TP: 8, DCP: 8},
        facts=_model(num_key_value_heads=128, architecture="DeepseekV3ForCausalLM"),
    ),
    Passes(check="CTX-07", changes={f"{KWARGS}.kv_cache_dtype": "fp8", f"{KWARGS}.moe_backend": "triton"}),
    Passes(check="CTX-07", changes=RESOLVED | {MAX_LEN: 1536, f"{KWARGS}.served_model_name": "lab"}),
    Passes(check="CTX-12", changes={ASYNC: False, BATCHED: True}),
    Passes(check="CTX-12", changes={HTTP: True}),
    Passes(check="CTX-12", changes={PP: 2}),
    Passes(check="CTX-12", changes={BACKEND: "sglang", ASYNC: False}),
    Passes(
        check="CTX-24",
        base="moe",
        changes=_KEEPING,
        runtime=_runtime(in_flight_weight_update={"vllm": ("H100",)}),
    ),
    Passes(check="CTX-24", base="moe", changes={ENTRYPOINT: "fully_async"}),
    Passes(check="CTX-24", base="moe", changes={PAUSE: "keep", VARIANT: 3}),
    Passes(check="CTX-25", changes=RESOLVED | {LOCAL: False, ENGINES: 1}),
    Passes(
        check="CTX-26", changes={SEQUENCES: 1, BATCHED_TOKENS: 1, f"{GENERATOR}.http_endpoint_port": 65535}
    ),
    Passes(check="CTX-13", changes={f"{SAMPLING}.logprobs": 0}),
    Passes(check="CTX-13", changes={f"{SAMPLING}.logprobs": 4, "skyrl.teachers.a": {"top_k": 4}}),
    # Case n55.
    Passes(check="CTX-13", changes={TIS: True, f"{SAMPLING}.top_p": 1, f"{SAMPLING}.top_k": -1}),
    Passes(check="CTX-13", changes={TIS: True, TEMPERATURE: 1e-05, f"{SAMPLING}.min_p": 0.0}),
    Passes(check="CTX-13", changes={TIS: True, f"{KWARGS}.logprobs_mode": "processed_logprobs"}),
    Passes(check="CTX-13", changes={f"{SAMPLING}.top_p": 0.9}),
    Passes(check="CTX-21", changes={TEMPERATURE: 1e-05, f"{EVALUATION}.temperature": 0}),
    Passes(check="CTX-21", changes={ENTRYPOINT: "generate", TEMPERATURE: 0}),
    Passes(check="CTX-21", changes={TEMPERATURE: 1}),
    Passes(check="CTX-27", changes={f"{SAMPLING}.top_p": 1, f"{SAMPLING}.top_k": 1, f"{SAMPLING}.min_p": 1}),
    Passes(check="CTX-27", changes={f"{EVALUATION}.logprobs": 1, f"{SAMPLING}.top_p": "0.9"}),
    Passes(check="CTX-14", base="moe", changes={DRAFT: _SERVED}),
    Passes(check="CTX-14", base="moe", changes={DRAFT: _SERVED | {"model": _HF_MODEL}}),
    Passes(check="CTX-14", changes={DRAFT: None}),
    Passes(
        check="CTX-14",
        base="moe",
        changes={DRAFT: _SERVED | {"model": _HF_MODEL | {"source_uri": "HF://lab/draft"}}},
    ),
    # Case n42.
    Passes(check="CTX-14", base="moe", changes=_TRAINED),
    Passes(
        check="CTX-14",
        base="moe",
        changes=_TRAINED
        | {
            f"{_FIELD}.learning_rate": 5e-05,
            f"{_FIELD}.max_validation_loss_increase": 0,
            f"{KWARGS}.async_scheduling": False,
        },
    ),
    Passes(check="CTX-15", changes={TEMPLATE: "", TEMPLATE_SOURCE: "name"}),
)

NOT_CHECKED = (
    NotChecked(check="CTX-04", needs="a model card with max_position_embeddings"),
    NotChecked(
        check="CTX-04",
        changes={WINDOW: 65536, POSITIONS: 65536},
        needs="a model card with max_position_embeddings",
    ),
    NotChecked(
        check="CTX-04",
        changes={WINDOW: 65536, POSITIONS: 65536},
        facts=_model(max_position_embeddings=None),
        needs="max_position_embeddings in the model card",
    ),
    NotChecked(
        check="CTX-04",
        facts=_model(max_position_embeddings=None),
        needs="max_position_embeddings in the model card",
    ),
    NotChecked(check="CTX-04", changes={TRAINER_ROPE: {"rope_type": "yarn"}}, needs=f"{TRAINER_ROPE}.factor"),
    NotChecked(check="CTX-04", changes={TRAINER_ROPE: "yarn"}, needs=f"{TRAINER_ROPE} as a mapping"),
    NotChecked(check="CTX-04", changes={POSITIONS: "x"}, needs=f"{POSITIONS} as a positive integer"),
    NotChecked(
        check="CTX-04",
        changes={TRAINER_ROPE: _YARN | {"original_max_position_embeddings": 0}},
        needs="original_max_position_embeddings as a positive integer",
    ),
    NotChecked(check="CTX-08", changes={TP: 2}, needs="a model card with num_attention_heads"),
    NotChecked(check="CTX-09", changes={TP: 2}, needs="a model card with num_experts"),
    NotChecked(
        check="CTX-09",
        changes={TP: 2},
        facts=_model(num_experts=8),
        needs="moe_intermediate_size in the model card",
    ),
    NotChecked(check="CTX-10", changes={TP: 4, DCP: 2}, needs="a model card with num_key_value_heads"),
    NotChecked(check="CTX-15", changes={TEMPLATE: "qwen3_with_thinking"}, needs="the text of chat template"),
    NotChecked(
        check="CTX-15",
        changes={TEMPLATE: "/app/lab.jinja", TEMPLATE_SOURCE: "file"},
        needs="the file '/app/lab.jinja' of the task's image",
    ),
    NotChecked(
        check="CTX-15",
        changes={TEMPLATE: "lab"},
        runtime=_runtime(chat_templates=DELETED),
        needs="chat_templates in the runtime manifest",
    ),
    NotChecked(check="CTX-19", changes={POSITIONS: 65536}, needs="a model card with max_position_embeddings"),
    NotChecked(check="CTX-21", changes={TEMPERATURE: float("nan")}, needs=f"{TEMPERATURE} as a number"),
    NotChecked(
        check="CTX-22", runtime=_runtime(token_cap_per_gpu=DELETED), needs="token_cap_per_gpu in the runtime"
    ),
    NotChecked(
        check="CTX-23",
        base="moe",
        changes={POLICY_TP: 4, WINDOW: 9218},
        runtime=_runtime(pads_sequences=DELETED),
        needs="pads_sequences in the runtime manifest",
    ),
    NotChecked(check="CTX-24", base="moe", changes=_KEEPING, needs="in_flight_weight_update in the runtime"),
    NotChecked(
        check="CTX-14",
        base="moe",
        changes={DRAFT: _SERVED},
        runtime=_runtime(speculative_fields=DELETED),
        needs="speculative_fields in the runtime manifest",
    ),
    NotChecked(
        check="CTX-14", base="moe", changes={DRAFT: _SERVED, COLOCATED: 0}, needs=f"{COLOCATED} as bool"
    ),
    NotChecked(check="CTX-23", base="moe", changes={STRATEGY: 3}, needs=f"{STRATEGY} as str"),
)
