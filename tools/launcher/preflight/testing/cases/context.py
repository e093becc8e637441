"""Cases of the CTX checks of the token budget. Those of engines and sampling: engine_settings.py."""

from typing import Any

from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes
from tools.launcher.preflight.testing.experiments import planned
from tools.launcher.preflight.testing.subjects import DELETED, dataset_card
from tools.launcher.rl.recipe import SkyRLRecipe

BUDGET = "skyrl.context_budget"
WINDOW = f"{BUDGET}.request_window_tokens"
NEW = f"{BUDGET}.max_new_tokens_per_turn"
TURNS = f"{BUDGET}.max_turns"
GENERATED = f"{BUDGET}.generated_budget_fraction"
CACHE = f"{BUDGET}.overlong_cache_fraction"
EVAL_NEW = "skyrl.generator.eval_sampling_params.max_generate_length"
WRITTEN_WINDOW = "skyrl.generator.engine_init_kwargs.max_model_len"
WRITTEN_NEW = "skyrl.generator.sampling_params.max_generate_length"
WRITTEN_TURNS = "skyrl.generator.max_turns"
INPUT = "skyrl.generator.max_input_length"
PROMPT = "skyrl.trainer.max_prompt_length"

_RESOLVED: dict[str, Any] = {
    BUDGET: DELETED,
    "runtime.entrypoint": "skyrl_train.entrypoints.main_base",
    INPUT: 512,
    PROMPT: 512,
    WRITTEN_TURNS: 1,
    WRITTEN_WINDOW: 1536,
    WRITTEN_NEW: 1024,
    EVAL_NEW: 1024,
    "skyrl.trainer.seed": 17,
}


def _data(**facts: Any) -> dict[str, Any]:
    return {"train_dataset": dataset_card(**facts)}


def _recipe(**trainer: Any) -> SkyRLRecipe:
    return SkyRLRecipe.combine(mine={"trainer": trainer})


