"""What training modes and estimators ask of the batch."""

from collections.abc import Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.batches.legal import MINI, batch_repair
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.schedule import trains
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.wording import counted, delete, listed, set_to

_N = "skyrl.generator.n_samples_per_prompt"
_ESTIMATOR = "skyrl.trainer.algorithm.advantage_estimator"
_FORWARD = "skyrl.trainer.micro_forward_batch_size_per_gpu"
_WORKERS = "skyrl.trainer.fully_async.num_parallel_generation_workers"
_STALENESS = "skyrl.trainer.fully_async.max_staleness_steps"
_SAMPLING = "skyrl.trainer.algorithm.dynamic_sampling.type"
_STEP_WISE = "skyrl.trainer.step_wise_training"
_SELECTOR = "skyrl.trainer.trajectory_selector.type"
_GROUP_SIZE = "skyrl.trainer.algorithm.group_advantage_min_size"

_FULLY_ASYNC = "fully_async"


@check(
    "BAT-07",
    "fully_async takes one mini batch per step",
    area="batches",
    rule="entry point fully_async implies T == M",
    prevents="The trainer refuses the run.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-07 (#43); Marin and the launcher",
)
def bat_07(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.entrypoint != _FULLY_ASYNC:
        return
    geometry = Geometry.of(subject)
    if geometry.train_batch != geometry.mini_batch:
        yield Finding(
            path=MINI,
            message=f"fully_async takes one mini batch per step: train_batch_size={geometry.train_batch}, "
            f"policy_mini_batch_size={geometry.mini_batch}",
            repair=batch_repair(subject, set_to(MINI, geometry.train_batch)),
        )


@check(
    "BAT-08",
    "Megatron computes forward and training with one micro batch",
    area="batches",
    rule="strategy megatron implies micro_forward == micro_train",
    prevents="Other kernels give slightly other log-probabilities, and PPO clips on noise.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-08 (#44), failure row 17 (MarinSkyRL trainer comments); Marin and the trainer",
)
def bat_08(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if geometry.strategy != "megatron":
        return
    forward, train = subject.positive(_FORWARD), geometry.micro_batch
    if forward != train:
        yield Finding(
            path=_FORWARD,
            message=f"micro_forward_batch_size_per_gpu={forward}, micro_train_batch_size_per_gpu={train}; "
            "Megatron needs equal values",
            repair=set_to(_FORWARD, train),
        )


@check(
    "BAT-12",
    "group-relative estimators have groups",
    area="batches",
    rule="estimator in {grpo, rloo, ...} implies n >= 2 where there is training; group_advantage_min_size <= n; a warning where an estimator of "
    "ragged groups has none of at least 2, or another one has any",
    prevents="A group of one has zero advantage, and nothing is learned.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-12 (#48), MarinSkyRL skyrl_train/group_admission.py@07798d43; newer trainers for the size",
)
def bat_12(subject: PreflightSubject) -> Iterator[Finding]:
    samples = Geometry.of(subject).declared_samples
    estimator = subject.text(_ESTIMATOR)
    compared = estimator in subject.manifest().group_relative_estimators and not _only_generates(subject)
    if compared and samples < 2:
        yield Finding(
            path=_N,
            message=f"{estimator} compares answers inside a group; n_samples_per_prompt={samples} gives zero advantage",
            repair=set_to(_N, 2),
        )
    least = subject.positive(_GROUP_SIZE) if subject.has(_GROUP_SIZE) else 1
    if least > samples:
        yield Finding(
            path=_GROUP_SIZE,
            message=f"group_advantage_min_size={least} exceeds n_samples_per_prompt={samples}",
            repair=set_to(_GROUP_SIZE, samples)
            if _uses_group_size(subject, estimator) is not False
            else delete(_GROUP_SIZE),
        )
    elif samples >= 2:
        yield from _group_size_doubts(subject, estimator)


def _only_generates(subject: PreflightSubject) -> bool:
    """Whether nothing learns from the answers; an entry point that is not known (OBJ-03) may well train."""
    try:
        return not trains(subject)
    except UnreadableValue:
        return False


def _uses_group_size(subject: PreflightSubject, estimator: str) -> bool | None:
    """Whether the estimator reads group_advantage_min_size; None if that is not known."""
    manifest = subject.manifest()
    if manifest.ragged_group_estimators is None or estimator not in manifest.advantage_estimators:
        return None
    return estimator in manifest.ragged_group_estimators


def _group_size_doubts(subject: PreflightSubject, estimator: str) -> Iterator[Finding]:
    """What neighbouring commits refuse; it is not known of this one."""
    uses, least = _uses_group_size(subject, estimator), subject.get(_GROUP_SIZE)
    if uses is None:
        return
    if uses:
        if least is None or least < 2:
            yield Finding(
                path=_GROUP_SIZE,
                message=f"{estimator} may want group_advantage_min_size of at least 2, it is "
                f"{'not set' if least is None else least}",
                repair=set_to(_GROUP_SIZE, 2),
                severity="warning",
            )
    elif least is not None:
        yield Finding(
            path=_GROUP_SIZE,
            message=f"{estimator} does not use group_advantage_min_size={least}",
            repair=delete(_GROUP_SIZE),
            severity="warning",
        )


@check(
    "BAT-13",
    "best-of-N leaves no group to compare",
    area="batches",
    rule="trajectory_selector best_of_n excludes step_wise_training and group-relative estimators; n >= 2",
    prevents="After the selection one answer per prompt is left.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-13 (#49); the trainer",
)
def bat_13(subject: PreflightSubject) -> Iterator[Finding]:
    if not Geometry.of(subject).best_of_n:
        return
    estimator = subject.text(_ESTIMATOR)
    if estimator in subject.manifest().group_relative_estimators:
        yield Finding(
            path=_SELECTOR,
            message=f"best_of_n leaves one answer per prompt; {estimator} needs a group",
            repair=delete(_SELECTOR),
        )
    if subject.flag(_STEP_WISE):
        yield Finding(
            path=_STEP_WISE,
            message="best_of_n selects whole answers; step_wise_training makes one row per turn",
            repair=set_to(_STEP_WISE, False),
        )
    if Geometry.of(subject).declared_samples < 2:
        yield Finding(
            path=_N,
            message="best_of_n of n_samples_per_prompt=1 selects nothing",
            repair=set_to(_N, 2),
            severity="warning",
        )


@check(
    "BAT-18",
    "fully_async has enough generation workers, and not too many",
    area="batches",
    rule="M <= num_parallel_generation_workers; useful up to M*(max_staleness_steps+1); max_staleness_steps >= 0",
    prevents="Below: an assertion, or a wait without end. Above: workers wait without work.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-18 (new); the trainer checks the lower bound",
)
def bat_18(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.entrypoint != _FULLY_ASYNC:
        return
    mini, workers = Geometry.of(subject).mini_batch, subject.positive(_WORKERS)
    staleness = subject.integer(_STALENESS)
    if staleness < 0:
        yield Finding(
            path=_STALENESS,
            message=f"max_staleness_steps={staleness} leaves no room for a group: generation never starts",
            repair=set_to(_STALENESS, 0),
        )
    useful = mini * (max(0, staleness) + 1)
    if mini <= workers <= useful:
        return
    yield Finding(
        path=_WORKERS,
        message=f"{counted(workers, 'generation worker')} for mini batch {mini}, staleness {staleness}: "
        f"use {mini} to {useful}",
        repair=set_to(_WORKERS, mini if workers < mini else useful),
        severity="error" if workers < mini else "warning",
    )


@check(
    "BAT-20",
    "dynamic sampling has groups to filter",
    area="batches",
    rule="dynamic_sampling filter or replace implies n >= 2; in fully_async only what the runtime allows",
    prevents="Groups of one always have equal rewards, so that filtering drops all of them.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-20 (new); the trainer, partly",
)
def bat_20(subject: PreflightSubject) -> Iterator[Finding]:
    kind = subject.get(_SAMPLING)
    if kind not in ("filter", "replace"):
        return
    samples = Geometry.of(subject).declared_samples
    if samples < 2:
        yield Finding(
            path=_N,
            message=f"dynamic_sampling {kind} drops groups with equal reward; n_samples_per_prompt={samples} "
            "drops everything",
            repair=set_to(_N, 2),
        )
    if subject.entrypoint != _FULLY_ASYNC:
        return
    allowed = subject.manifest().fully_async_dynamic_sampling
    if allowed is None:
        raise MissingFact("fully_async_dynamic_sampling in the runtime manifest")
    if kind not in allowed:
        yield Finding(
            path=_SAMPLING,
            message=f"fully_async does not support dynamic_sampling {kind}. Supported: {listed(allowed) or 'none'}",
            repair=set_to(_SAMPLING, *(*allowed, "null")),
        )


@check(
    "BAT-21",
    "step-wise rows divide over the ranks",
    area="batches",
    rule="step_wise_training with dp > 1 needs a runtime that is known to pad or trim rows",
    prevents="Some step yields rows that dp does not divide, and asserts in mid-run.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-21 (new), failure row 19 (SkyRL#1501); nobody checks it",
)
def bat_21(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.flag(_STEP_WISE):
        return
    ranks = Geometry.of(subject).policy_dp
    pads = subject.manifest().pads_step_wise_rows
    if ranks == 1 or pads:
        return
    known = "of this runtime it is not known that it pads" if pads is None else "this runtime does not pad"
    yield Finding(
        path=_STEP_WISE,
        message=f"step-wise rows are data-dependent; dp={ranks} may not divide them, and {known}",
        repair=set_to(_STEP_WISE, False),
        severity="warning",
    )


CHECKS = (bat_07, bat_08, bat_12, bat_13, bat_18, bat_20, bat_21)
