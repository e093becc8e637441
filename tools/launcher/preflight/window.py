"""The window of a request and the positions that cover it."""

from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import also, set_to

NEW_TOKENS = "skyrl.context_budget.max_new_tokens_per_turn"
_BUDGET_WINDOW = "skyrl.context_budget.request_window_tokens"
_ENGINE_WINDOW = "skyrl.generator.engine_init_kwargs.max_model_len"


def window_path(subject: PreflightSubject) -> str:
    """Return where the window is written: in the context budget, or where a resolved document has it."""
    return _BUDGET_WINDOW if subject.source_form else _ENGINE_WINDOW


def window(subject: PreflightSubject) -> int:
    """Return the tokens of prompt and answer in one request. Raises like `PreflightSubject.value`."""
    return subject.positive(window_path(subject))


def window_of(subject: PreflightSubject, tokens: int) -> str:
    """Return the repair that sets the window, and the new tokens where they would leave no room for a prompt."""
    repair = set_to(window_path(subject), tokens)
    new = subject.get(NEW_TOKENS)
    if not subject.source_form or type(new) is not int or new < tokens:
        return repair
    return also(repair, set_to(NEW_TOKENS, max(1, tokens // 2)))
