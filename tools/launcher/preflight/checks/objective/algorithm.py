"""Estimator, loss and KL terms."""

from collections.abc import Iterator
from difflib import get_close_matches

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.bounds import FRACTION, NOT_NEGATIVE, Limit, number, out_of_bounds
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.objectives import penalises_divergence, reads_rollout_logprobs
from tools.launcher.preflight.schedule import trains
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import also, delete, listed, set_to, shown

_ALGORITHM = "skyrl.trainer.algorithm"
_KL_LOSS = f"{_ALGORITHM}.use_kl_loss"
_KL_REWARD = f"{_ALGORITHM}.use_kl_in_reward"
_KL_COEFFICIENT = f"{_ALGORITHM}.kl_loss_coef"
_KL_HORIZON = f"{_ALGORITHM}.kl_ctrl.horizon"
_ESTIMATOR = f"{_ALGORITHM}.advantage_estimator"
_LOSS = f"{_ALGORITHM}.policy_loss_type"
_REDUCTION = f"{_ALGORITHM}.loss_reduction"
_TIS = f"{_ALGORITHM}.use_tis"
_CAP = f"{_ALGORITHM}.tis_imp_ratio_cap"


@check(
    "OBJ-01",
    "the KL term is declared, and there is one at most",
    area="objective",
    rule="source document: use_kl_loss is declared; not both use_kl_loss and use_kl_in_reward",
    prevents="The base default true loads a reference model that nobody asked for; the trainer refuses both.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-01 (#90); Marin at build time, the trainer",
)
def obj_01(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.source_form and not subject.has(_KL_LOSS):
        yield Finding(
            path=_KL_LOSS,
            message="use_kl_loss is not declared; the base default true loads a reference model",
            repair=set_to(_KL_LOSS, False, True),
        )
        return
    if subject.flag(_KL_LOSS) and subject.flag(_KL_REWARD):
        yield Finding(
            path=_KL_REWARD,
            message="use_kl_loss and use_kl_in_reward are both true. Keep one",
            repair=set_to(_KL_REWARD, False),
        )


@check(
    "OBJ-02",
    "estimator, loss and reduction are registered and go together",
    area="objective",
    rule="advantage_estimator, policy_loss_type, loss_reduction are the runtime's; gspo: sequence_mean; use_tis: cap > 0 "
    "and a loss that it corrects, not behavior_clip",
    prevents="The trainer refuses the document after the GPUs were allocated.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-02 (#91), contract runtime-facts.md §7; the trainer",
)
def obj_02(subject: PreflightSubject) -> Iterator[Finding]:
    manifest = subject.manifest()
    loss = subject.text(_LOSS)
    for path, known in (
        (_ESTIMATOR, manifest.advantage_estimators),
        (_LOSS, manifest.policy_losses),
        (_REDUCTION, manifest.loss_reductions),
    ):
        value = subject.text(path)
        if value not in known:
            offered = manifest.placeable_estimators if path == _ESTIMATOR else known
            near = get_close_matches(value, offered, n=2) or offered
            yield Finding(
                path=path,
                message=f"unknown {path.rpartition('.')[2]} {shown(value)}. Known: {listed(known)}",
                repair=set_to(path, *near),
            )
    reduction = subject.text(_REDUCTION)
    demanded = loss in manifest.sequence_mean_losses
    if reduction != "sequence_mean" and (demanded or loss in manifest.sequence_mean_preferred):
        yield Finding(
            path=_REDUCTION,
            message=f"policy loss {loss} {'needs' if demanded else 'was designed for'} loss_reduction sequence_mean, "
            f"got {reduction}",
            repair=set_to(_REDUCTION, "sequence_mean"),
            severity="error" if demanded else "warning",
        )
    if subject.flag(_TIS):
        yield from _tis_problems(subject, loss)


def _tis_problems(subject: PreflightSubject, loss: str) -> Iterator[Finding]:
    cap = number(subject, _CAP)
    if cap <= 0:
        yield Finding(
            path=_CAP,
            message=f"use_tis needs tis_imp_ratio_cap > 0, got {shown(cap)}",
            repair=set_to(_CAP, 2),
        )
    manifest = subject.manifest()
    losses = manifest.tis_losses
    if losses and loss in manifest.policy_losses and loss not in losses:
        why = (
            "already uses the whole importance ratio"
            if loss in manifest.rollout_logprob_losses
            else "does not support it"
        )
        yield Finding(
            path=_LOSS,
            message=f"use_tis with policy loss {loss}, which {why}. TIS corrects: {listed(losses)}",
            repair=set_to(_LOSS, *losses),
        )


@check(
    "OBJ-16",
    "the runner returns what the objective reads",
    area="objective",
    rule="use_tis and losses that read rollout log-probabilities: not mini_swe; Harbor with collect_rollout_details true",
    prevents="Importance ratios cannot be computed.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-16 (new), contract runtime-facts.md §7; newer trainers",
)
def obj_16(subject: PreflightSubject) -> Iterator[Finding]:
    if not trains(subject) or not reads_rollout_logprobs(subject):
        return
    manifest, entrypoint = subject.manifest(), subject.entrypoint
    if manifest.inexact_entrypoints is None:
        raise MissingFact("inexact_entrypoints in the runtime manifest")
    reader = "use_tis" if subject.flag(_TIS) else f"policy loss {subject.text(_LOSS)}"
    plain = also(set_to(_TIS, False), set_to(_LOSS, "regular"))
    if entrypoint in manifest.inexact_entrypoints:
        yield Finding(
            path="skyrl.entrypoint" if subject.source_form else "runtime.entrypoint",
            message=f"{reader} needs exact completions; {entrypoint} does not return them",
            repair=plain,
        )
    switch = manifest.exact_completion_switches.get(entrypoint)
    if switch is None:
        return
    path = f"skyrl.{switch}".replace("skyrl.terminal_bench.", f"{subject.agentic_section}.")
    state = subject.get(path)
    if state is not True:
        yield Finding(
            path=path,
            message=f"{reader} needs exact completions: {switch.rpartition('.')[2]} is "
            f"{'not declared' if state is None else shown(state)}",
            repair=set_to(path, True),
            severity="warning" if state is None else "error",
        )


@check(
    "OBJ-18",
    "a KL term has an effect",
    area="objective",
    rule="KL term on: kl_loss_coef > 0, kl_estimator_type and (in the reward) kl_ctrl.type known, horizon > 0 where "
    "adaptive",
    prevents="A reference model is loaded for nothing, or the first step fails.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-18 (new), MarinSkyRL skyrl_train/utils/ppo_utils.py@a559688c; nobody checks it",
)
def obj_18(subject: PreflightSubject) -> Iterator[Finding]:
    active = penalises_divergence(subject)
    names = [("kl_estimator_type", active), ("kl_ctrl.type", active and subject.flag(_KL_REWARD))]
    for name, read in names:
        path, known = f"{_ALGORITHM}.{name}", subject.manifest().recipe_enums.get(f"trainer.algorithm.{name}")
        value = subject.get(path)
        if value is None or known is None or value in known:
            continue
        unread = "" if read else " (no KL term reads it now)"
        yield Finding(
            path=path,
            message=f"{name} is {shown(value)}{unread}. Known: {listed(known)}",
            repair=set_to(path, *known),
            severity="error" if read else "warning",
        )
    if not active:
        return
    term = "use_kl_loss" if subject.flag(_KL_LOSS) else "use_kl_in_reward"
    coefficient = number(subject, _KL_COEFFICIENT)
    if coefficient <= 0:
        yield Finding(
            path=_KL_COEFFICIENT,
            message=f"{term} with kl_loss_coef={shown(coefficient)} "
            f"{'costs a reference model for nothing' if coefficient == 0 else 'rewards divergence'}",
            repair=set_to(f"{_ALGORITHM}.{term}", False),
            severity="warning",
        )
    adaptive = subject.flag(_KL_REWARD) and subject.get(f"{_ALGORITHM}.kl_ctrl.type") == "adaptive"
    if adaptive and subject.integer(_KL_HORIZON) <= 0:
        yield Finding(
            path=_KL_HORIZON,
            message=f"adaptive kl_ctrl needs horizon > 0, got {subject.integer(_KL_HORIZON)}",
            repair=set_to(_KL_HORIZON, 10000),
        )


_COEFFICIENTS = (
    Limit("trainer.algorithm.eps_clip_low", NOT_NEGATIVE, 0.2),
    Limit("trainer.algorithm.eps_clip_high", NOT_NEGATIVE, 0.2),
    Limit("trainer.algorithm.dynamic_sampling.min_reward_std", NOT_NEGATIVE, 0),
)
_DISCOUNTS = (
    Limit("trainer.algorithm.gamma", FRACTION, 1),
    Limit("trainer.algorithm.lambd", FRACTION, 1),
    Limit("trainer.algorithm.dynamic_sampling.min_replace_ratio", FRACTION, 0.3),
)
_DUAL_CLIP = f"{_ALGORITHM}.clip_ratio_c"
_POOLED = f"{_ALGORITHM}.ratio_diagnostics.pooled"


@check(
    "OBJ-23",
    "coefficients of the objective are in range",
    area="objective",
    rule="eps_clip_low, eps_clip_high, dynamic_sampling.min_reward_std >= 0; gamma, lambd, min_replace_ratio in [0, 1]; "
    "dual_clip: clip_ratio_c > 1; a warning for ratio_diagnostics.pooled without megatron",
    prevents="The clipping interval is empty, or the trainer refuses the document.",
    inputs=("spec", "runtime"),
    source="MarinSkyRL skyrl_train/dynamic_sampling.py@0f3035d3, ppo_base_config.yaml@008da072 for pooled, and the "
    "definition of PPO clipping; nobody checks it",
)
def obj_23(subject: PreflightSubject) -> Iterator[Finding]:
    yield from out_of_bounds(subject, _COEFFICIENTS)
    yield from out_of_bounds(subject, _DISCOUNTS, severity="warning")
    if subject.text(_LOSS) == "dual_clip":
        ratio = number(subject, _DUAL_CLIP)
        if ratio <= 1:
            yield Finding(
                path=_DUAL_CLIP,
                message=f"dual_clip needs clip_ratio_c > 1, got {shown(ratio)}",
                repair=delete(_DUAL_CLIP) if subject.source_form else set_to(_DUAL_CLIP, 3),
                severity="warning",
            )
    if subject.get(_POOLED) is True and subject.text("skyrl.trainer.strategy") != "megatron":
        yield Finding(
            path=_POOLED,
            message="ratio_diagnostics.pooled is true: only strategy megatron pools them, others may refuse it",
            repair=delete(_POOLED),
            severity="warning",
        )


CHECKS = (obj_01, obj_02, obj_16, obj_18, obj_23)
