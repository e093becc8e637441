"""Cases of the checks of recipe keys: OBJ-04, OBJ-11, OBJ-12, OBJ-20, CTX-16."""

from typing import Any

from tools.launcher.catalog.runtime_manifest import RecipeKey, RuntimeManifest
from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes
from tools.launcher.preflight.testing.experiments import planned
from tools.launcher.preflight.testing.subjects import DELETED, document, pinned_runtime
from tools.launcher.rl.recipe import SkyRLRecipe

TRAINER = "skyrl.trainer"
GENERATOR = "skyrl.generator"
LR = f"{TRAINER}.policy.optimizer_config.lr"
EPOCHS = f"{TRAINER}.epochs"

_RESOLVED: dict[str, Any] = {
    "skyrl.context_budget": DELETED,
    "runtime.entrypoint": "skyrl_train.entrypoints.main_base",
    "skyrl.entrypoint": DELETED,
    "skyrl.checkpoint_export.step": None,
    "skyrl.deepspeed_config.train.zero_optimization.stage": 3,
    "skyrl.terminal_bench_config.trials_dir": "s3://lab/trace_jobs",
    "skyrl.trainer.seed": 17,
    "skyrl.trainer.ckpt_path": "s3://lab/checkpoints",
    "skyrl.trainer.max_prompt_length": 512,
    "skyrl.trainer.max_steps": None,
    "skyrl.trainer.algorithm.resolved_group_advantage.kind": "exact_physical",
    "skyrl.trainer.policy.deepspeed_config.zero_optimization.stage": 3,
    "skyrl.generator.use_conversation_multi_turn": True,
    "skyrl.generator.max_turns": 1,
    "skyrl.generator.engine_init_kwargs": {},
    "skyrl.generator.trajectory_retention.max_bytes_per_run": None,
}


def _recipe(**trainer: Any) -> SkyRLRecipe:
    return SkyRLRecipe.combine(mine={"trainer": trainer})


def _with_dropped_key() -> RuntimeManifest:
    """A runtime that drops a key inside a section that it reads."""
    keys = pinned_runtime().recipe_keys
    return pinned_runtime(
        recipe_keys={**keys, "trainer.legacy": RecipeKey(type="int", default=1, owner="dropped")}
    )


