"""Token budget: one window, new tokens per turn, turns. All other lengths follow from them."""

from collections.abc import Iterator
from typing import Any

from tools.launcher.preflight.check import check
from tools.launcher.preflight.declared import declaration
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.lengths import (
    BUDGET,
    EVALUATION_NEW,
    INPUT,
    PROMPT,
    lengths_of,
    new_tokens,
    new_tokens_path,
    prompt_limit,
    stated,
    turns,
    turns_path,
    window,
    window_path,
)
from tools.launcher.preflight.prompts import kept_rows
from tools.launcher.preflight.subject import PreflightSubject, is_count, readable_count
from tools.launcher.preflight.wording import below, counted, delete, listed, set_to, shown
from tools.launcher.rl.context_budget import DERIVED_PATHS, SkyRLContextBudget, derived_lengths

_WINDOW = f"{BUDGET}.request_window_tokens"
_NEW = f"{BUDGET}.max_new_tokens_per_turn"
_TURNS = f"{BUDGET}.max_turns"
_GENERATED = f"{BUDGET}.generated_budget_fraction"
_CACHE = f"{BUDGET}.overlong_cache_fraction"
_COUNTS = (_WINDOW, _NEW, _TURNS)
_FIELDS = tuple(path.rpartition(".")[2] for path in (*_COUNTS, _GENERATED, _CACHE))


