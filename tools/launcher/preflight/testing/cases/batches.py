"""Cases of the BAT checks."""

from typing import Any

from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes
from tools.launcher.preflight.testing.cases.geometry import (
    COLOCATED,
    COLOCATED_REFERENCE,
    KL,
    NODES,
    POLICY,
    REFERENCE,
    TRAIN,
)
from tools.launcher.preflight.testing.subjects import DELETED, dataset_card, pinned_runtime

MINI = "skyrl.trainer.policy_mini_batch_size"
MICRO = "skyrl.trainer.micro_train_batch_size_per_gpu"
FORWARD = "skyrl.trainer.micro_forward_batch_size_per_gpu"
SAMPLES = "skyrl.generator.n_samples_per_prompt"
STRATEGY = "skyrl.trainer.strategy"
ENTRYPOINT = "skyrl.entrypoint"
ESTIMATOR = "skyrl.trainer.algorithm.advantage_estimator"
GROUP_SIZE = "skyrl.trainer.algorithm.group_advantage_min_size"
SELECTOR = "skyrl.trainer.trajectory_selector.type"
STEP_WISE = "skyrl.trainer.step_wise_training"
SAMPLING = "skyrl.trainer.algorithm.dynamic_sampling.type"
WORKERS = "skyrl.trainer.fully_async.num_parallel_generation_workers"
STALENESS = "skyrl.trainer.fully_async.max_staleness_steps"
MAX_STEPS = "skyrl.trainer.max_steps"
EPOCHS = "skyrl.trainer.epochs"
_POLICY_TP = "skyrl.trainer.policy.megatron_config.tensor_model_parallel_size"
_POLICY_PP = "skyrl.trainer.policy.megatron_config.pipeline_model_parallel_size"


def _batch(train: int, mini: int, samples: int, micro: int = 1, nodes: int = 1) -> dict[str, Any]:
    return {
        TRAIN: train,
        MINI: mini,
        SAMPLES: samples,
        MICRO: micro,
        NODES: nodes,
        POLICY: nodes,
        REFERENCE: nodes,
    }


# Policy dp 16 and reference dp 24/1 = 24, as in case n66 of the shared set.
_TWO_ROLES: dict[str, Any] = {
    COLOCATED_REFERENCE: False,
    REFERENCE: 3,
    NODES: 11,
    "skyrl.trainer.ref.megatron_config.pipeline_model_parallel_size": 1,
}
# Failure row 31: Megatron, dp = 16/4 = 4.
_ROW_31: dict[str, Any] = _batch(8, 8, 2, micro=8, nodes=2) | {
    STRATEGY: "megatron",
    FORWARD: 8,
    _POLICY_TP: 4,
}


def _data(**facts: Any) -> dict[str, Any]:
    return {"train_dataset": dataset_card(**facts)}


def _validation(rows: int) -> dict[str, Any]:
    return {"validation_dataset": dataset_card(validation_rows=rows)}


def _old_trainer() -> Any:
    return pinned_runtime(validation_rows_multiple_of_batch=True)


def _never_pads() -> Any:
    return pinned_runtime(pads_step_wise_rows=False)


def _pads() -> Any:
    return pinned_runtime(pads_step_wise_rows=True)


def _sampling_unknown() -> Any:
    return pinned_runtime(fully_async_dynamic_sampling=None)


def _ragged_unknown() -> Any:
    return pinned_runtime(ragged_group_estimators=None)


def _samples_no_filter() -> Any:
    return pinned_runtime(fully_async_dynamic_sampling=("replace",))


