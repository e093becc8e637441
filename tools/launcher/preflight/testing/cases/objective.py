"""Cases of the OBJ checks. Those of unknown keys: recipe_keys.py."""

from typing import Any

from tools.launcher.preflight.testing.cases.batches import ENTRYPOINT, EPOCHS, ESTIMATOR, MAX_STEPS
from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes
from tools.launcher.preflight.testing.cases.context import BUDGET
from tools.launcher.preflight.testing.cases.engine_settings import ALGORITHM, LOSS, RESOLVED, TIS
from tools.launcher.preflight.testing.cases.geometry import COLOCATED, KL
from tools.launcher.preflight.testing.experiments import planned
from tools.launcher.preflight.testing.subjects import DELETED, cluster_card, dataset_card, pinned_runtime
from tools.launcher.rl.recipe import SkyRLRecipe

TRAINER = "skyrl.trainer"
KL_REWARD = f"{ALGORITHM}.use_kl_in_reward"
KL_COEFFICIENT = f"{ALGORITHM}.kl_loss_coef"
KL_KIND = f"{ALGORITHM}.kl_estimator_type"
KL_CONTROL = f"{ALGORITHM}.kl_ctrl.type"
CAP = f"{ALGORITHM}.tis_imp_ratio_cap"
REDUCTION = f"{ALGORITHM}.loss_reduction"
MODULE = "runtime.entrypoint"
ENVIRONMENT = "skyrl.environment.env_class"
EXPORT = "run.export_hf"
KEEP = f"{TRAINER}.max_ckpts_to_keep"
RETENTION = "artifacts.resume_checkpoint_count"
CKPT = f"{TRAINER}.ckpt_interval"
HF = f"{TRAINER}.hf_save_interval"
EVAL = f"{TRAINER}.eval_interval"
RESUME = f"{TRAINER}.resume_mode"
RESUME_PATH = f"{TRAINER}.resume_path"
DEBUG = f"{TRAINER}.debug_mode"
OPTIMIZER = f"{TRAINER}.policy.optimizer_config"
BIAS = f"{TRAINER}.policy.grug_query_bias"
SHAPING = "skyrl.generator.trajectory_reward_shaping"
TRACES = "skyrl.generator.trajectory_retention"
AGENTS = "skyrl.terminal_bench"
HARBOR = f"{AGENTS}.harbor"
EXACT = f"{HARBOR}.collect_rollout_details"

_COMPOSED: dict[str, Any] = {
    BUDGET: DELETED,
    MODULE: "skyrl_train.entrypoints.main_base",
    "skyrl.trainer.seed": 17,
}
_EXPORTING: dict[str, Any] = {
    BUDGET: DELETED,
    MODULE: "skyrl_train.entrypoints.checkpoint_export",
    "run.mode": "checkpoint_export",
}
_HTTP: dict[str, Any] = {
    "skyrl.generator.enable_http_endpoint": True,
    "skyrl.generator.chat_template.name_or_path": "qwen3_without_thinking",
}
_AGENTIC: dict[str, Any] = {
    ENTRYPOINT: "terminal_bench",
    HARBOR: {"mask_exceptions": ["DaytonaError"], "verifier_override_timeout_sec": 2400},
}
COMPOSED_HARBOR = "skyrl.terminal_bench_config.harbor"
_COMPOSED_AGENTIC: dict[str, Any] = _COMPOSED | {
    MODULE: "skyrl_train.entrypoints.terminal_bench",
    COMPOSED_HARBOR: _AGENTIC[HARBOR],
}
PLAN = f"{ALGORITHM}.distillation"
TEACHER = "skyrl.teachers.judge"
ROUTING = "skyrl.teacher_routing"
ROUTES = f"{ROUTING}.main.routes"
_LOCAL_TEACHER: dict[str, Any] = {
    "source": "local_inference",
    "backend": "vllm",
    "evidence": "chosen_token",
    "model": {"path": "lab/judge", "revision": "ab" * 20},
    "resources": {"num_nodes": 1, "gpus_per_node": 8, "tensor_parallel_size": 8, "colocation_group": "judge"},
}
_EXTERNAL_TEACHER: dict[str, Any] = {
    "source": "openai_compatible",
    "evidence": "topk_distribution",
    "top_k": 16,
    "model": {"path": "lab/judge", "revision": "ab" * 20},
    "endpoints": [{"url": "https://judge.lab/v1", "max_concurrency": 4}],
    "tokenizer_fingerprint": "sha256:" + "a" * 64,
    "max_sequence_length": 4096,
    "request_timeout_seconds": 60.0,
}
_DISTILLING: dict[str, Any] = {
    TEACHER: _LOCAL_TEACHER,
    PLAN: {
        "objective": "sampled_reverse_kl",
        "routing_plan": "main",
        "coefficient": 0.1,
        "reward_mode": "add",
    },
    f"{ROUTING}.main": {"revision": "1", "routes": {"all": {"teacher": "judge", "weight": 1.0}}},
}
_HARBOR_KEYS = (
    *("mask_exceptions", "verifier_override_timeout_sec", "n_concurrent_trials", "collect_rollout_details"),
    "preserve_logprobs_on_timeout",
)


def _runtime(**facts: Any) -> Any:
    return lambda: pinned_runtime(**facts)


def _data(**facts: Any) -> dict[str, Any]:
    return {"train_dataset": dataset_card(**facts)}


def _recipe(**trainer: Any) -> SkyRLRecipe:
    return SkyRLRecipe.combine(mine={"trainer": trainer})


_KNOWN_KEYS = _runtime(harbor_keys=_HARBOR_KEYS)

