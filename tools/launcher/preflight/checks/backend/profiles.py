"""Profile of the image, strategy of training, and what single strategies ask."""

import difflib
from collections.abc import Iterator, Sequence

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import also, listed, set_to, shown

_PROFILE = "runtime.profile"
_STRATEGY = "skyrl.trainer.strategy"
_BACKEND = "skyrl.generator.backend"
_LOCAL = "skyrl.generator.run_engines_locally"
_CPU_OFFLOADS = tuple(f"skyrl.trainer.{role}.fsdp_config.cpu_offload" for role in ("policy", "critic"))
_ZERO_STAGE = "skyrl.trainer.policy.deepspeed_config.zero_optimization.stage"
_OFFLOADS_AFTER_STEP = tuple(
    f"skyrl.trainer.{role}.optimizer_config.offload_after_step" for role in ("policy", "critic")
)
"""The trainer asks both of a critic that nobody places as well."""
_OFFLOAD_DURING_ROLLOUTS = "skyrl.trainer.offload_optimizer_during_rollouts"
_COLOCATE_ALL = "skyrl.trainer.placement.colocate_all"


def _nearest_word(word: str, known: Sequence[str], otherwise: str) -> str:
    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=0.5)), otherwise)


def _strategy_of_profile(subject: PreflightSubject) -> dict[str, str]:
    """Profile -> strategy; the images of an export are called `<profile>-export`. Raises MissingFact."""
    suffix = "-export" if Geometry.of(subject).export_mode else ""
    known = subject.manifest().strategy_of_profile
    if not known:
        raise MissingFact("strategy_of_profile in the runtime manifest")
    return {f"{profile}{suffix}": strategy for profile, strategy in known.items()}


@check(
    "BKD-01",
    "the image's profile serves the strategy",
    area="backend",
    rule="runtime.profile provides trainer.strategy: fsdp fsdp2, megatron megatron; an absent strategy is the base "
    "configuration's; `<profile>-export` to export a checkpoint",
    prevents="The image lacks the libraries.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-01 (#50); Marin and the launcher",
)
def bkd_01(subject: PreflightSubject) -> Iterator[Finding]:
    if Geometry.of(subject).export_mode and subject.source_form:
        return  # EXE-08: which profile it needs depends on the mode that the author chooses.
    provided = _strategy_of_profile(subject)
    profile, strategy = subject.text(_PROFILE), Geometry.of(subject).strategy
    fitting = [name for name, serves in provided.items() if serves == strategy]
    if profile not in provided:
        nearest = _nearest_word(profile, tuple(provided), next(iter(provided)))
        yield Finding(
            path=_PROFILE,
            message=f"profile {shown(profile)} has no image. Profiles: {listed(provided)}",
            repair=set_to(_PROFILE, fitting[0])
            if fitting
            else also(set_to(_PROFILE, nearest), set_to(_STRATEGY, provided[nearest])),
        )
        return
    if provided[profile] == strategy or strategy not in subject.manifest().strategies:  # BKD-02
        return
    asked = (
        f"the recipe asks strategy {strategy}"
        if subject.has(_STRATEGY)
        else f"without a strategy it is {strategy}"
    )
    yield Finding(
        path=_STRATEGY,
        message=f"profile {profile} provides {provided[profile]}; {asked}"
        + (f", which profile {fitting[0]} provides" if fitting else ", which no profile provides"),
        repair=set_to(_PROFILE, fitting[0])
        if fitting and subject.has(_STRATEGY)
        else set_to(_STRATEGY, provided[profile]),
    )


@check(
    "BKD-02",
    "the strategy is known",
    area="backend",
    rule="trainer.strategy is a strategy of the runtime",
    prevents="The launcher takes any unknown word for the fsdp profile.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-02 (#51); Marin only",
)
def bkd_02(subject: PreflightSubject) -> Iterator[Finding]:
    manifest = subject.manifest()
    strategy = Geometry.of(subject).strategy
    if strategy not in manifest.strategies:
        profile = subject.get(_PROFILE)
        provided = manifest.strategy_of_profile.get(profile) if isinstance(profile, str) else None
        nearest = provided or _nearest_word(strategy, manifest.strategies, manifest.default_strategy)
        yield Finding(
            path=_STRATEGY,
            message=f"unknown strategy {shown(strategy)}. Known: {listed(manifest.strategies)}. Did you mean {nearest}?",
            repair=set_to(_STRATEGY, nearest),
        )


@check(
    "BKD-03",
    "the rollout back end is known",
    area="backend",
    rule="generator.backend is a back end of the runtime",
    prevents="`vlm` passes every stage and fails when the engines start.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-03 (#52); nobody checks it",
)
def bkd_03(subject: PreflightSubject) -> Iterator[Finding]:
    known = subject.manifest().generator_backends
    backend = subject.text(_BACKEND)
    if backend not in known:
        yield Finding(
            path=_BACKEND,
            message=f"unknown backend {shown(backend)}. Use {' or '.join(known)}",
            repair=set_to(_BACKEND, _nearest_word(backend, known, known[0])),
        )