FAILING = (
    Fails(
        check="CTX-01",
        changes={WINDOW: 1536.0},
        says="request_window_tokens must be a positive integer, got 1536.0",
    ),
    Fails(
        check="CTX-01",
        changes={NEW: True},
        says="max_new_tokens_per_turn must be a positive integer, got true",
    ),
    Fails(
        check="CTX-01",
        changes={NEW: DELETED},
        says="max_new_tokens_per_turn must be a positive integer, got null",
    ),
    Fails(check="CTX-01", changes={TURNS: 0}, says="max_turns must be a positive integer, got 0"),
    Fails(
        check="CTX-01", changes={GENERATED: 1.5}, says="generated_budget_fraction must be in (0, 1], got 1.5"
    ),
    Fails(check="CTX-01", changes={GENERATED: 0}, says="generated_budget_fraction must be in (0, 1], got 0"),
    Fails(check="CTX-01", changes={GENERATED: float("nan")}, says="must be in (0, 1], got nan"),
    Fails(check="CTX-01", changes={GENERATED: None}, says="must be in (0, 1], got null"),
    Fails(check="CTX-01", changes={BUDGET: None}, says="context_budget is null, not a mapping"),
    Fails(check="CTX-01", changes={CACHE: -0.1}, says="overlong_cache_fraction must be in [0, 1], got -0.1"),
    Fails(
        check="CTX-01", changes={CACHE: "0.5"}, says="overlong_cache_fraction must be in [0, 1], got '0.5'"
    ),
    Fails(check="CTX-01", changes={f"{BUDGET}.window": 3}, says="context_budget has no field 'window'"),
    Fails(check="CTX-01", changes={BUDGET: 1536}, says="context_budget is 1536, not a mapping"),
    Fails(
        check="CTX-01",
        changes=_RESOLVED | {WRITTEN_TURNS: 0},
        says="generator.max_turns must be a positive integer, got 0",
    ),
    Fails(
        check="CTX-01",
        changes=_RESOLVED | {WRITTEN_NEW: -1},
        says="generator.sampling_params.max_generate_length must be a positive integer, got -1",
    ),
    Fails(
        check="CTX-01",
        changes=_RESOLVED | {WRITTEN_WINDOW: "1536"},
        says="generator.engine_init_kwargs.max_model_len must be a positive integer, got '1536'",
    ),
    Fails(
        check="CTX-02",
        changes=_RESOLVED | {WRITTEN_WINDOW: 1024, PROMPT: 0, INPUT: 0},
        says="max_prompt_length=0: the window leaves no room for a prompt beside 1024 new tokens",
    ),
    Fails(
        check="CTX-02",
        changes=_RESOLVED | {PROMPT: -1, WRITTEN_NEW: 1, EVAL_NEW: 1},
        says="max_prompt_length=-1: the window leaves no room for a prompt beside 1 new token",
    ),
    Fails(
        check="CTX-02",
        changes=_RESOLVED | {WRITTEN_WINDOW: 1000},
        says="max_model_len=1000 is below max_prompt_length + max_generate_length = 512 + 1024 = 1536",
    ),
    Fails(
        check="CTX-02",
        changes=_RESOLVED | {WRITTEN_WINDOW: 2048},
        says="max_model_len=2048 is more than max_prompt_length + max_generate_length = 512 + 1024 = 1536",
        severity="warning",
    ),
    Fails(
        check="CTX-02",
        changes={WINDOW: 512},
        says="window 512 must exceed new tokens 1024: prompts get W-N=-512",
    ),
    Fails(check="CTX-02", changes={WINDOW: 1024}, says="prompts get W-N=0"),
    Fails(
        check="CTX-03",
        changes={PROMPT: 512},
        says="trainer.max_prompt_length=512: it follows from context_budget (512)",
    ),
    Fails(check="CTX-03", changes={PROMPT: None}, says="trainer.max_prompt_length=null: it follows"),
    Fails(check="CTX-03", changes={"skyrl.generator.max_turns": 1}, says="generator.max_turns=1: it follows"),
    Fails(
        check="CTX-03",
        changes={"skyrl.generator.engine_init_kwargs.max_model_len": 4096},
        says="generator.engine_init_kwargs.max_model_len=4096: it follows from context_budget (1536)",
    ),
    # Failure row 28.
    Fails(
        check="CTX-03",
        changes={
            WINDOW: 4096,
            NEW: 3072,
            TURNS: 5,
            "skyrl.generator.sampling_params.max_generate_length": 3072,
        },
        says="generator.sampling_params.max_generate_length=3072: it follows from context_budget (3072)",
    ),
    Fails(
        check="CTX-03",
        changes={"skyrl.terminal_bench.harbor.max_episodes": 3, CACHE: "x"},
        says="terminal_bench.harbor.max_episodes=3: it follows from context_budget",
    ),
    Fails(
        check="CTX-03",
        planned=lambda: planned(recipe=_recipe(max_prompt_length=512)),
        says="recipe part 'mine' sets trainer.max_prompt_length=512: it follows from context_budget (512)",
    ),
    Fails(
        check="CTX-03",
        planned=lambda: planned(
            recipe=SkyRLRecipe.combine(
                a={"generator": {"max_turns": 1}}, b={"generator": {"max_turns": None}}
            )
        ),
        says="recipe parts 'a' and 'b' set generator.max_turns=1 and null: it follows from context_budget (1)",
    ),
    Fails(
        check="CTX-03",
        planned=lambda: planned(recipe=SkyRLRecipe.combine(mine={"context_budget": {"max_turns": 3}})),
        says="recipe part 'mine' sets context_budget, which the context budget of the spec owns",
    ),
    # Failure row 55.
    Fails(
        check="CTX-05",
        changes={WINDOW: 2048, NEW: 512},
        facts=_data(rows=2000, max_prompt_tokens=2048),
        says="some of 2000 prompts (the dataset card does not count them) exceed W-N=1536 tokens (longest 2048)",
        severity="warning",
    ),
    Fails(
        check="CTX-05",
        facts=_data(rows=100, max_prompt_tokens=700, prompt_token_counts={"512": 88}),
        says="12 of 100 prompts exceed W-N=512 tokens (longest 700)",
        severity="warning",
    ),
    Fails(
        check="CTX-05",
        facts=_data(rows=100, max_prompt_tokens=700, prompt_token_counts={"512": 0}),
        says="100 of 100 prompts exceed W-N=512 tokens",
    ),
    Fails(
        check="CTX-05",
        changes=_RESOLVED,
        facts=_data(rows=100, max_prompt_tokens=700, prompt_token_counts={"512": 0}),
        says="100 of 100 prompts exceed W-N=512 tokens",
        at=WRITTEN_WINDOW,
    ),
    Fails(
        check="CTX-11", changes=_RESOLVED | {INPUT: 600}, says="max_input_length 600 != max_prompt_length 512"
    ),
    Fails(
        check="CTX-11",
        changes=_RESOLVED | {INPUT: 500, "skyrl.generator.max_turns": 3},
        says="max_input_length 500 < max_prompt_length 512",
    ),
    Fails(
        check="CTX-17",
        changes={EVAL_NEW: 2048},
        says="eval max_generate_length=2048 exceeds max_new_tokens_per_turn=1024",
    ),
    *(
        Fails(
            check="CTX-17",
            changes={EVAL_NEW: value},
            says="eval max_generate_length must be a positive integer, got",
        )
        for value in (0, -1, True, 512.0)
    ),
    Fails(
        check="CTX-17",
        changes=_RESOLVED | {EVAL_NEW: 2048},
        says="eval max_generate_length=2048 exceeds sampling_params.max_generate_length=1024",
    ),
    Fails(
        check="CTX-20",
        changes=_RESOLVED | {WRITTEN_TURNS: 3},
        says="3 turns of 1024 tokens do not fit 1536: the second turn's input gets W-N=512",
        at=WRITTEN_WINDOW,
        severity="warning",
    ),
    Fails(
        check="CTX-20",
        changes={WINDOW: 4096, NEW: 3072, TURNS: 5},
        says="5 turns of 3072 tokens do not fit 4096: the second turn's input gets W-N=1024",
        severity="warning",
    ),
)

