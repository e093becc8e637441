"""The one place where token lengths are declared. Identity-bearing.

Source of the formulas: contract, launch-document.md §4.9 and runtime-facts.md §4.
"""

from pydantic import BaseModel

from tools.launcher.rl.topology import SPEC

DERIVED_PATHS: tuple[str, ...] = (
    "trainer.max_prompt_length",
    "generator.max_input_length",
    "generator.max_turns",
    "generator.sampling_params.max_generate_length",
    "generator.engine_init_kwargs.max_model_len",
    "generator.trajectory_reward_shaping.overlong.l_max",
    "generator.trajectory_reward_shaping.overlong.l_cache",
    "terminal_bench.harbor.max_episodes",
    "terminal_bench.harbor.max_turns",
    "terminal_bench.harbor.llm_call_kwargs.max_tokens",
    "terminal_bench.model_info.max_input_tokens",
    "terminal_bench.model_info.max_output_tokens",
)
"""Paths below `skyrl` that a recipe may not set, because they follow from the budget."""

DEFAULT_GENERATED_BUDGET_FRACTION = 0.5
DEFAULT_OVERLONG_CACHE_FRACTION = 0.25


class SkyRLContextBudget(BaseModel):
    """Tokens per request, per turn, and turns."""

    model_config = SPEC

    request_window_tokens: int
    """W: tokens of prompt plus answer in one request."""
    max_new_tokens_per_turn: int
    """N: must be smaller than the window."""
    max_turns: int
    """T: 1 for single-turn tasks."""
    generated_budget_fraction: float | None
    """Share of the window that several turns may generate, in (0, 1]; None: the runtime's 0.5."""
    overlong_cache_fraction: float | None
    """Share of the longest answer that is punished softly, in [0, 1]; None: the runtime's 0.25."""

    def declared(self) -> dict[str, int | float]:
        """The fields that the document writes out: all but those left to the runtime."""
        return {name: value for name, value in self.model_dump().items() if value is not None}


def derived_lengths(budget: SkyRLContextBudget) -> dict[str, int]:
    """Return path below `skyrl` -> value for every length that follows from `budget`, in tokens or turns.

    The terminal-bench paths are left out; they exist only for agentic recipes.
    """
    window, new, turns = budget.request_window_tokens, budget.max_new_tokens_per_turn, budget.max_turns
    share = budget.generated_budget_fraction
    share = DEFAULT_GENERATED_BUDGET_FRACTION if share is None else share
    cache = budget.overlong_cache_fraction
    cache = DEFAULT_OVERLONG_CACHE_FRACTION if cache is None else cache
    longest = new if turns == 1 else max(1, int(window * share))
    return {
        "trainer.max_prompt_length": window - new,
        "generator.max_input_length": window - new,
        "generator.max_turns": turns,
        "generator.sampling_params.max_generate_length": new,
        "generator.engine_init_kwargs.max_model_len": window,
        "generator.trajectory_reward_shaping.overlong.l_max": longest,
        "generator.trajectory_reward_shaping.overlong.l_cache": int(longest * cache),
    }