FAILING = (
    # A name that is nearly a sibling's; the launcher's own case (57, n189).
    Fails(
        check="OBJ-04",
        changes={f"{GENERATOR}.num_engines": 3},
        says="generator.num_engines=3: the runtime has no such key; did you mean generator.num_inference_engines?",
    ),
    Fails(
        check="OBJ-04",
        changes={"skyrl.data.suffle": True},
        says="data.suffle=true: the runtime has no such key; did you mean data.shuffle?",
    ),
    Fails(
        check="OBJ-04",
        changes={f"{TRAINER}.Epochs": 2},
        says="trainer.Epochs=2: the runtime has no such key; did you mean trainer.epochs?",
    ),
    # The same name at another place; the policy's before the critic's.
    Fails(
        check="OBJ-04",
        changes={f"{TRAINER}.lr": 1e-6},
        says="trainer.lr=1e-06: the runtime has no such key; did you mean trainer.policy.optimizer_config.lr?",
    ),
    Fails(
        check="OBJ-04",
        changes={f"{GENERATOR}.temperature": 0.7},
        says="did you mean generator.sampling_params.temperature?",
    ),
    Fails(
        check="OBJ-04",
        changes={f"{GENERATOR}.eval_batch_size": 8},
        says="did you mean trainer.eval_batch_size?",
    ),
    Fails(
        check="OBJ-04",
        changes={f"{TRAINER}.optimizer_config": {"lr": 1e-6}},
        says="trainer.optimizer_config: the runtime has no such key; did you mean trainer.policy.optimizer_config?",
    ),
    # The near key is the launcher's: there is nothing to move.
    Fails(
        check="OBJ-04",
        changes={f"{TRAINER}.ckptpath": "s3://lab/x"},
        says="did you mean trainer.ckpt_path?",
    ),
    # Nothing is near: the keys of the section help.
    Fails(
        check="OBJ-04",
        changes={"skyrl.environment.qqqqqq": "x"},
        says="environment.qqqqqq='x': the runtime has no such key; environment has env_class, skyrl_gym",
    ),
    Fails(
        check="OBJ-04",
        changes={f"{TRAINER}.{'z' * 200}": 1},
        says="the runtime has no such key; trainer has algorithm",
    ),
    # A closed mapping has no keys of its own.
    Fails(
        check="OBJ-04",
        changes={f"{GENERATOR}.chat_template_kwargs.qqqqqq": False},
        says="generator.chat_template_kwargs.qqqqqq=false: the runtime has no such key; "
        "generator.chat_template_kwargs has no keys",
    ),
    # A section that stands for another one has the keys of that one.
    Fails(
        check="OBJ-04",
        changes={f"{TRAINER}.policy.deepspeed_config.zero_optimisation.stage": 3},
        says="trainer.policy.deepspeed_config.zero_optimisation: the runtime has no such key",
    ),
    Fails(
        check="OBJ-04",
        changes={f"{TRAINER}.epoch": None},
        says="trainer.epoch=null: the runtime has no such key; did you mean trainer.epochs? The launcher skips "
        "null and {}",
        severity="warning",
    ),
    Fails(
        check="OBJ-04",
        changes={
            "skyrl.config_groups": {"off_policy_correction": "tis"},
            f"{TRAINER}.algorithm.correction": 1,
        },
        says="Only the configuration group off_policy_correction could add it",
        severity="warning",
    ),
    Fails(
        check="OBJ-04",
        changes=_RESOLVED | {f"{GENERATOR}.num_engines": 3},
        says="did you mean generator.num_inference_engines? The trainer reads no such key",
        severity="warning",
    ),
    Fails(
        check="OBJ-04",
        changes=_RESOLVED | {"skyrl.qqqqqq.anything": 3},
        says="qqqqqq: the runtime has no such key; skyrl has checkpoint_export, data,",
        severity="warning",
    ),
    Fails(
        check="OBJ-04",
        changes={f"{GENERATOR}.{name}{place}": place for place in range(30) for name in ("aaa", "bbb")},
        says="10 more keys that the runtime does not have",
        at="skyrl",
    ),
    Fails(
        check="OBJ-04",
        changes={f"{TRAINER}.lr": 1e-6},
        planned=lambda: planned(recipe=_recipe(lr=1e-6)),
        says="recipe part 'mine' sets trainer.lr=1e-06: the runtime has no such key",
    ),
    Fails(
        check="OBJ-11",
        changes={"skyrl.train_batch_size": 32},
        says="train_batch_size: the launcher drops it without a message; did you mean trainer.train_batch_size?",
    ),
    Fails(
        check="OBJ-11",
        changes={"skyrl.trainr": {"epochs": 2}},
        says="trainr: the launcher drops it without a message; did you mean trainer?",
    ),
    Fails(
        check="OBJ-11",
        changes={"skyrl.deepspeed_config": {"train": {"gradient_clipping": 0.5}}},
        says="deepspeed_config: the launcher drops it without a message; did you mean",
    ),
    Fails(
        check="OBJ-11",
        changes={"skyrl.terminal_bench_config": {"trials_dir": "x"}},
        says="did you mean terminal_bench?",
    ),
    Fails(
        check="OBJ-11",
        changes={"skyrl.qqqqqq": 1},
        says="qqqqqq: the launcher drops it without a message; it reads entrypoint, context_budget,",
    ),
    Fails(
        check="OBJ-11",
        changes={"skyrl.checkpoint_export": {"step": 8}},
        planned=lambda: planned(recipe=SkyRLRecipe.combine(mine={"checkpoint_export": {"step": 8}})),
        says="recipe part 'mine' sets checkpoint_export: the launcher drops it",
    ),
    Fails(
        check="OBJ-11",
        changes={f"{TRAINER}.legacy": 2},
        runtime=_with_dropped_key,
        says="trainer.legacy=2: the launcher drops it",
    ),
    Fails(
        check="OBJ-11",
        changes={f"{TRAINER}.algorithm.resolved_group_advantage.kind": "other"},
        says="resolved_group_advantage.kind='other': the trainer computes it and overwrites this",
        severity="warning",
    ),
    Fails(
        check="OBJ-12",
        changes={EPOCHS: None},
        says="trainer.epochs=null, which has no effect: the default 1 stays",
        severity="warning",
    ),
    Fails(
        check="OBJ-12",
        changes={f"{TRAINER}.algorithm.kl_ctrl": {}},
        says="trainer.algorithm.kl_ctrl={}, which has no effect: the defaults below it stay",
        severity="warning",
    ),
    Fails(
        check="OBJ-12",
        changes={EPOCHS: {}},
        says="trainer.epochs={}, which has no effect: the default 1 stays",
        severity="warning",
    ),
    Fails(
        check="OBJ-12",
        changes={f"{TRAINER}.policy.optimizer_config.adam_betas": None},
        says="the default [0.9, 0.999] stays",
        severity="warning",
    ),
    Fails(
        check="OBJ-12",
        changes={"skyrl.environment": None},
        says="environment=null, which has no effect: the defaults below it stay",
        severity="warning",
    ),
    Fails(
        check="OBJ-12",
        changes={f"{TRAINER}.hf_save_interval": None},
        planned=lambda: planned(recipe=_recipe(hf_save_interval=None)),
        says="recipe part 'mine' sets trainer.hf_save_interval=null, which has no effect: the default "
        "'${trainer.ckpt_interval}' stays",
        severity="warning",
    ),
    # Text where a number or a switch stands (n192, n207).
    Fails(check="OBJ-20", changes={LR: "1e-6"}, says="lr='1e-6', text; the trainer wants a number"),
    Fails(check="OBJ-20", changes={LR: "3"}, says="lr='3', text; the trainer wants a number"),
    Fails(check="OBJ-20", changes={LR: "1e999"}, says="lr='1e999', text; the trainer wants a number"),
    Fails(check="OBJ-20", changes={LR: "small"}, says="lr='small', text; the trainer wants a number"),
    Fails(
        check="OBJ-20", changes={EPOCHS: "2"}, says="trainer.epochs='2', text; the trainer wants an integer"
    ),
    Fails(
        check="OBJ-20",
        changes={EPOCHS: 2.0},
        says="trainer.epochs=2.0, a float; the trainer wants an integer",
    ),
    Fails(check="OBJ-20", changes={EPOCHS: 2.5}, says="trainer.epochs=2.5, a float"),
    Fails(
        check="OBJ-20",
        changes={"skyrl.trainer.project_name": 10**5000},
        says="an integer of 16610 bits, an integer",
    ),
    Fails(check="OBJ-20", changes={EPOCHS: True}, says="trainer.epochs=true, a boolean"),
    Fails(check="OBJ-20", changes={EPOCHS: [1]}, says="trainer.epochs=a list; the trainer wants"),
    Fails(check="OBJ-20", changes={EPOCHS: {"first": 1}}, says="trainer.epochs=a mapping"),
    *(
        Fails(check="OBJ-20", changes={f"skyrl.{path}": float("nan")}, says=f"{path} is not a number (.nan)")
        for path in (
            "generator.sampling_params.temperature",
            "trainer.algorithm.kl_loss_coef",
            "trainer.policy.optimizer_config.max_grad_norm",
        )
    ),
    Fails(check="OBJ-20", changes={LR: float("nan"), EPOCHS: float("nan")}, says="epochs=nan, a float"),
    Fails(
        check="OBJ-20",
        changes={f"{TRAINER}.algorithm.use_kl_loss": "false"},
        says="use_kl_loss='false', text; the trainer wants true or false",
    ),
    Fails(
        check="OBJ-20",
        changes={f"{TRAINER}.eval_before_train": 0},
        says="eval_before_train=0, an integer; the trainer wants true or false",
    ),
    Fails(
        check="OBJ-20",
        changes={f"{GENERATOR}.backend": True},
        says="generator.backend=true, a boolean; the trainer wants text. YAML reads off, no, on and yes as "
        "booleans; quote the text",
    ),
    *(
        Fails(check="OBJ-20", changes={f"skyrl.{path}": value}, says=says)
        for path, value, says in (
            (
                "trainer.algorithm.advantage_estimator",
                1,
                "advantage_estimator=1, an integer; the trainer wants text. Known: grpo, rloo",
            ),
            ("trainer.strategy", 2, "trainer.strategy=2, an integer; the trainer wants text. Known: fsdp2"),
            ("generator.gdn_backend", 3, "gdn_backend=3, an integer; the trainer wants text. Known: torch"),
            ("environment.env_class", 4, "env_class=4, an integer; the trainer wants text. Known: aime"),
        )
    ),
    Fails(
        check="OBJ-20",
        changes={f"{TRAINER}.project_name": 2026},
        says="trainer.project_name=2026, an integer; the trainer wants text",
    ),
    Fails(
        check="OBJ-20",
        changes={f"{TRAINER}.policy.optimizer_config.adam_betas": "[0.9, 0.999]"},
        says="adam_betas='[0.9, 0.999]', text; the trainer wants a list",
    ),
    Fails(
        check="OBJ-20",
        changes={f"{TRAINER}.policy.optimizer_config.adam_betas": ["0.9", "0.999"]},
        says="adam_betas holds '0.9'; the trainer wants a list of numbers",
    ),
    Fails(
        check="OBJ-20",
        changes={f"{GENERATOR}.trajectory_retention.phases": [1]},
        says="phases holds 1; the trainer wants a list of text",
    ),
    Fails(
        check="OBJ-20",
        changes={f"{TRAINER}.policy.fsdp_config.reshard_after_forward": "always"},
        says="the trainer wants true, false or an integer",
    ),
    Fails(
        check="OBJ-20",
        changes={f"{GENERATOR}.sampling_params.stop": 3},
        says="stop=3, an integer; the trainer wants text or a list, as far as its use shows",
        severity="warning",
    ),
    Fails(
        check="OBJ-20",
        changes={f"{TRAINER}.hf_save_interval": "4"},
        says="hf_save_interval='4', text; the trainer wants an integer",
    ),
    Fails(
        check="OBJ-20",
        changes={f"{TRAINER}.rope_theta": True},
        says="rope_theta=true, a boolean; the trainer wants a number, as far as its use shows",
        severity="warning",
    ),
    Fails(
        check="OBJ-20",
        changes={"skyrl.model_num_attention_heads": "16"},
        planned=lambda: planned(recipe=SkyRLRecipe.combine(mine={"model_num_attention_heads": "16"})),
        says="recipe part 'mine' sets model_num_attention_heads='16', text; the launcher wants an integer",
    ),
    # A value where a section stands.
    Fails(
        check="OBJ-20",
        changes={f"{TRAINER}.policy": 3},
        says="trainer.policy=3, which must be a mapping of settings",
    ),
    Fails(
        check="OBJ-20",
        changes={"skyrl.data": None},
        says="data=null, which must be a mapping of settings",
    ),
    Fails(
        check="OBJ-20",
        changes={f"{GENERATOR}.chat_template_kwargs": "no"},
        says="chat_template_kwargs='no', text; the trainer wants a mapping",
    ),
    *(
        Fails(
            check="OBJ-20",
            changes={"skyrl.terminal_bench": section},
            says=f"{path}={word}, which must be a mapping",
            at=f"skyrl.{path}",
        )
        for section, path, word in (
            ({"harbor": None}, "terminal_bench.harbor", "null"),
            ({"harbor": 5}, "terminal_bench.harbor", "5"),
            ({"harbor": {"llm_call_kwargs": None}}, "terminal_bench.harbor.llm_call_kwargs", "null"),
            ({"model_info": [1]}, "terminal_bench.model_info", "a list"),
        )
    ),
    # The launcher writes entries of these, or reads them.
    *(
        Fails(
            check="OBJ-20",
            changes={f"skyrl.{path}": None},
            says=f"{path}=null, which must be a mapping of settings",
            at=f"skyrl.{path}",
        )
        for path in (
            "trainer.policy",
            "trainer.policy.model",
            "generator.sampling_params",
            "generator.engine_init_kwargs",
            "generator.trajectory_reward_shaping",
            "generator.trajectory_retention",
        )
    ),
    Fails(
        check="OBJ-20",
        changes={"skyrl.config_groups": None},
        says="config_groups=null, which must be a mapping",
    ),
    Fails(
        check="OBJ-20",
        changes={"skyrl.config_groups": {"algorithm_recipe": 1}},
        says="config_groups.algorithm_recipe=1, an integer; the launcher wants the name of a file of the group",
    ),
    Fails(
        check="OBJ-20",
        changes={"skyrl.model_num_attention_heads": "16"},
        says="model_num_attention_heads='16', text; the launcher wants an integer",
    ),
    Fails(
        check="OBJ-20",
        changes={"skyrl.model_num_attention_heads": True},
        says="model_num_attention_heads=true, a boolean",
    ),
    Fails(
        check="OBJ-20",
        changes={"skyrl.terminal_bench": "yes"},
        says="terminal_bench='yes', which must be a mapping",
    ),
    Fails(
        check="OBJ-20",
        changes=_RESOLVED | {f"{TRAINER}.max_prompt_length": "512"},
        says="trainer.max_prompt_length='512', text; the trainer wants an integer",
    ),
    Fails(
        check="OBJ-20",
        changes={
            f"{TRAINER}.algorithm.{name}": "x"
            for name in pinned_runtime().recipe_tree["trainer"]["algorithm"]
        },
        says="trainer.algorithm.gamma='x', text; the trainer wants a number",
        at="skyrl.trainer.algorithm.gamma",
    ),
    Fails(
        check="OBJ-20",
        changes={EPOCHS: "2"},
        planned=lambda: planned(recipe=_recipe(epochs="2")),
        says="recipe part 'mine' sets trainer.epochs='2', text; the trainer wants an integer",
    ),
    Fails(
        check="CTX-16",
        changes={f"{GENERATOR}.use_conversation_multi_turn": True},
        says="generator.use_conversation_multi_turn=true: Marin refuses it, task sessions do not support it",
    ),
    Fails(
        check="CTX-16",
        changes={f"{GENERATOR}.require_exact_chat_transport": False},
        says="generator.require_exact_chat_transport=false: Marin refuses it",
    ),
    Fails(
        check="CTX-16",
        planned=lambda: planned(
            recipe=SkyRLRecipe.combine(mine={"generator": {"use_conversation_multi_turn": False}})
        ),
        says="recipe part 'mine' sets generator.use_conversation_multi_turn=false: Marin refuses it",
    ),
)