FAILING = (
    Fails(
        check="BAT-01",
        changes={MINI: 6},
        says="train_batch_size=16 is not a multiple of policy_mini_batch_size=6 (16 % 6 = 4)",
    ),
    Fails(
        check="BAT-02",
        changes={MICRO: 3},
        says="policy_mini_batch_size=16 is not a multiple of micro_train_batch_size_per_gpu=3 (16 % 3 = 1)",
    ),
    Fails(
        check="BAT-03",
        changes=_batch(8, 1, 4),
        says="each of 8 data-parallel ranks gets M*n//dp = 1*4//8 = 0 rows. Raise M to 2 or n to 8",
    ),
    # Failure rows 29 and 35.
    Fails(
        check="BAT-03",
        changes=_batch(32, 4, 4, nodes=4),
        says="each of 32 data-parallel ranks gets M*n//dp = 4*4//32",
    ),
    Fails(
        check="BAT-03", changes=_batch(16, 1, 8, nodes=2), says="= 1*8//16 = 0 rows. Raise M to 2 or n to 16"
    ),
    Fails(
        check="BAT-03",
        changes=_batch(16, 4, 8) | {SELECTOR: "best_of_n"},
        says="= 4*1//8 = 0 rows. Raise M to 8",
    ),
    Fails(
        check="BAT-04",
        changes=_batch(12, 12, 4, micro=4),
        says="6 rows per GPU (M*n//dp = 12*4//8) are not a multiple of micro batch 4. Use u from 1, 2, 3, 6",
    ),
    # Failure rows 31 and 49.
    Fails(
        check="BAT-04",
        changes=_ROW_31,
        says="4 rows per GPU (M*n//dp = 8*2//4) are not a multiple of micro batch 8",
    ),
    Fails(
        check="BAT-04",
        changes=_batch(32, 32, 2, micro=4, nodes=4),
        says="2 rows per GPU (M*n//dp = 32*2//32)",
    ),
    Fails(
        check="BAT-05",
        changes=_batch(20, 10, 2),
        says="5 rows per GPU do not split into mini batches of 2 (5 % 2 = 1)",
    ),
    # Failure row 32, on 8 ranks.
    Fails(check="BAT-06", changes=_batch(4, 4, 2), says="train_batch_size=4 < dp=8"),
    Fails(
        check="BAT-06",
        base="moe",
        changes=_TWO_ROLES | {TRAIN: 32, MINI: 32},
        says="train_batch_size=32 < lcm(dp 16, reference dp 24)=48",
    ),
    Fails(
        check="BAT-07",
        changes={ENTRYPOINT: "fully_async", MINI: 8},
        says="fully_async takes one mini batch per step: train_batch_size=16, policy_mini_batch_size=8",
    ),
    Fails(
        check="BAT-07",
        changes={
            "runtime.entrypoint": "skyrl_train.entrypoints.fully_async",
            "skyrl.context_budget": DELETED,
            MINI: 8,
        },
        says="fully_async takes one mini batch per step",
    ),
    # Failure row 17.
    Fails(
        check="BAT-08",
        base="moe",
        changes={FORWARD: 4, MICRO: 2},
        says="micro_forward_batch_size_per_gpu=4, micro_train_batch_size_per_gpu=2; Megatron needs equal values",
    ),
    Fails(
        check="BAT-08",
        base="moe",
        changes={FORWARD: DELETED, MICRO: 2},
        says="micro_forward_batch_size_per_gpu=1,",
    ),
    Fails(check="BAT-09", facts=_data(rows=12), says="dataset has 12 rows, train_batch_size is 16"),
    # Failure row 20.
    Fails(
        check="BAT-11",
        changes={TRAIN: 64},
        facts=_validation(1319),
        runtime=_old_trainer,
        says="validation set has 1319 rows; this runtime needs a multiple of train_batch_size=64",
    ),
    Fails(check="BAT-10", changes={TRAIN: 8}, says="policy_mini_batch_size=16 exceeds train_batch_size=8"),
    Fails(
        check="BAT-12",
        changes={SAMPLES: 1},
        says="grpo compares answers inside a group; n_samples_per_prompt=1 gives zero advantage",
    ),
    Fails(
        check="BAT-12",
        changes={SAMPLES: 1, "skyrl.entrypoint": "generrate"},
        says="grpo compares answers inside a group",
    ),
    Fails(
        check="BAT-12", changes={SAMPLES: 1, ESTIMATOR: "rloo"}, says="rloo compares answers inside a group"
    ),
    Fails(
        check="BAT-12",
        changes={GROUP_SIZE: 5},
        says="group_advantage_min_size=5 exceeds n_samples_per_prompt=4",
    ),
    Fails(
        check="BAT-12",
        changes={GROUP_SIZE: 4},
        says="grpo does not use group_advantage_min_size=4",
        severity="warning",
    ),
    Fails(
        check="BAT-12",
        changes={ESTIMATOR: "rloo_n"},
        says="rloo_n may want group_advantage_min_size of at least 2, it is not set",
        severity="warning",
    ),
    Fails(
        check="BAT-12",
        changes={ESTIMATOR: "rloo_n_pbs", GROUP_SIZE: 1},
        says="rloo_n_pbs may want group_advantage_min_size of at least 2, it is 1",
        severity="warning",
    ),
    Fails(
        check="BAT-13",
        changes={SELECTOR: "best_of_n", ESTIMATOR: "reinforce++", SAMPLES: 1},
        says="best_of_n of n_samples_per_prompt=1 selects nothing",
        severity="warning",
    ),
    Fails(
        check="BAT-13",
        changes={SELECTOR: "best_of_n"},
        says="best_of_n leaves one answer per prompt; grpo needs a group",
    ),
    Fails(
        check="BAT-13",
        changes={SELECTOR: "best_of_n", ESTIMATOR: "reinforce++", STEP_WISE: True},
        says="step_wise_training makes one row per turn",
    ),
    Fails(
        check="BAT-14",
        changes=_batch(40, 20, 8, nodes=2),
        says="8 of 40 prompts are dropped in each batch: train_batch_size=40 is not a multiple of dp=16",
        severity="warning",
    ),
    Fails(
        check="BAT-15",
        changes=_batch(12, 3, 3),
        says="M*n = 3*3 rows do not split over 8 data-parallel ranks (9 % 8 = 1). M must be a multiple of 8",
    ),
    Fails(check="BAT-15", changes=_batch(12, 3, 4), says="(12 % 8 = 4). M must be a multiple of 2"),
    Fails(
        check="BAT-16",
        facts=_data(rows=100, max_prompt_tokens=2000, prompt_token_counts={"512": 9}),
        says="only 9 of 100 rows have prompts of at most W-N=512 tokens; train_batch_size is 16",
    ),
    Fails(
        check="BAT-16",
        facts=_data(rows=100, prompt_token_counts={"600": 0}),
        says="only 0 of 100 rows have prompts",
    ),
    # The contract's second example with the rows of GSM8K.
    Fails(
        check="BAT-17",
        base="moe",
        facts=_data(rows=7473, max_prompt_tokens=512),
        says="7473 rows in batches of 64 give 116 steps in 1 epoch, max_steps asks 200",
        at=MAX_STEPS,
        severity="warning",
    ),
    Fails(
        check="BAT-17",
        changes={MAX_STEPS: DELETED},
        facts=_data(rows=12, max_prompt_tokens=9),
        says="12 rows in batches of 16 give 0 steps",
        at=EPOCHS,
        severity="warning",
    ),
    Fails(
        check="BAT-18",
        changes={ENTRYPOINT: "fully_async", WORKERS: 15},
        says="15 generation workers for mini batch 16, staleness 4: use 16 to 80",
    ),
    Fails(
        check="BAT-18",
        changes={ENTRYPOINT: "fully_async", STALENESS: -1, WORKERS: 16},
        says="max_staleness_steps=-1 leaves no room for a group: generation never starts",
    ),
    Fails(
        check="BAT-18",
        changes={ENTRYPOINT: "fully_async", STALENESS: 0},
        says="768 generation workers for mini batch 16, staleness 0: use 16 to 16",
        severity="warning",
    ),
    Fails(
        check="BAT-19",
        changes={"inputs.validation_data": []},
        says="eval_before_train is true but validation_data is empty",
        severity="warning",
    ),
    Fails(
        check="BAT-19",
        changes={"inputs.validation_data": DELETED, "skyrl.trainer.eval_before_train": False},
        says="eval_interval is 5 but validation_data is empty",
        severity="warning",
    ),
    Fails(
        check="BAT-19",
        facts=_validation(500),
        says="eval_batch_size=1024 exceeds the 500 validation rows",
        severity="warning",
    ),
    Fails(
        check="BAT-20",
        changes={SAMPLING: "filter", SAMPLES: 1},
        says="dynamic_sampling filter drops groups with equal reward; n_samples_per_prompt=1 drops everything",
    ),
    Fails(
        check="BAT-20",
        changes={SAMPLING: "replace", ENTRYPOINT: "fully_async"},
        says="fully_async does not support dynamic_sampling replace. Supported: filter",
    ),
    Fails(
        check="BAT-20",
        changes={SAMPLING: "filter", ENTRYPOINT: "fully_async"},
        runtime=_samples_no_filter,
        says="fully_async does not support dynamic_sampling filter. Supported: replace",
    ),
    # Failure row 19.
    Fails(
        check="BAT-21",
        changes={STEP_WISE: True},
        says="dp=8 may not divide them, and of this runtime it is not known that it pads",
        severity="warning",
    ),
    Fails(
        check="BAT-21",
        changes=_batch(32, 32, 4, nodes=2) | {STEP_WISE: True},
        runtime=_never_pads,
        says="step-wise rows are data-dependent; dp=16 may not divide them, and this runtime does not pad",
        severity="warning",
    ),
)