FAILING = (
    Fails(check="OBJ-01", changes={KL: DELETED}, says="use_kl_loss is not declared; the base default true"),
    Fails(check="OBJ-01", changes={KL: None}, says="use_kl_loss is not declared"),
    # Case 42.
    Fails(check="OBJ-01", changes={KL: True, KL_REWARD: True}, says="are both true. Keep one"),
    Fails(check="OBJ-01", changes=_COMPOSED | {KL: DELETED, KL_REWARD: True}, says="are both true. Keep one"),
    # Case 83.
    Fails(
        check="OBJ-02",
        changes={ESTIMATOR: "groo"},
        says="unknown advantage_estimator 'groo'. Known: gae, grpo, rloo",
    ),
    Fails(check="OBJ-02", changes={ESTIMATOR: "gea"}, says="unknown advantage_estimator 'gea'"),
    # Case n56.
    Fails(
        check="OBJ-02", changes={LOSS: "dualclip"}, says="unknown policy_loss_type 'dualclip'. Known: regular"
    ),
    Fails(
        check="OBJ-02", changes={REDUCTION: "mean"}, says="unknown loss_reduction 'mean'. Known: token_mean"
    ),
    Fails(
        check="OBJ-02",
        changes={LOSS: "gspo"},
        says="policy loss gspo needs loss_reduction sequence_mean, got token_mean",
    ),
    Fails(
        check="OBJ-02",
        changes={LOSS: "sapo"},
        says="policy loss sapo was designed for loss_reduction sequence_mean",
        severity="warning",
    ),
    # Cases 80 and 81.
    Fails(check="OBJ-02", changes={TIS: True}, says="use_tis needs tis_imp_ratio_cap > 0, got -1.0"),
    Fails(check="OBJ-02", changes={TIS: True, CAP: 0}, says="use_tis needs tis_imp_ratio_cap > 0, got 0"),
    Fails(
        check="OBJ-02",
        changes={TIS: True, CAP: 2.0, LOSS: "gspo", REDUCTION: "sequence_mean"},
        says="use_tis with policy loss gspo, which does not support it. TIS corrects: regular, dual_clip",
    ),
    Fails(
        check="OBJ-02",
        changes={TIS: True, CAP: 2.0, LOSS: "behavior_clip"},
        says="use_tis with policy loss behavior_clip, which already uses the whole importance ratio",
    ),
    # Failure row 13.
    Fails(
        check="OBJ-03",
        changes={ENTRYPOINT: "my_project.train.old_main"},
        says="entrypoint 'my_project.train.old_main' is not registered. Known: standard, fully_async, generate, "
        "mini_swe, terminal_bench, terminal_bench_generate. A Python module is not accepted",
    ),
    Fails(check="OBJ-03", changes={ENTRYPOINT: "standart"}, says="entrypoint 'standart' is not registered"),
    Fails(check="OBJ-03", changes={ENTRYPOINT: ""}, says="entrypoint '' is not registered"),
    Fails(check="OBJ-03", changes={ENTRYPOINT: ["standard"]}, says="entrypoint a list is not registered"),
    # Case n57.
    Fails(
        check="OBJ-03",
        changes={ENVIRONMENT: "gsm9k"},
        says="unknown env_class 'gsm9k'. Known, of neighbouring commits: aime, gsm8k",
        severity="warning",
    ),
    Fails(
        check="OBJ-03",
        changes={ENVIRONMENT: "gsm9k"},
        runtime=_runtime(env_classes_complete=True),
        says="unknown env_class 'gsm9k'. Known: aime, gsm8k",
    ),
    Fails(
        check="OBJ-05",
        changes={RETENTION: 0},
        says="resume_checkpoint_count is 0: no checkpoint would be kept",
    ),
    Fails(
        check="OBJ-05",
        changes=_COMPOSED | {KEEP: 0},
        says="max_ckpts_to_keep is 0: no checkpoint would be kept",
    ),
    Fails(check="OBJ-06", changes={HF: 6}, says="hf_save_interval=6 is not a multiple of ckpt_interval=4"),
    Fails(check="OBJ-06", changes={HF: 2}, says="hf_save_interval=2 is not a multiple of ckpt_interval=4"),
    Fails(
        check="OBJ-06",
        changes={HF: 4, CKPT: -1},
        says="hf_save_interval=4, but ckpt_interval=-1 switches checkpoints off",
        severity="warning",
    ),
    Fails(
        check="OBJ-07",
        changes={RESUME: "from_path"},
        says="resume_mode is from_path, but resume_path is not set",
    ),
    Fails(
        check="OBJ-07",
        changes={RESUME_PATH: "s3://lab/old"},
        says="resume_path is set but resume_mode is 'latest', which does not read it",
    ),
    Fails(
        check="OBJ-07", changes={RESUME_PATH: "s3://lab/old", RESUME: "none"}, says="resume_mode is 'none'"
    ),
    # Case n59.
    Fails(
        check="OBJ-08",
        changes={CKPT: -1},
        says="export_hf needs a checkpoint, but ckpt_interval=-1 switches checkpoints off",
    ),
    Fails(
        check="OBJ-08",
        changes={CKPT: 0, EXPORT: DELETED},
        says="but ckpt_interval=0 switches checkpoints off",
    ),
    Fails(check="OBJ-08", changes={CKPT: 0, MAX_STEPS: DELETED}, says="switches checkpoints off"),
    # Case n58.
    Fails(
        check="OBJ-08",
        changes={CKPT: 20},
        says="export_hf needs a checkpoint, but ckpt_interval=20 exceeds 8 steps: only the save at the end is left",
        severity="warning",
    ),
    Fails(
        check="OBJ-08",
        changes={CKPT: 6, MAX_STEPS: DELETED},
        facts=_data(rows=80, max_prompt_tokens=100),
        says="ckpt_interval=6 exceeds 5 steps",
        severity="warning",
    ),
    Fails(
        check="OBJ-09",
        changes={f"{TRAINER}.distributed.worker_collective_timeout_seconds": 0},
        says="trainer.distributed.worker_collective_timeout_seconds=0 must be > 0",
    ),
    # runtime-facts.yaml lists these words; skyrl-keys.tsv the two settings.
    Fails(
        check="OBJ-09",
        changes={"skyrl.generator.override_existing_update_group": "on"},
        says="override_existing_update_group='on'. Known: auto, enable, disable",
    ),
    Fails(
        check="OBJ-09",
        changes={"skyrl.data.sampling.weighting": "variance", "skyrl.data.sampling.kind": "naive"},
        says="weighting='variance'. Known: pass-variance, group-informative",
    ),
    Fails(
        check="OBJ-09",
        changes={"skyrl.data.sampling.weighting": "variance"},
        says="(only data.sampling.kind reads it)",
        severity="warning",
    ),
    Fails(
        check="OBJ-09",
        changes={"skyrl.generator.timeout_multiplier": 0},
        says="timeout_multiplier=0 must be > 0",
    ),
    Fails(
        check="OBJ-09",
        changes={"skyrl.generator.engine_init_timeout_seconds": -1},
        says="generator.engine_init_timeout_seconds=-1 must be > 0",
    ),
    Fails(
        check="OBJ-09",
        changes={f"{TRAINER}.model_load_retry.max_retries": -1},
        says="trainer.model_load_retry.max_retries=-1 must be >= 0",
    ),
    Fails(
        check="OBJ-09",
        changes={f"{TRAINER}.progress.mode": "tqmd"},
        says="trainer.progress.mode='tqmd'. Known: auto, tqdm, logging",
    ),
    Fails(
        check="OBJ-09",
        changes={"skyrl.generator.r3_transport": "remote"},
        says="generator.r3_transport='remote'. Known: by_value, resident, decentral",
    ),
    Fails(
        check="OBJ-09",
        changes={"skyrl.generator.gdn_backend": 3},
        says="gdn_backend=3. Known: torch, flashqla",
    ),
    Fails(
        check="OBJ-09",
        changes={f"{TRAINER}.trajectory_selector.type": "best"},
        says="trainer.trajectory_selector.type='best'. Known: null, best_of_n",
    ),
    Fails(
        check="OBJ-09",
        base="moe",
        changes={ENTRYPOINT: "fully_async", f"{TRAINER}.fully_async.pause_mode": "wait"},
        says="trainer.fully_async.pause_mode='wait'. Known: abort, keep",
    ),
    Fails(
        check="OBJ-09",
        changes={f"{TRAINER}.fully_async.pause_mode": "wait"},
        says="trainer.fully_async.pause_mode='wait' (only fully_async reads it). Known: abort, keep",
        severity="warning",
    ),
    Fails(
        check="OBJ-09",
        changes={f"{TRAINER}.logger": "wandbb"},
        says="trainer.logger 'wandbb' is unknown, as far as is known. Known: wandb, console",
        severity="warning",
    ),
    Fails(
        check="OBJ-09",
        changes={f"{TRAINER}.logger": ["wandb", "konsole"]},
        says="trainer.logger 'konsole' is unknown",
        severity="warning",
    ),
    Fails(
        check="OBJ-10",
        changes=_COMPOSED_AGENTIC | {f"{COMPOSED_HARBOR}.verifier_override_timeout_sec": 300},
        runtime=_KNOWN_KEYS,
        says="verifier timeout 300s is below 2400s",
        at=f"{COMPOSED_HARBOR}.verifier_override_timeout_sec",
        severity="warning",
    ),
    Fails(
        check="OBJ-10",
        changes=_COMPOSED_AGENTIC | {"skyrl.terminal_bench_config": {}},
        says="entry point terminal_bench without a terminal_bench section",
        severity="warning",
    ),
    Fails(
        check="OBJ-10",
        changes=_COMPOSED | {"skyrl.terminal_bench_config": {"harbor": {"n_concurrent_trials": 4}}},
        says="a terminal_bench section makes the run agentic, the entry point is standard",
        severity="warning",
    ),
    Fails(
        check="OBJ-10",
        changes=_AGENTIC | {f"{HARBOR}.verifier_override_timeout_sec": 300},
        runtime=_KNOWN_KEYS,
        says="verifier timeout 300s is below 2400s",
        severity="warning",
    ),
    Fails(
        check="OBJ-10",
        changes=_AGENTIC | {f"{HARBOR}.n_concurrent_trials": 300},
        runtime=_KNOWN_KEYS,
        says="300 trials on 4 coordinators: at most 66 each",
        severity="warning",
    ),
    Fails(
        check="OBJ-10",
        changes=_AGENTIC | {f"{HARBOR}.mask_exceptions": DELETED},
        runtime=_KNOWN_KEYS,
        says="mask_exceptions is not declared",
        severity="warning",
    ),
    Fails(
        check="OBJ-10",
        changes=_AGENTIC | {f"{HARBOR}.preserve_logprobs_on_timeout": True},
        runtime=_KNOWN_KEYS,
        says="preserve_logprobs_on_timeout is true: cut trials are trained on",
        severity="warning",
    ),
    Fails(
        check="OBJ-10",
        changes=_AGENTIC | {f"{HARBOR}.verifier_timeout": 300},
        runtime=_KNOWN_KEYS,
        says="terminal_bench.harbor has no key 'verifier_timeout'; Harbor drops it",
        severity="warning",
    ),
    Fails(
        check="OBJ-10",
        changes={ENTRYPOINT: "terminal_bench"},
        says="entry point terminal_bench without a terminal_bench section",
        severity="warning",
    ),
    Fails(
        check="OBJ-10",
        changes={AGENTS: {"harbor": {}}},
        says="a terminal_bench section makes the run agentic, the entry point is standard",
        severity="warning",
    ),
    Fails(
        check="OBJ-13",
        changes={"skyrl.trainer.seed": 17},
        says="trainer.seed=17: the launcher sets it from run.seed",
    ),
    Fails(
        check="OBJ-13",
        changes={"skyrl.generator.engine_init_kwargs.served_model_name": "x"},
        says="served_model_name='x': the launcher sets it from inputs.model.local_path",
    ),
    Fails(check="OBJ-27", changes={PLAN: {}}, says="distillation is empty", severity="warning"),
    Fails(
        check="OBJ-27",
        changes=_DISTILLING | {f"{PLAN}.residency": {}},
        says="residency.max_resident must be a positive integer, got null",
        severity="warning",
    ),
    *(
        Fails(
            check="OBJ-27",
            changes={f"skyrl.{path}": None},
            says=f"{path} is null, which is no mapping",
            severity="warning",
        )
        for path in ("teachers", "teacher_routing")
    ),
    Fails(
        check="OBJ-13",
        changes={"skyrl.data.val_data": ["/data/v.parquet"], "inputs.validation_data": []},
        says="data.val_data=a list stays, since inputs.validation_data is empty; nothing brings these files",
        severity="warning",
    ),
    Fails(
        check="OBJ-13",
        changes={"skyrl.data.val_data": ["/data/v.parquet"]},
        says="val_data=a list: the launcher sets it from inputs.validation_data",
    ),
    Fails(
        check="OBJ-13",
        planned=lambda: planned(recipe=_recipe(max_ckpts_to_keep=3)),
        says="recipe part 'mine' sets trainer.max_ckpts_to_keep=3: the launcher sets it from "
        "artifacts.resume_checkpoint_count",
    ),
    Fails(
        check="OBJ-14",
        changes=_HTTP | {ENTRYPOINT: "fully_async"},
        says="fully_async cannot share GPUs with the engines; add rollout nodes: colocate_all is true",
    ),
    Fails(
        check="OBJ-14",
        base="moe",
        changes=_HTTP | {ENTRYPOINT: "fully_async", "skyrl.generator.enable_http_endpoint": DELETED},
        says="enable_http_endpoint is false",
    ),
    Fails(
        check="OBJ-14",
        base="moe",
        changes=_HTTP | {ENTRYPOINT: "fully_async", "skyrl.generator.async_engine": False},
        says="fully_async needs the asynchronous engine: async_engine is false",
    ),
    Fails(
        check="OBJ-14",
        base="moe",
        changes=_HTTP | {ENTRYPOINT: "fully_async", "skyrl.generator.batched": True},
        says="batched is true",
    ),
    Fails(
        check="OBJ-14",
        base="moe",
        changes={ENTRYPOINT: "fully_async", "skyrl.generator.enable_http_endpoint": True},
        says="fully_async needs chat_template.name_or_path, which is not set",
    ),
    Fails(
        check="OBJ-14",
        base="moe",
        changes=_HTTP
        | {
            "skyrl.context_budget": DELETED,
            "runtime.entrypoint": "skyrl_train.entrypoints.fully_async",
            "skyrl.generator.use_conversation_multi_turn": False,
        },
        says="fully_async talks in turns: use_conversation_multi_turn is false",
        severity="warning",
    ),
    Fails(
        check="OBJ-15",
        changes={f"{BIAS}_update_mode": "interpolat"},
        says="grug_query_bias_update_mode is 'interpolat'. Known: frozen, interpolate, loss_free, replace",
    ),
    Fails(
        check="OBJ-15",
        changes={f"{BIAS}_interpolation_weight": 0.3},
        says="interpolation_weight=0.3 needs mode interpolate, it is frozen",
    ),
    Fails(
        check="OBJ-15",
        changes={f"{BIAS}_update_mode": "interpolate", f"{BIAS}_interpolation_weight": 1.0},
        says="mode interpolate needs interpolation_weight in (0, 1), got 1.0",
    ),
    Fails(
        check="OBJ-15",
        changes={f"{BIAS}_update_mode": "loss_free"},
        says="mode loss_free needs update_rate > 0, got null",
    ),
    Fails(
        check="OBJ-15",
        changes={f"{BIAS}_update_mode": "replace", f"{BIAS}_update_rate": 0.1},
        says="update_rate=0.1 needs mode loss_free, it is replace",
    ),
    Fails(
        check="OBJ-16",
        changes={TIS: True, ENTRYPOINT: "mini_swe"},
        says="use_tis needs exact completions; mini_swe does not return them",
    ),
    Fails(
        check="OBJ-16",
        changes={LOSS: "behavior_clip", ENTRYPOINT: "terminal_bench", EXACT: False},
        says="policy loss behavior_clip needs exact completions: collect_rollout_details is false",
    ),
    Fails(
        check="OBJ-16",
        changes={TIS: True, ENTRYPOINT: "terminal_bench"},
        says="collect_rollout_details is not declared",
        severity="warning",
    ),
    Fails(
        check="OBJ-16",
        changes=_COMPOSED_AGENTIC
        | {LOSS: "behavior_clip", f"{COMPOSED_HARBOR}.collect_rollout_details": False},
        says="policy loss behavior_clip needs exact completions: collect_rollout_details is false",
        at=f"{COMPOSED_HARBOR}.collect_rollout_details",
    ),
    Fails(
        check="OBJ-17", changes={EVAL: 20}, says="eval_interval=20 never fires in 8 steps", severity="warning"
    ),
    Fails(
        check="OBJ-17",
        changes={CKPT: 20, EXPORT: False},
        says="ckpt_interval=20 never fires in 8 steps",
        severity="warning",
    ),
    Fails(
        check="OBJ-17",
        changes={EVAL: 9, MAX_STEPS: -1, EPOCHS: 2},
        facts=_data(rows=64, max_prompt_tokens=100),
        says="eval_interval=9 never fires in 8 steps",
        severity="warning",
    ),
    Fails(
        check="OBJ-17",
        changes=_COMPOSED | {EVAL: 3},
        facts=_data(rows=40),
        says="eval_interval=3 never fires in 2 steps",
        severity="warning",
    ),
    Fails(
        check="OBJ-18",
        changes={KL: True, KL_COEFFICIENT: 0.0},
        says="use_kl_loss with kl_loss_coef=0.0 costs a reference model for nothing",
        severity="warning",
    ),
    Fails(
        check="OBJ-18",
        changes={KL_REWARD: True, KL_COEFFICIENT: -0.1},
        says="use_kl_in_reward with kl_loss_coef=-0.1 rewards divergence",
        severity="warning",
    ),
    Fails(
        check="OBJ-18",
        changes={KL: True, KL_KIND: "k4"},
        says="kl_estimator_type is 'k4'. Known: k1, k2, k3, abs",
    ),
    Fails(
        check="OBJ-18",
        changes={KL_KIND: "k4"},
        says="kl_estimator_type is 'k4' (no KL term reads it now). Known",
        severity="warning",
    ),
    Fails(
        check="OBJ-18",
        changes={KL_REWARD: True, KL_CONTROL: "adaptve"},
        says="kl_ctrl.type is 'adaptve'. Known: fixed, adaptive",
    ),
    Fails(
        check="OBJ-18",
        changes={KL_REWARD: True, KL_CONTROL: "adaptive", f"{ALGORITHM}.kl_ctrl.horizon": 0},
        says="adaptive kl_ctrl needs horizon > 0, got 0",
    ),
    Fails(
        check="OBJ-19", changes={DEBUG: False}, says="debug_mode is a boolean: YAML reads a bare off as false"
    ),
    Fails(
        check="OBJ-19", changes={DEBUG: "heavy"}, says="debug_mode is 'heavy'. Known: off, light, distributed"
    ),
    Fails(
        check="OBJ-19", changes={RESUME: "auto"}, says="resume_mode is 'auto'. Known: none, latest, from_path"
    ),
    Fails(
        check="OBJ-19", changes={RESUME: False}, says="resume_mode is false. Known: none, latest, from_path"
    ),
    Fails(
        check="OBJ-21",
        changes={f"{OPTIMIZER}.lr": -1e-06},
        says="policy.optimizer_config.lr=-1e-06 must be >= 0",
    ),
    Fails(
        check="OBJ-21", changes={f"{OPTIMIZER}.lr": 0.0}, says="lr=0: nothing is learned", severity="warning"
    ),
    Fails(
        check="OBJ-21", changes={f"{OPTIMIZER}.lr": float("nan")}, says="optimizer_config.lr=nan must be >= 0"
    ),
    Fails(check="OBJ-21", changes={f"{OPTIMIZER}.weight_decay": -0.1}, says="weight_decay=-0.1 must be >= 0"),
    Fails(
        check="OBJ-21",
        changes={f"{OPTIMIZER}.adam_betas": [0.9, 1.0]},
        says="adam_betas must be two numbers in [0, 1), got 0.9, 1.0",
    ),
    Fails(check="OBJ-21", changes={f"{OPTIMIZER}.adam_betas": []}, says="adam_betas must be two numbers"),
    Fails(check="OBJ-22", changes={EPOCHS: 0}, says="trainer.epochs=0 must be >= 1"),
    Fails(
        check="OBJ-22",
        changes={f"{TRAINER}.update_epochs_per_batch": 0},
        says="trainer.update_epochs_per_batch=0 must be >= 1",
    ),
    Fails(
        check="OBJ-22",
        changes={EVAL: -5},
        says="eval_interval=-5 switches it off; write -1",
        severity="warning",
    ),
    Fails(check="OBJ-22", changes={MAX_STEPS: 0}, says="max_steps=0 is no limit", severity="warning"),
    Fails(
        check="OBJ-23",
        changes={f"{ALGORITHM}.eps_clip_low": -0.2},
        says="algorithm.eps_clip_low=-0.2 must be >= 0",
    ),
    Fails(
        check="OBJ-23",
        changes={f"{ALGORITHM}.dynamic_sampling.min_reward_std": -1},
        says="dynamic_sampling.min_reward_std=-1 must be >= 0",
    ),
    Fails(
        check="OBJ-23",
        changes={f"{ALGORITHM}.gamma": 1.1},
        says="trainer.algorithm.gamma=1.1 must be in [0, 1]",
        severity="warning",
    ),
    Fails(
        check="OBJ-23",
        changes={LOSS: "dual_clip", f"{ALGORITHM}.clip_ratio_c": 1.0},
        says="dual_clip needs clip_ratio_c > 1, got 1.0",
        severity="warning",
    ),
    Fails(
        check="OBJ-23",
        changes={f"{ALGORITHM}.ratio_diagnostics.pooled": True},
        says="ratio_diagnostics.pooled is true: only strategy megatron pools them",
        severity="warning",
    ),
    Fails(
        check="OBJ-24",
        changes={ENVIRONMENT: "aime"},
        facts=_data(env_class="gsm8k"),
        says="env_class is 'aime', the dataset card says 'gsm8k'",
        severity="warning",
    ),
    Fails(
        check="OBJ-25",
        changes={f"{SHAPING}.non_termination.penalty": -0.1},
        says="trajectory_reward_shaping.non_termination.penalty=-0.1 must be >= 0",
    ),
    Fails(
        check="OBJ-25",
        changes={f"{SHAPING}.loop.max_period_tokens": 128},
        says="loop.tail_tokens=256 does not cover max_period_tokens*minimum_occurrences=128*4",
    ),
    Fails(
        check="OBJ-25",
        changes={f"{TRACES}.max_bytes_per_run": 1024},
        says="max_bytes_per_step=838860800 exceeds max_bytes_per_run=1024",
    ),
    Fails(
        check="OBJ-25",
        changes={f"{TRACES}.sample_fraction": 1.5},
        says="sample_fraction=1.5 must be in [0, 1]",
    ),
    Fails(
        check="OBJ-25",
        changes={f"{TRACES}.phases": ["train", "test"]},
        says="trajectory_retention.phases may hold train and eval, got 'train', 'test'",
    ),
    Fails(
        check="OBJ-25",
        changes={f"{SHAPING}.schema_version": 1},
        says="trajectory_reward_shaping.schema_version=1, the runtime reads 2",
    ),
    Fails(
        check="OBJ-25",
        changes={
            f"{SHAPING}.loop.advantage_penalty_per_token": 0.01,
            f"{SHAPING}.loop.max_advantage_penalty": 0,
        },
        says="loop.max_advantage_penalty=0 with advantage_penalty_per_token=0.01",
    ),
    Fails(
        check="OBJ-25",
        changes={f"{SHAPING}.overlong.l_max": 100, f"{SHAPING}.overlong.l_cache": 200},
        says="overlong.l_cache=200 exceeds l_max=100",
    ),
    Fails(
        check="OBJ-25",
        changes={f"{SHAPING}.non_termination.accepted_stop_reasons": []},
        says="non_termination.accepted_stop_reasons is empty: no answer would count as finished",
    ),
    Fails(
        check="OBJ-25",
        changes={f"{TRACES}.accepted_stop_reasons": []},
        says="trajectory_retention.accepted_stop_reasons is empty",
    ),
    *(
        Fails(check="OBJ-26", changes=_DISTILLING | changes, says=says, severity="warning")
        for changes, says in (
            ({f"{TEACHER}.topk": 4}, "teachers.judge has no field 'topk'. Did you mean top_k?"),
            (
                {f"{TEACHER}.model.name": "x"},
                "teachers.judge.model has no field 'name'. Its fields: path, revision",
            ),
            ({f"{TEACHER}.resources.gpus": 8}, "teachers.judge.resources has no field 'gpus'"),
            (
                {f"{TEACHER}.placement": "external"},
                "source local_inference cannot be 'external'. Placements: pinned",
            ),
            ({f"{TEACHER}.backend": "sglang"}, "a local_inference teacher needs backend vllm, got 'sglang'"),
            ({f"{TEACHER}.backend": DELETED}, "a local_inference teacher needs backend vllm, got null"),
            (
                {f"{TEACHER}.evidence": "logits"},
                "evidence is 'logits'. Known: chosen_token, topk_distribution",
            ),
            ({f"{TEACHER}.evidence": "topk_distribution"}, "needs top_k as a positive integer, got null"),
            ({f"{TEACHER}.top_k": 4}, "top_k=4 is for topk_distribution, the evidence is chosen_token"),
            (
                {f"{TEACHER}.model.revision": ""},
                "a teacher needs model.path and model.revision, got 'lab/judge', ''",
            ),
            ({f"{TEACHER}.max_sequence_length": 10}, "max_sequence_length is for openai_compatible teachers"),
            ({TEACHER: _EXTERNAL_TEACHER | {"backend": "vllm"}}, "backend is for local_inference teachers"),
            ({TEACHER: _EXTERNAL_TEACHER | {"resources": {}}}, "an external teacher reserves no nodes"),
            ({TEACHER: _EXTERNAL_TEACHER | {"max_sequence_length": 0}}, "must be a positive integer, got 0"),
            ({TEACHER: _EXTERNAL_TEACHER | {"request_timeout_seconds": 0}}, "must be > 0, got 0"),
            (
                {TEACHER: _EXTERNAL_TEACHER | {"endpoints": [{"url": "https://a/v1", "key": "x"}]}},
                "teachers.judge.endpoints[0] has no field 'key'",
            ),
            (
                {TEACHER: _EXTERNAL_TEACHER | {"endpoints": [{"url": "https://a/v1"}]}},
                "max_concurrency must be a positive integer, got null",
            ),
            (
                {TEACHER: _EXTERNAL_TEACHER | {"endpoints": ["https://a/v1"]}},
                "an endpoint is 'https://a/v1', not a mapping",
            ),
        )
    ),
    *(
        Fails(check="OBJ-27", changes=_DISTILLING | changes, says=says, severity="warning")
        for changes, says in (
            ({PLAN: DELETED}, "teachers needs trainer.algorithm.distillation, which is not set"),
            ({PLAN: "opd"}, "distillation is 'opd', not a mapping"),
            ({f"{PLAN}.objective": "forward_kl"}, "distillation.objective is 'forward_kl'. Supported"),
            (
                {f"{PLAN}.objective": "sparse_forward_kl"},
                "needs evidence topk_distribution, got chosen_token",
            ),
            ({f"{PLAN}.reward_mode": "replace"}, "distillation.reward_mode is 'replace'. Supported: add"),
            ({f"{PLAN}.coefficient": 0}, "distillation.coefficient must be > 0, got 0"),
            ({f"{PLAN}.weight": 1}, "trainer.algorithm.distillation has no field 'weight'"),
            (
                {f"{PLAN}.residency.max_residents": 1},
                "distillation.residency has no field 'max_residents'. Did you mean max_resident?",
            ),
            (
                {f"{PLAN}.routing_plan": "other"},
                "routing_plan 'other' is not in teacher_routing. It has: main",
            ),
            ({ROUTING: DELETED}, "routing_plan 'main' is not in teacher_routing. It has: none"),
            ({"skyrl.teachers": DELETED}, "distillation without teachers"),
            ({ROUTES: {}}, "routing plan 'main' has no routes"),
            ({f"{ROUTES}.all.teacher": "jugde"}, "route 'all' names the teacher 'jugde'. Teachers: judge"),
            ({f"{ROUTES}.all.weight": -1}, "weight of route 'all' must be > 0, got -1"),
            ({f"{ROUTES}.all.share": 1}, "teacher_routing.main.routes.all has no field 'share'"),
            ({f"{ROUTING}.main.name": "x"}, "teacher_routing.main has no field 'name'"),
            ({f"{ROUTING}.main.revision": DELETED}, "routing plan 'main' needs a revision as text, got null"),
            (
                {f"{PLAN}.residency": {"max_resident": 0, "minimum_residency_seconds": 1}},
                "residency.max_resident must be a positive integer, got 0",
            ),
            (
                {f"{PLAN}.residency.max_resident": 1},
                "residency.minimum_residency_seconds must be >= 0, got null",
            ),
            ({"skyrl.teachers.other": _LOCAL_TEACHER}, "no route of plan 'main' leads to teacher other"),
        )
    ),
)

