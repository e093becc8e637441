"""The lengths of a request, wherever the form of the document has them.

W window, N new tokens per turn, W-N the longest prompt. A source document states them in
`skyrl.context_budget`; composition writes what follows from it below trainer and generator and
drops the budget (contract, launch-document.md §2 and §4.9).
"""

from tools.launcher.preflight.subject import PreflightSubject, is_count
from tools.launcher.preflight.wording import also, set_to

BUDGET = "skyrl.context_budget"
PROMPT = "skyrl.trainer.max_prompt_length"
INPUT = "skyrl.generator.max_input_length"
EVALUATION_NEW = "skyrl.generator.eval_sampling_params.max_generate_length"


def window_path(subject: PreflightSubject) -> str:
    """Return where W is written."""
    if subject.source_form:
        return f"{BUDGET}.request_window_tokens"
    return "skyrl.generator.engine_init_kwargs.max_model_len"


def new_tokens_path(subject: PreflightSubject) -> str:
    """Return where N is written."""
    if subject.source_form:
        return f"{BUDGET}.max_new_tokens_per_turn"
    return "skyrl.generator.sampling_params.max_generate_length"


def turns_path(subject: PreflightSubject) -> str:
    """Return where the number of turns is written."""
    return f"{BUDGET}.max_turns" if subject.source_form else "skyrl.generator.max_turns"


def stated(subject: PreflightSubject) -> bool:
    """Whether the document is of a form that has lengths: ART-16 reports a source document without budget."""
    return not subject.source_form or subject.has(BUDGET)


def window(subject: PreflightSubject) -> int:
    """Return W, the tokens of prompt and answer in one request. Raises like `PreflightSubject.value`."""
    return subject.positive(window_path(subject))


def new_tokens(subject: PreflightSubject) -> int:
    """Return N, the tokens that one turn may generate. Raises like `PreflightSubject.value`."""
    return subject.positive(new_tokens_path(subject))


def turns(subject: PreflightSubject) -> int:
    """Return the turns of a task. Raises like `PreflightSubject.value`."""
    return subject.positive(turns_path(subject))


def prompt_limit(subject: PreflightSubject) -> int:
    """Return W-N, the tokens of the longest prompt; not positive where there is no room for one.

    Raises like `PreflightSubject.value`.
    """
    if subject.source_form:
        return window(subject) - new_tokens(subject)
    return subject.integer(PROMPT)


def lengths_of(subject: PreflightSubject, window_tokens: int, new: int) -> str:
    """Return the repair which sets W and N, and in resolved form what follows from them.

    N is named only where it changes.
    """
    changes = [set_to(window_path(subject), window_tokens)]
    if subject.get(new_tokens_path(subject)) != new:
        changes.append(set_to(new_tokens_path(subject), new))
    if not subject.source_form:
        changes += [set_to(path, window_tokens - new) for path in (PROMPT, INPUT)]
    evaluation = subject.get(EVALUATION_NEW)
    if is_count(evaluation) and evaluation > new:
        changes.append(set_to(EVALUATION_NEW, new))
    return also(*changes)


def window_of(subject: PreflightSubject, tokens: int) -> str:
    """Return the repair that sets W to `tokens`, and N where it would leave no room for a prompt."""
    new = subject.get(new_tokens_path(subject))
    if is_count(new):
        return lengths_of(subject, tokens, new if new < tokens else max(1, tokens // 2))
    return set_to(window_path(subject), tokens)