_ENOUGH = _data(rows=7473, max_prompt_tokens=512)

PASSING = (
    *(
        Passes(check=f"BAT-{number:02}", base=base, facts=_ENOUGH | _validation(1319))
        for base in ("smoke", "moe")
        for number in range(1, 22)
        if (base, number) != ("moe", 17)
    ),
    *(
        Passes(check=f"BAT-{number:02}", changes=changes)
        for changes in (
            _batch(16, 16, 2),
            _batch(32, 32, 4, nodes=4),
            _batch(4, 4, 8) | {"skyrl.trainer.policy.sequence_parallel_size": 2},
        )
        for number in (1, 2, 3, 4, 5, 6, 10, 14, 15)
    ),
    Passes(check="BAT-06", base="moe", changes=_TWO_ROLES | {TRAIN: 48, MINI: 48}),
    Passes(check="BAT-06", base="moe", changes=_TWO_ROLES | {TRAIN: 32, MINI: 32, KL: False}),
    Passes(check="BAT-04", base="moe", changes={_POLICY_TP: 4, MICRO: 4}),
    Passes(check="BAT-07", changes={ENTRYPOINT: "fully_async"}),
    Passes(check="BAT-08", changes={FORWARD: 4}),
    Passes(check="BAT-09", changes={TRAIN: 12}, facts=_data(rows=12)),
    Passes(check="BAT-11", changes={TRAIN: 64}, facts=_validation(1280), runtime=_old_trainer),
    Passes(check="BAT-12", changes={SAMPLES: 1, ESTIMATOR: "reinforce++"}),
    # Nothing learns from what these only generate.
    *(
        Passes(check="BAT-12", changes={SAMPLES: 1, "skyrl.entrypoint": name})
        for name in ("generate", "terminal_bench_generate")
    ),
    Passes(check="BAT-12", changes={ESTIMATOR: "rloo_n", GROUP_SIZE: 4}),
    Passes(check="BAT-12", changes={GROUP_SIZE: 4}, runtime=_ragged_unknown),
    Passes(check="BAT-13", changes={SELECTOR: "best_of_n", ESTIMATOR: "reinforce++"}),
    Passes(check="BAT-16", facts=_data(rows=100, max_prompt_tokens=2000, prompt_token_counts={"400": 16})),
    Passes(check="BAT-17", base="moe", changes={EPOCHS: 2}, facts=_ENOUGH),
    Passes(check="BAT-18", changes={ENTRYPOINT: "fully_async", WORKERS: 80}),
    Passes(
        check="BAT-19",
        changes={
            "inputs.validation_data": [],
            "skyrl.trainer.eval_before_train": False,
            "skyrl.trainer.eval_interval": -1,
        },
    ),
    Passes(check="BAT-20", changes={SAMPLING: "filter"}),
    Passes(check="BAT-20", changes={SAMPLING: "filter", ENTRYPOINT: "fully_async"}),
    Passes(
        check="BAT-20", changes={SAMPLING: "replace", ENTRYPOINT: "fully_async"}, runtime=_samples_no_filter
    ),
    Passes(check="BAT-21", changes={STEP_WISE: True}, runtime=_pads),
    Passes(check="BAT-21", changes={STEP_WISE: True, "skyrl.trainer.policy.sequence_parallel_size": 8}),
)