@check(
    "CTX-01",
    "the context budget is complete",
    area="context",
    rule="request_window_tokens, max_new_tokens_per_turn, max_turns: integers > 0; generated_budget_fraction in "
    "(0, 1]; overlong_cache_fraction in [0, 1]; no other field. Resolved document: the counts that follow > 0",
    prevents="The launcher refuses the document after the coordinator started.",
    inputs=("spec",),
    source="catalogue CTX-01 (#74); the launcher",
)
def ctx_01(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.source_form:
        yield from _resolved_counts(subject)
        return
    if not subject.declares(BUDGET):
        return  # ART-16
    budget = subject.get(BUDGET)
    if not isinstance(budget, dict):
        yield Finding(
            path=BUDGET,
            message=f"context_budget is {shown(budget)}, not a mapping",
            repair=f"write a mapping with {listed(_FIELDS)}",
        )
        return
    for field in sorted(set(budget) - set(_FIELDS), key=str):
        yield Finding(
            path=below(BUDGET, field),
            message=f"context_budget has no field {shown(field)}. Its fields: {listed(_FIELDS)}",
            repair=delete(below(BUDGET, field)),
        )
    for path in _COUNTS:
        value = subject.get(path)
        if not is_count(value):
            yield Finding(
                path=path,
                message=f"context_budget.{path.rpartition('.')[2]} must be a positive integer, got {shown(value)}",
                repair=_count_repair(path, value),
            )
    yield from _fraction_problems(subject, _GENERATED, zero_allowed=False)
    yield from _fraction_problems(subject, _CACHE, zero_allowed=True)


def _resolved_counts(subject: PreflightSubject) -> Iterator[Finding]:
    opened = window_path(subject)  # below an open mapping, where OBJ-20 judges no type
    for path in (opened, new_tokens_path(subject), turns_path(subject)):
        value = subject.get(path)
        if value is not None and not is_count(value) and (type(value) is int or path == opened):
            yield Finding(
                path=path,
                message=f"{path.removeprefix('skyrl.')} must be a positive integer, got {shown(value)}",
                repair=_count_repair(path, value),
            )


def _count_repair(path: str, value: Any) -> str:
    meant = readable_count(value)
    if meant is not None:
        return set_to(path, meant)
    return (
        set_to(path, 1) if path.endswith("max_turns") else f"write {path} as a number of tokens, such as 1024"
    )


def _fraction_problems(subject: PreflightSubject, path: str, *, zero_allowed: bool) -> Iterator[Finding]:
    if not subject.declares(path):
        return
    value = subject.get(path)
    is_number = type(value) in (int, float)
    if not is_number or not 0 <= value <= 1 or (value == 0 and not zero_allowed):
        yield Finding(
            path=path,
            message=f"context_budget.{path.rpartition('.')[2]} must be in {'[' if zero_allowed else '('}0, 1], "
            f"got {shown(value)}",
            repair=delete(path),
        )


@check(
    "CTX-02",
    "the window leaves room for a prompt",
    area="context",
    rule="W > N: request_window_tokens > max_new_tokens_per_turn. Resolved document: max_prompt_length > 0, and "
    "max_model_len = max_prompt_length + max_generate_length; a warning where it is more",
    prevents="There is no room for a prompt, or for the answer to a long one.",
    inputs=("spec",),
    source="catalogue CTX-02 (#75); the launcher",
)
def ctx_02(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.source_form:
        yield from _resolved_room(subject)
    elif stated(subject):
        tokens, new = window(subject), new_tokens(subject)
        if tokens <= new:
            yield Finding(
                path=_WINDOW,
                message=f"window {tokens} must exceed new tokens {new}: prompts get W-N={tokens - new}",
                repair=set_to(_WINDOW, 2 * new),
            )


def _resolved_room(subject: PreflightSubject) -> Iterator[Finding]:
    prompt, new = prompt_limit(subject), new_tokens(subject)
    if prompt <= 0:
        yield Finding(
            path=PROMPT,
            message=f"max_prompt_length={prompt}: the window leaves no room for a prompt beside {counted(new, 'new token')}",
            repair=lengths_of(subject, 2 * new, new),
        )
        return
    tokens, needed = window(subject), prompt + new
    if tokens != needed:
        yield Finding(
            path=window_path(subject),
            message=f"max_model_len={tokens} is {'below' if tokens < needed else 'more than'} "
            f"max_prompt_length + max_generate_length = {prompt} + {new} = {needed}",
            repair=set_to(window_path(subject), needed),
            severity="error" if tokens < needed else "warning",
        )


@check(
    "CTX-03",
    "lengths are declared once",
    area="context",
    rule="no path that follows from the context budget is set; no recipe sets context_budget itself",
    prevents="Two truths about length.",
    inputs=("spec",),
    source="catalogue CTX-03 (#76), failure row 28 (SkyRL#406); the launcher",
)
def ctx_03(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.source_form:
        return
    budget = _readable_budget(subject)
    values = derived_lengths(budget) if budget is not None else {}
    for path in DERIVED_PATHS:
        found = declaration(subject, path)
        if found is not None:  # the launcher refuses null as well
            follows = f" ({values[path]})" if path in values else ""
            yield Finding(
                path=f"skyrl.{path}",
                message=f"{found.where}{path}={found.written}: it follows from context_budget{follows}",
                repair=found.repair,
            )
    if subject.planned is not None:
        found = declaration(subject, "context_budget")
        if found is not None:
            yield Finding(
                path=BUDGET,
                message=f"{found.where}context_budget, which the context budget of the spec owns",
                repair=found.repair,
            )


def _readable_budget(subject: PreflightSubject) -> SkyRLContextBudget | None:
    counts = [subject.get(path) for path in _COUNTS]
    if not all(is_count(count) for count in counts):
        return None
    shares = [subject.get(path) for path in (_GENERATED, _CACHE)]
    if not all(share is None or (type(share) in (int, float) and 0 <= share <= 1) for share in shares):
        return None
    generated, cache = (None if share is None else float(share) for share in shares)
    return SkyRLContextBudget(
        request_window_tokens=counts[0],
        max_new_tokens_per_turn=counts[1],
        max_turns=counts[2],
        generated_budget_fraction=generated,
        overlong_cache_fraction=cache,
    )


@check(
    "CTX-05",
    "prompts fit the window",
    area="context",
    rule="longest templated prompt <= W-N",
    prevents="Rows are dropped, or the engine refuses a prompt that fills the window.",
    inputs=("spec", "dataset"),
    source="catalogue CTX-05 (#78), failure row 55 (vllm#16445); nobody checks it",
    implied_by=("CTX-02",),
)
def ctx_05(subject: PreflightSubject) -> Iterator[Finding]:
    longest = subject.train_fact("max_prompt_tokens")
    kept = kept_rows(subject)
    if longest is None or longest <= kept.limit:
        return
    none_fits = kept.total > 0 and kept.at_most == 0
    dropped = kept.total - kept.at_most
    if kept.at_least == kept.at_most:
        count = f"{dropped} of {kept.total} prompts exceed"
    else:
        count = f"some of {kept.total} prompts (the dataset card does not count them) exceed"
    yield Finding(
        path=window_path(subject),
        message=f"{count} W-N={kept.limit} tokens (longest {longest})",
        repair=lengths_of(subject, longest + new_tokens(subject), new_tokens(subject)),
        severity="error" if none_fits else "warning",
    )


@check(
    "CTX-11",
    "a prompt fits the input",
    area="context",
    rule="resolved document, max_turns == 1: max_input_length == max_prompt_length; more turns: >=",
    prevents="The trainer refuses the document; holds by construction if CTX-03 holds.",
    inputs=("spec",),
    source="catalogue CTX-11 (#84), MarinSkyRL skyrl_train/utils/utils.py@004e15f9; the trainer",
)
def ctx_11(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.source_form or not subject.has(INPUT) or not subject.has(PROMPT):
        return
    single = subject.get("skyrl.generator.max_turns") == 1
    length, prompt = subject.positive(INPUT), subject.positive(PROMPT)
    if length < prompt or (single and length != prompt):
        yield Finding(
            path=INPUT,
            message=f"max_input_length {length} {'!=' if single else '<'} max_prompt_length {prompt}",
            repair=set_to(INPUT, prompt),
        )


@check(
    "CTX-17",
    "evaluation asks for no more tokens than the window leaves",
    area="context",
    rule="eval_sampling_params.max_generate_length, if set, is an integer in 1..N",
    prevents="Evaluation asks for more tokens than the window leaves after the prompt, or for none.",
    inputs=("spec",),
    source="catalogue CTX-17 (new); nobody checks it",
)
def ctx_17(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.has(EVALUATION_NEW) or not stated(subject):
        return
    new = new_tokens(subject)
    value = subject.get(EVALUATION_NEW)
    if isinstance(value, bool | int | float) and not is_count(value):
        yield Finding(
            path=EVALUATION_NEW,
            message=f"eval max_generate_length must be a positive integer, got {shown(value)}",
            repair=set_to(EVALUATION_NEW, new),
        )
        return
    asked = subject.positive(EVALUATION_NEW)
    if asked > new:
        name = new_tokens_path(subject).removeprefix(f"{BUDGET}.").removeprefix("skyrl.generator.")
        yield Finding(
            path=EVALUATION_NEW,
            message=f"eval max_generate_length={asked} exceeds {name}={new}",
            repair=set_to(EVALUATION_NEW, new),
        )


@check(
    "CTX-20",
    "a second turn has room for the first answer",
    area="context",
    rule="max_turns > 1 implies W-N >= N",
    prevents="The input of the second turn is cut.",
    inputs=("spec",),
    source="catalogue CTX-20 (new), failure row 28 (SkyRL#406); nobody checks it",
    implied_by=("CTX-02",),
)
def ctx_20(subject: PreflightSubject) -> Iterator[Finding]:
    if not stated(subject):
        return
    most, new, limit = turns(subject), new_tokens(subject), prompt_limit(subject)
    if most > 1 and limit < new:
        yield Finding(
            path=window_path(subject),
            message=f"{most} turns of {counted(new, 'token')} do not fit {window(subject)}: the second turn's input gets "
            f"W-N={limit}",
            repair=lengths_of(subject, 2 * new, new),
            severity="warning",
        )


CHECKS = (ctx_01, ctx_02, ctx_03, ctx_05, ctx_11, ctx_17, ctx_20)