PASSING = (
    *(
        Passes(check=check, base=base)
        for base in ("smoke", "moe")
        for check in ("OBJ-04", "OBJ-11", "OBJ-12", "OBJ-20", "CTX-16")
    ),
    *(Passes(check=check, changes=_RESOLVED) for check in ("OBJ-04", "OBJ-11", "OBJ-12", "OBJ-20", "CTX-16")),
    # Open mappings, by their own entry and by the patterns; sections of the launcher alone.
    *(
        Passes(check="OBJ-04", changes={f"skyrl.{path}": 1})
        for path in (
            "trainer.policy.megatron_config.transformer_config_kwargs.num_layers_in_first_pipeline_stage",
            "trainer.policy.optimizer_config.optimizer_kwargs.momentum",
            "trainer.policy.fsdp_config.wrap_policy.anything",
            "trainer.hf_hub_repo_id",
            "trainer.enable_db_registration",
            "trainer.rope_scaling.factor",
            "generator.engine_init_kwargs.moe_backend",
            "generator.speculative_decoding.method",
            "data.sampling.domain_weights.math",
            "data.kind",
            "terminal_bench.harbor.anything",
            "teachers.math.source",
            "teacher_routing.anything",
            "config_groups.algorithm_recipe",
            "extra_env.ANY_NAME",
            "model_num_attention_heads",
        )
    ),
    Passes(check="OBJ-04", changes={f"{TRAINER}.policy.deepspeed_config.zero_optimization.stage": 3}),
    # Reported elsewhere: GEO-19.
    Passes(check="OBJ-04", changes={f"{TRAINER}.placement": 3}),
    Passes(check="OBJ-20", changes={f"{TRAINER}.placement": 3}),
    # What composition writes: the records of inputs (launch-document.md §2, MarinSkyRL launch_config.py@00ee4e42).
    Passes(
        check="OBJ-20",
        changes=_RESOLVED
        | {
            "skyrl.data.train_data": document("smoke")["inputs"]["train_data"],
            "skyrl.data.val_data": document("smoke")["inputs"]["validation_data"],
        },
    ),
    *(
        Passes(check="OBJ-11", changes={f"skyrl.{name}": {}})
        for name in ("trajectory_runner", "terminal_bench", "teachers", "teacher_routing", "config_groups")
    ),
    # The launcher fills these when they are null; where the base has null, null says the same.
    *(
        Passes(check="OBJ-12", changes={f"skyrl.{path}": None})
        for path in (
            "trainer.run_name",
            "trainer.max_steps",
            "trainer.placement.policy_num_nodes",
            "generator.num_inference_engines",
            "generator.sampling_params.stop",
            "terminal_bench",
            "entrypoint",
        )
    ),
    Passes(check="OBJ-12", changes={f"{GENERATOR}.engine_init_kwargs": {}, "skyrl.environment": {}}),
    Passes(check="OBJ-20", changes={LR: 1}),
    *(
        Passes(check="OBJ-20", changes={f"skyrl.{path}": value})
        for path, value in (
            ("trainer.epochs", "${trainer.max_steps}"),
            ("trainer.policy", "${oc.env:POLICY}"),
            ("trainer.logger", ["wandb", "console"]),
            ("trainer.policy.model.lora.dropout", 0.05),
            ("trainer.policy.model.lora.target_modules", ["q_proj"]),
            ("trainer.policy.fsdp_config.reshard_after_forward", 4),
            ("trainer.distributed.placement_group_timeout_seconds", 90.5),
            ("trainer.policy.optimizer_config.adam_betas", [0.9, 1]),
            ("generator.sampling_params.stop", ["\n\n"]),
            ("generator.trajectory_retention.redact_fields", ["a"]),
            ("generator.trajectory_retention.phases", ["train", "${trainer.run_name}"]),
            ("trainer.epochs", None),
            ("trainer.policy.megatron_config", {}),
            # GEO-01, CTX-03 and OBJ-13 judge these, OBJ-19 explains the last.
            ("trainer.train_batch_size", "16"),
            ("generator.max_turns", "1"),
            ("trainer.seed", "17"),
            ("trainer.debug_mode", False),
        )
    ),
    Passes(check="CTX-16", changes={f"{GENERATOR}.use_conversation_multi_turn": None}),
)

NOT_CHECKED = (
    *(
        NotChecked(check=check, runtime=lambda: None, needs="a runtime manifest")
        for check in ("OBJ-04", "OBJ-11", "OBJ-12", "OBJ-20", "CTX-16")
    ),
    NotChecked(
        check="OBJ-04",
        runtime=lambda: pinned_runtime(open_roots=DELETED),
        needs="a runtime manifest with open_roots and open_path_patterns",
    ),
)