NOT_CHECKED = (
    NotChecked(check="BAT-09", needs="a dataset card with rows"),
    NotChecked(check="BAT-11", runtime=_old_trainer, needs="a dataset card with validation_rows"),
    NotChecked(
        check="BAT-11",
        runtime=lambda: pinned_runtime(validation_rows_multiple_of_batch=None),
        needs="validation_rows_multiple_of_batch in the runtime manifest",
    ),
    NotChecked(
        check="BAT-16",
        facts=_data(rows=100, max_prompt_tokens=2000),
        needs="prompt_token_counts at 512 tokens in the dataset card 'lab-data'",
    ),
    NotChecked(
        check="BAT-17",
        facts=_data(rows=1000, max_prompt_tokens=2000),
        needs="prompt_token_counts at 512 tokens",
    ),
    NotChecked(
        check="BAT-17",
        changes={"skyrl.context_budget.request_window_tokens": 1024},
        facts=_data(rows=1000, max_prompt_tokens=2000),
        needs="a usable value: a window with room for a prompt, W-N is 0",
    ),
    NotChecked(check="BAT-19", needs="a dataset card with validation_rows"),
    NotChecked(
        check="BAT-20",
        changes={SAMPLING: "filter", ENTRYPOINT: "fully_async"},
        runtime=_sampling_unknown,
        needs="fully_async_dynamic_sampling in the runtime manifest",
    ),
    NotChecked(
        check="BAT-03",
        base="moe",
        changes={_POLICY_PP: 3},
        needs="a usable value: a policy world that its model-parallel size 3 divides, it has 32 GPUs",
    ),
    NotChecked(check="BAT-01", changes={TRAIN: "16"}, needs=f"a usable value: {TRAIN} as int, it is '16'"),
    NotChecked(
        check="BAT-07", changes={"runtime.entrypoint": "x.y"}, needs="runtime.entrypoint as a registered"
    ),
    NotChecked(check="BAT-18", changes={ENTRYPOINT: "fully_async", STALENESS: 10**30}, needs=STALENESS),
    NotChecked(
        check="BAT-06",
        changes={COLOCATED: 1, KL: True},
        needs=f"a usable value: {COLOCATED} as bool, it is 1",
    ),
)