PASSING = (
    *(
        Passes(check=check, base=base)
        for base in ("smoke", "moe")
        for check in (
            *(
                "OBJ-01",
                "OBJ-02",
                "OBJ-03",
                "OBJ-05",
                "OBJ-06",
                "OBJ-07",
                "OBJ-08",
                "OBJ-09",
                "OBJ-10",
                "OBJ-13",
            ),
            *(
                "OBJ-14",
                "OBJ-15",
                "OBJ-16",
                "OBJ-17",
                "OBJ-18",
                "OBJ-19",
                "OBJ-21",
                "OBJ-22",
                "OBJ-23",
            ),
            *("OBJ-25", "OBJ-26", "OBJ-27"),
        )
    ),
    Passes(check="OBJ-13", changes=_COMPOSED),
    Passes(check="OBJ-13", changes={"skyrl.trainer.run_name": "mine", "skyrl.trainer.seed": None}),
    Passes(check="OBJ-13", planned=lambda: planned(recipe=_recipe(run_name="mine"))),
    Passes(check="OBJ-14", base="moe", changes=_HTTP | {ENTRYPOINT: "fully_async"}),
    Passes(check="OBJ-01", changes={KL: True}),
    Passes(check="OBJ-01", changes=_COMPOSED | {KL: False, KL_REWARD: True}),
    # Case n55.
    Passes(check="OBJ-02", changes={TIS: True, CAP: 2.0}),
    Passes(check="OBJ-02", changes={TIS: True, CAP: 1, LOSS: "dual_clip"}),
    Passes(check="OBJ-02", changes={LOSS: "gspo", REDUCTION: "sequence_mean"}),
    Passes(check="OBJ-02", changes={LOSS: "behavior_clip", ESTIMATOR: "reinforce++"}),
    Passes(check="OBJ-03", changes={ENTRYPOINT: None}),
    Passes(check="OBJ-03", changes={ENTRYPOINT: "mini_swe", ENVIRONMENT: "lab"}),
    Passes(check="OBJ-03", changes={ENVIRONMENT: DELETED}),
    Passes(check="OBJ-03", changes=_COMPOSED),
    Passes(check="OBJ-03", changes=_EXPORTING),
    Passes(check="DOC-08", changes=_EXPORTING),
    Passes(
        check="OBJ-03",
        changes={ENVIRONMENT: "cat_count"},
        facts={"cluster": cluster_card(scheduler="embedded", env_classes=("cat_count",))},
    ),
    Passes(check="OBJ-05", changes=RESOLVED | {RETENTION: 0, KEEP: -1}),
    Passes(check="OBJ-06", changes={HF: 8}),
    Passes(check="OBJ-06", changes={HF: -1, CKPT: -1}),
    # Case n63.
    Passes(check="OBJ-07", changes={RESUME: "none"}),
    Passes(check="OBJ-07", changes={RESUME: "from_path", RESUME_PATH: "s3://lab/old"}),
    # Case n60.
    Passes(check="OBJ-08", changes={EXPORT: False, CKPT: -1}),
    Passes(check="OBJ-08", changes={CKPT: 8}),
    Passes(check="OBJ-08", changes={ENTRYPOINT: "generate", CKPT: -1}),
    Passes(check="OBJ-08", changes={"run.mode": "checkpoint_export", CKPT: -1}),
    Passes(
        check="OBJ-09",
        changes={
            f"{TRAINER}.progress.mode": "logging",
            f"{TRAINER}.progress.min_interval_seconds": 0.1,
            f"{TRAINER}.trajectory_selector.type": None,
            f"{TRAINER}.policy.fsdp_config.cp_style": "ring_flash_attn",
            f"{TRAINER}.fully_async.pause_mode": "keep",
            f"{TRAINER}.logger": ["wandb", "console", "${oc.env:EXTRA}"],
        },
    ),
    Passes(check="OBJ-10", changes=_AGENTIC, runtime=_KNOWN_KEYS),
    Passes(check="OBJ-10", changes=_AGENTIC | {f"{HARBOR}.n_concurrent_trials": 264}, runtime=_KNOWN_KEYS),
    Passes(
        check="OBJ-10",
        changes={ENTRYPOINT: "terminal_bench_generate", HARBOR: {"verifier_override_timeout_sec": 10}},
        runtime=_KNOWN_KEYS,
    ),
    Passes(check="OBJ-10", changes=_COMPOSED),
    Passes(check="OBJ-10", changes=_COMPOSED | {"skyrl.terminal_bench_config": {}}),
    Passes(check="OBJ-10", changes=_COMPOSED_AGENTIC, runtime=_KNOWN_KEYS),
    Passes(
        check="OBJ-16",
        changes=_COMPOSED_AGENTIC | {TIS: True, CAP: 2.0, f"{COMPOSED_HARBOR}.collect_rollout_details": True},
    ),
    Passes(
        check="OBJ-15", changes={f"{BIAS}_update_mode": "interpolate", f"{BIAS}_interpolation_weight": 0.3}
    ),
    Passes(check="OBJ-15", changes={f"{BIAS}_update_mode": "loss_free", f"{BIAS}_update_rate": 1e-3}),
    Passes(check="OBJ-15", changes={f"{BIAS}_update_mode": "replace"}),
    Passes(check="OBJ-16", changes={TIS: True, CAP: 2.0}),
    Passes(check="OBJ-16", changes={ENTRYPOINT: "mini_swe"}),
    Passes(check="OBJ-16", changes={TIS: True, ENTRYPOINT: "terminal_bench", EXACT: True}),
    Passes(check="OBJ-17", changes={EVAL: 8}),
    Passes(check="OBJ-17", changes={EVAL: -1, CKPT: 20}),
    Passes(check="OBJ-17", changes={ENTRYPOINT: "generate", EVAL: 20}),
    Passes(check="OBJ-18", changes={KL: True, KL_KIND: "k1"}),
    Passes(check="OBJ-18", changes={KL_REWARD: True, KL_CONTROL: "adaptive", KL_COEFFICIENT: 0.05}),
    Passes(check="OBJ-18", changes={KL_COEFFICIENT: 0.0}),
    Passes(check="OBJ-19", changes={DEBUG: "off", RESUME: "none"}),
    Passes(check="OBJ-21", changes={f"{OPTIMIZER}.lr": 1, f"{OPTIMIZER}.adam_betas": [0, 0.999]}),
    Passes(check="OBJ-22", changes={EVAL: -1, CKPT: 0, MAX_STEPS: DELETED}),
    Passes(check="OBJ-22", changes={ENTRYPOINT: "generate", EPOCHS: 0}),
    Passes(check="OBJ-23", changes={f"{ALGORITHM}.eps_clip_low": 0, f"{ALGORITHM}.lambd": 0.95}),
    Passes(check="OBJ-23", changes={LOSS: "dual_clip"}),
    Passes(check="OBJ-23", base="moe", changes={f"{ALGORITHM}.ratio_diagnostics.pooled": True}),
    Passes(check="OBJ-24", facts=_data(env_class="gsm8k")),
    Passes(check="OBJ-24", facts=_data(env_class=None), changes={ENVIRONMENT: "aime"}),
    Passes(check="OBJ-24", changes={ENTRYPOINT: "mini_swe"}),
    *(Passes(check=check, changes=_DISTILLING) for check in ("OBJ-26", "OBJ-27", "GEO-17")),
    Passes(check="OBJ-26", changes={TEACHER: _EXTERNAL_TEACHER}),
    Passes(
        check="OBJ-27",
        changes=_DISTILLING | {f"{PLAN}.residency": {"max_resident": 1, "minimum_residency_seconds": 0.5}},
    ),
    Passes(
        check="OBJ-27",
        changes=_DISTILLING | {TEACHER: _EXTERNAL_TEACHER, f"{PLAN}.objective": "sparse_forward_kl"},
    ),
    Passes(
        check="OBJ-25",
        changes={f"{SHAPING}.schema_version": 2, f"{SHAPING}.loop.advantage_penalty_per_token": 0.01},
    ),
    Passes(check="OBJ-25", changes={f"{SHAPING}.overlong.l_max": 100, f"{SHAPING}.overlong.l_cache": 100}),
    Passes(check="OBJ-25", changes={f"{SHAPING}.loop.tail_tokens": 512, f"{TRACES}.phases": ["eval"]}),
)

