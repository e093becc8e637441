"""Sampling parameters of training and evaluation."""

import math
from collections.abc import Iterator
from typing import Any

from tools.launcher.preflight.bounds import FRACTION, POSITIVE, Bounds, Limit, number, out_of_bounds
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.objectives import reads_rollout_logprobs
from tools.launcher.preflight.schedule import trains
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.teachers import teachers
from tools.launcher.preflight.wording import delete, listed, set_to, shown

_TRAINING = "skyrl.generator.sampling_params"
_EVALUATION = "skyrl.generator.eval_sampling_params"
_KWARGS = "skyrl.generator.engine_init_kwargs"
_SECTIONS = ("sampling_params", "eval_sampling_params")

MIN_TEMPERATURE = 1e-5
"""Below it the engine takes the likeliest token (MarinSkyRL config/behavior_logprobs.py@4eb51665)."""


@check(
    "CTX-13",
    "log-probabilities are those of the distribution that was sampled",
    area="context",
    rule="sampling logprobs null or 0, or the top_k of every teacher; use_tis and losses that read them: the whole "
    "distribution (top_p 1, top_k -1, min_p 0, no penalties), processed log-probabilities",
    prevents="The trainer refuses the document, or importance ratios are wrong.",
    inputs=("spec", "runtime"),
    source="catalogue CTX-13 (#86), MarinSkyRL config/behavior_logprobs.py@4eb51665; the trainer",
)
def ctx_13(subject: PreflightSubject) -> Iterator[Finding]:
    yield from _logprobs_problems(subject)
    if trains(subject) and reads_rollout_logprobs(subject):
        yield from _distribution_problems(subject)


def _logprobs_problems(subject: PreflightSubject) -> Iterator[Finding]:
    path = f"{_TRAINING}.logprobs"
    wanted = subject.get(path)
    if wanted is None:
        return
    widths = [settings.get("top_k") for _, settings in teachers(subject)]
    planned = type(wanted) is int and wanted > 0 and widths and all(width == wanted for width in widths)
    if not planned and (type(wanted) is not int or wanted != 0):
        yield Finding(
            path=path,
            message=f"sampling logprobs={shown(wanted)}: allowed are null and 0, or the top_k of all teachers",
            repair=set_to(path, 0),
        )
    local = "skyrl.generator.run_engines_locally"
    if subject.get(local) is False:
        yield Finding(
            path=path,
            message=f"sampling logprobs={shown(wanted)}: remote engines return none",
            repair=delete(path),
        )


def _distribution_problems(subject: PreflightSubject) -> Iterator[Finding]:
    manifest = subject.manifest()
    loss = subject.text("skyrl.trainer.algorithm.policy_loss_type")
    reader = "use_tis" if loss not in manifest.rollout_logprob_losses else f"policy loss {loss}"
    for name, neutral in manifest.neutral_sampling.items():
        path = f"{_TRAINING}.{name}"
        value = subject.get(path)
        if value is not None and not _equals(value, neutral):
            yield Finding(
                path=path,
                message=f"{reader} needs the whole distribution: {name}={neutral:g}, got {shown(value)}",
                repair=set_to(path, f"{neutral:g}"),
            )
    path = f"{_TRAINING}.temperature"
    temperature = subject.get(path)
    if type(temperature) in (int, float) and not MIN_TEMPERATURE <= temperature < math.inf:
        yield Finding(
            path=path,
            message=f"{reader} needs temperature >= {MIN_TEMPERATURE:g}, got {shown(temperature)}",
            repair=set_to(path, 1),
        )
    for name, wanted in manifest.processed_logprob_options.items():
        path = f"{_KWARGS}.{name}"
        if subject.declares(path) and subject.get(path) != wanted:
            yield Finding(
                path=path,
                message=f"{reader} needs engine_init_kwargs.{name}={wanted}, got {shown(subject.get(path))}",
                repair=set_to(path, wanted),
            )
    for name in ("override_generation_config", "logits_processors"):
        path = f"{_KWARGS}.{name}"
        if subject.get(path):
            yield Finding(
                path=path,
                message=f"{reader}: engine_init_kwargs.{name} changes the distribution that is sampled",
                repair=delete(path),
            )


def _equals(value: Any, number: float) -> bool:
    return type(value) in (int, float) and bool(value == number)


@check(
    "CTX-21",
    "temperatures can be sampled with",
    area="context",
    rule="training: temperature > 0; evaluation: temperature >= 0; both finite",
    prevents="Division by zero, or answers of one group that are all equal.",
    inputs=("spec", "runtime"),
    source="catalogue CTX-21 (new); newer trainers",
)
def ctx_21(subject: PreflightSubject) -> Iterator[Finding]:
    path = f"{_TRAINING}.temperature"
    # An entry point that only generates may take the likeliest token.
    lowest = Bounds(low=0, open_low=trains(subject))
    temperature = number(subject, path)
    if not lowest.holds(temperature):
        why = " gives no behaviour probabilities" if temperature == 0 else ""
        yield Finding(
            path=path,
            message=f"temperature {shown(temperature)}{why}: it must be {lowest}",
            repair=set_to(path, 1),
        )
    elif temperature < MIN_TEMPERATURE and trains(subject):
        yield Finding(
            path=path,
            message=f"temperature {shown(temperature)} is below {MIN_TEMPERATURE:g}, where the engine takes the "
            "likeliest token: all answers of a group are equal",
            repair=set_to(path, 1),
            severity="warning",
        )
    yield from out_of_bounds(
        subject, (Limit("generator.eval_sampling_params.temperature", Bounds(low=0), 0),)
    )


_SAMPLING_LIMITS = tuple(
    Limit(f"generator.{section}.{name}", bounds, suggestion)
    for section in _SECTIONS
    for name, bounds, suggestion in (
        ("top_p", Bounds(low=0, high=1, open_low=True), 1),
        ("top_k", Bounds(low=-1), -1),
        ("min_p", FRACTION, 0),
        ("repetition_penalty", POSITIVE, 1),
    )
)


@check(
    "CTX-27",
    "sampling parameters are in range",
    area="context",
    rule="top_p in (0, 1]; top_k -1 or >= 1; min_p in [0, 1]; repetition_penalty > 0; evaluation logprobs <= 1",
    prevents="The engine refuses every request.",
    inputs=("spec",),
    source="vLLM's own checks of sampling parameters; nobody checks it before",
)
def ctx_27(subject: PreflightSubject) -> Iterator[Finding]:
    yield from out_of_bounds(subject, _SAMPLING_LIMITS)
    for section in _SECTIONS:
        path = f"skyrl.generator.{section}.top_k"
        if subject.get(path) == 0 and type(subject.get(path)) is int:
            yield Finding(
                path=path,
                message="top_k=0: some engines refuse it. All tokens are -1",
                repair=set_to(path, -1),
                severity="warning",
            )
    path = f"{_EVALUATION}.logprobs"
    wanted = subject.get(path)
    if type(wanted) is int and not 0 <= wanted <= 1:
        yield Finding(
            path=path,
            message=f"evaluation logprobs={shown(wanted)}: the engines are started with max_logprobs=1. "
            f"Known to work: {listed((0, 1))}",
            repair=set_to(path, 1),
            severity="warning",
        )


CHECKS = (ctx_13, ctx_21, ctx_27)