_FITTING = _data(rows=7473, max_prompt_tokens=512)

PASSING = (
    *(
        Passes(check=check, base=base, facts=_FITTING)
        for base in ("smoke", "moe")
        for check in (
            "CTX-01",
            "CTX-02",
            "CTX-03",
            "CTX-05",
            "CTX-11",
            "CTX-17",
            "CTX-20",
        )
    ),
    Passes(check="CTX-01", changes={GENERATED: 1, CACHE: 0}),
    Passes(check="CTX-02", changes={WINDOW: 1025}),
    Passes(check="CTX-02", changes=_RESOLVED),
    Passes(check="CTX-03", changes=_RESOLVED),
    Passes(check="CTX-03", planned=lambda: planned(recipe=_recipe(epochs=1))),
    Passes(check="CTX-11", changes=_RESOLVED),
    Passes(check="CTX-11", changes=_RESOLVED | {INPUT: 600, "skyrl.generator.max_turns": 3}),
    Passes(check="CTX-01", changes=_RESOLVED),
    Passes(check="CTX-05", changes=_RESOLVED, facts=_FITTING),
    Passes(check="CTX-17", changes={EVAL_NEW: 1024}),
    Passes(check="CTX-17", changes={EVAL_NEW: 1}),
    Passes(check="CTX-17", changes=_RESOLVED),
    Passes(check="CTX-17", changes=_RESOLVED | {EVAL_NEW: 512}),
    Passes(check="CTX-20", changes=_RESOLVED),
    Passes(check="CTX-20", changes={WINDOW: 2048, TURNS: 5}),
)

NOT_CHECKED = (
    NotChecked(
        check="CTX-02", changes={WINDOW: "1536"}, needs=f"a usable value: {WINDOW} as int, it is '1536'"
    ),
    NotChecked(
        check="CTX-02",
        changes=_RESOLVED | {WRITTEN_WINDOW: DELETED},
        needs=f"a usable value: {WRITTEN_WINDOW}, which is missing",
    ),
    NotChecked(check="CTX-05", needs="a dataset card with max_prompt_tokens"),
)