@check(
    "BKD-14",
    "FSDP1 keeps the policy on the GPU",
    area="backend",
    rule="strategy fsdp implies fsdp_config.cpu_offload: false, of policy and critic",
    prevents="Gradient accumulation is wrong with it.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-14 (#63); the trainer (Marin refuses FSDP1 as a whole)",
)
def bkd_14(subject: PreflightSubject) -> Iterator[Finding]:
    if Geometry.of(subject).strategy != "fsdp":
        return
    for path in _CPU_OFFLOADS:
        if subject.flag(path):
            yield Finding(
                path=path,
                message=f"strategy fsdp cannot offload the {path.split('.')[2]} to the CPU. cpu_offload needs fsdp2",
                repair=set_to(path, False),
            )


@check(
    "BKD-15",
    "DeepSpeed runs as the runtime supports it",
    area="backend",
    rule="strategy deepspeed: the policy's ZeRO stage is the runtime's; offload_after_step: true, of policy and "
    "critic, if it asks for that",
    prevents="The trainer refuses the run.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-15 (#64); the trainer, utils.py@004e15f9 (Marin refuses DeepSpeed as a whole)",
)
def bkd_15(subject: PreflightSubject) -> Iterator[Finding]:
    if Geometry.of(subject).strategy != "deepspeed":
        return
    manifest = subject.manifest()
    if manifest.deepspeed_zero_stage is None or manifest.deepspeed_needs_offload_after_step is None:
        raise MissingFact(
            "deepspeed_zero_stage and deepspeed_needs_offload_after_step in the runtime manifest"
        )
    # Left out, the stage is the one of the runtime's own DeepSpeed configuration.
    if subject.has(_ZERO_STAGE) and subject.integer(_ZERO_STAGE) != manifest.deepspeed_zero_stage:
        yield Finding(
            path=_ZERO_STAGE,
            message=f"deepspeed policy has ZeRO stage {subject.get(_ZERO_STAGE)}, this runtime needs "
            f"{manifest.deepspeed_zero_stage}",
            repair=set_to(_ZERO_STAGE, manifest.deepspeed_zero_stage),
        )
    for path in _OFFLOADS_AFTER_STEP if manifest.deepspeed_needs_offload_after_step else ():
        if not subject.flag(path):
            yield Finding(
                path=path,
                message=f"deepspeed needs offload_after_step: true, of policy and critic; the {path.split('.')[2]}'s is false",
                repair=set_to(path, True),
            )


@check(
    "BKD-16",
    "the optimizer is offloaded during rollouts only where that means something",
    area="backend",
    rule="trainer.offload_optimizer_during_rollouts implies colocate_all: false",
    prevents="The trainer refuses it: colocated runs already offload the optimizer between updates.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-16 (#65); the trainer, utils.py@004e15f9",
)
def bkd_16(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.flag(_OFFLOAD_DURING_ROLLOUTS) and subject.flag(_COLOCATE_ALL):
        yield Finding(
            path=_OFFLOAD_DURING_ROLLOUTS,
            message="offload_optimizer_during_rollouts needs colocate_all: false; colocated runs offload the optimizer anyway",
            repair=set_to(_OFFLOAD_DURING_ROLLOUTS, False),
        )


@check(
    "BKD-36",
    "where the engines run is written down",
    area="backend",
    rule="a source document states generator.backend, and run_engines_locally: true",
    prevents="Marin refuses the experiment: it counts GPUs of local engines only, and takes no default for either.",
    inputs=("spec",),
    source="contract, typed-spec.md §1 (SkyRLSpec), case 36; Marin at build time",
)
def bkd_36(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.source_form or not isinstance(subject.get("skyrl"), dict):
        return
    if not subject.has(_BACKEND) or subject.get(_BACKEND) == "":
        yield Finding(
            path=_BACKEND,
            message="generator.backend is not stated. Marin takes no default for it",
            repair=set_to(_BACKEND, "vllm"),
        )
    if not subject.has(_LOCAL):
        yield Finding(
            path=_LOCAL,
            message="generator.run_engines_locally is not stated. Marin takes no default for it",
            repair=set_to(_LOCAL, True),
        )
    elif not subject.flag(_LOCAL):
        yield Finding(
            path=_LOCAL,
            message="generator.run_engines_locally is false: Marin places local engines only",
            repair=set_to(_LOCAL, True),
        )


CHECKS = (bkd_01, bkd_02, bkd_03, bkd_14, bkd_15, bkd_16, bkd_36)