NOT_CHECKED = (
    NotChecked(check="OBJ-02", changes={LOSS: 3}, needs=f"{LOSS} as str"),
    NotChecked(check="OBJ-08", changes={EXPORT: "yes"}, needs=f"{EXPORT} as bool"),
    NotChecked(check="OBJ-08", changes={MAX_STEPS: DELETED}, needs="a dataset card with rows"),
    NotChecked(check="OBJ-10", changes=_AGENTIC, needs="harbor_keys in the runtime manifest"),
    NotChecked(check="OBJ-13", runtime=lambda: None, needs="a runtime manifest"),
    NotChecked(
        check="OBJ-14", changes={ENTRYPOINT: "fully_async", COLOCATED: 1}, needs=f"{COLOCATED} as bool"
    ),
    NotChecked(
        check="OBJ-16",
        changes={TIS: True},
        runtime=_runtime(inexact_entrypoints=DELETED),
        needs="inexact_entrypoints in the runtime manifest",
    ),
    NotChecked(check="OBJ-17", changes={EVAL: 5, MAX_STEPS: DELETED}, needs="a dataset card with rows"),
    NotChecked(
        check="OBJ-17", changes={ENTRYPOINT: "standart"}, needs="skyrl.entrypoint as a registered name"
    ),
    NotChecked(
        check="OBJ-19",
        runtime=_runtime(recipe_enums=DELETED),
        needs="recipe_enums of trainer.resume_mode in the runtime manifest",
    ),
    NotChecked(
        check="OBJ-26",
        changes=_DISTILLING,
        runtime=_runtime(distillation_fields=DELETED),
        needs="distillation_fields in the runtime manifest",
    ),
    NotChecked(
        check="OBJ-26",
        changes=_DISTILLING,
        runtime=_runtime(distillation_objectives=DELETED),
        needs="distillation_objectives in the runtime manifest",
    ),
    NotChecked(
        check="OBJ-27",
        changes=_DISTILLING,
        runtime=_runtime(distillation_reward_modes=DELETED),
        needs="distillation_reward_modes in the runtime manifest",
    ),
    NotChecked(check="OBJ-24", needs="a dataset card with env_class"),
)
