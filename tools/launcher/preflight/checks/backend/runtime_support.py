"""What the pinned runtime and its images can do: facts of the runtime manifest against the launch."""

import re
from collections.abc import Callable, Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.catalog.runtime_manifest import RuntimeFeature, RuntimeManifest, TaskImage
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.backend.roles import (
    TRAINED_ROLES,
    active_roles,
    fsdp_config,
    megatron_config,
    megatron_roles,
    word,
)
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.memory import known_fact
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import listed, set_to, shown

_COMMIT = "runtime.launcher_commit"
_PROFILE = "runtime.profile"
_VARIANT = "iris.allocation.gpu_variant"
_MODEL = "inputs.model"
_COLLECTIVE = "skyrl.trainer.distributed.worker_collective_timeout_seconds"
_ANOTHER = "use a runtime that has it, or another model"


def _uses_colocated_tp(subject: PreflightSubject) -> bool:
    geometry = Geometry.of(subject)
    return geometry.colocate_all and geometry.engines_local and geometry.engine_tp > 1


def _uses_single_engine_dp(subject: PreflightSubject) -> bool:
    geometry = Geometry.of(subject)
    return geometry.engines == 1 and geometry.engine_dp > 1


def _uses_router_replay(subject: PreflightSubject) -> bool:
    return any(
        subject.get(f"{config(role)}.moe_router_replay") is True
        for role in TRAINED_ROLES
        for config in (fsdp_config, megatron_config)
    )


_FEATURES: dict[RuntimeFeature, tuple[str, Callable[[PreflightSubject], bool]]] = {
    "colocated_tensor_parallel": (
        "skyrl.generator.inference_engine_tensor_parallel_size",
        _uses_colocated_tp,
    ),
    "decode_context_parallel": (
        "skyrl.generator.inference_engine_decode_context_parallel_size",
        lambda subject: subject.positive("skyrl.generator.inference_engine_decode_context_parallel_size") > 1,
    ),
    "engine_pipeline_parallel": (
        "skyrl.generator.inference_engine_pipeline_parallel_size",
        lambda subject: Geometry.of(subject).engine_pp > 1,
    ),
    "lora": (
        "skyrl.trainer.policy.model.lora.rank",
        lambda subject: subject.integer("skyrl.trainer.policy.model.lora.rank") > 0,
    ),
    "router_replay": ("skyrl.trainer.policy", _uses_router_replay),
    "single_engine_data_parallel": (
        "skyrl.generator.inference_engine_data_parallel_size",
        _uses_single_engine_dp,
    ),
    "speculative_decoding": (
        "skyrl.generator.speculative_decoding",
        lambda subject: bool(subject.get("skyrl.generator.speculative_decoding")),
    ),
}
"""Feature -> (where it is asked for, whether it is)."""


@check(
    "BKD-20",
    "the runtime supports the model and what is asked of it",
    area="backend",
    rule="launcher_commit is the manifest's commit; the model's architecture is among those that it trains, and whose weights "
    "it sends; context and sequence parallelism only for architectures that have it; no feature known as missing; "
    "torch is the version that its vLLM needs",
    prevents="A KeyError at the first weight sync, a missing module, or a crash in a kernel.",
    inputs=("spec", "model", "runtime"),
    source="catalogue BKD-20 (#69), failure rows 4, 5 (marin#7052, #6655), 23, 25, 41, 47; the launcher for the commit, "
    "nobody for the model",
)
def bkd_20(subject: PreflightSubject) -> Iterator[Finding]:
    manifest = subject.manifest()
    yield from _other_commit(subject, manifest)
    yield from _inconsistent(manifest)
    for feature in manifest.unsupported or ():
        path, is_used = _FEATURES[feature]
        if is_used(subject):
            yield Finding(
                path=path,
                message=f"runtime {manifest.commit[:8]} does not support {feature}",
                repair="use a runtime that has it, or change the setting",
            )
    yield from _unsupported_model(subject, manifest)
    if manifest.unsupported is None:
        raise MissingFact("unsupported features in the runtime manifest")


def _other_commit(subject: PreflightSubject, manifest: RuntimeManifest) -> Iterator[Finding]:
    commit = subject.text(_COMMIT)
    if commit == manifest.commit:
        return
    whole = re.fullmatch(r"[0-9a-f]{40}", commit)
    # Of a document from elsewhere its own commit may be right, and only the facts be of another one.
    certain = whole is None or subject.planned is not None
    yield Finding(
        path=_COMMIT,
        message=f"launcher_commit {shown(commit)} is not the runtime {manifest.commit} of the manifest"
        + (", by which this document is judged: its own runtime may differ" if not certain else ""),
        repair=set_to(_COMMIT, manifest.commit),
        severity="error" if certain else "warning",
    )


def _inconsistent(manifest: RuntimeManifest) -> Iterator[Finding]:
    torch, needed = manifest.torch, manifest.torch_required_by_vllm
    if torch is not None and needed is not None and torch.partition("+")[0] != needed.partition("+")[0]:
        yield Finding(
            path=_COMMIT,
            message=f"runtime {manifest.commit[:8]} has torch {torch}, its vLLM needs {needed}: engines do not start",
            repair="use a runtime whose versions match",
        )


def _unsupported_model(subject: PreflightSubject, manifest: RuntimeManifest) -> Iterator[Finding]:
    split = _context_parallel(subject)
    sequences = _sequence_parallel(subject, manifest)
    asked = [
        ("train", manifest.architectures),
        ("send the weights of", manifest.weight_sync_architectures),
        *(
            [(f"split the context (size {split}) of", manifest.context_parallel_architectures)]
            if split > 1
            else []
        ),
    ]
    excluded = manifest.no_sequence_parallel if sequences else None
    if excluded or any(known is not None for _, known in asked):
        architecture = known_fact(subject, "architecture")
        for what, known in asked:
            if known is not None and architecture not in known:
                yield Finding(
                    path=_MODEL,
                    message=f"runtime {manifest.commit[:8]} does not {what} architecture {word(architecture)}. "
                    f"Supported: {listed(known) or 'none'}",
                    repair=_ANOTHER,
                )
        if architecture in (excluded or ()):
            yield Finding(
                path=_MODEL,
                message=f"runtime {manifest.commit[:8]} has no sequence parallelism for architecture {word(architecture)}, "
                f"and {sequences} switches it on",
                repair="use tensor and sequence parallel size 1, a runtime that has it, or another model",
            )
    if manifest.architectures is None:
        raise MissingFact("architectures in the runtime manifest")
    if manifest.weight_sync_architectures is None:
        raise MissingFact("weight_sync_architectures in the runtime manifest")
    if split > 1 and manifest.context_parallel_architectures is None:
        raise MissingFact("context_parallel_architectures in the runtime manifest")
    if sequences and manifest.no_sequence_parallel is None:
        raise MissingFact("no_sequence_parallel in the runtime manifest")


def _context_parallel(subject: PreflightSubject) -> int:
    """The largest context-parallel size that the strategy reads."""
    geometry = Geometry.of(subject)
    if geometry.strategy == "megatron":
        return max(role.cp for role in megatron_roles(subject))
    return max(
        subject.positive(f"{fsdp_config(role)}.context_parallel_size") for role, _ in active_roles(geometry)
    )


def _sequence_parallel(subject: PreflightSubject, manifest: RuntimeManifest) -> str:
    """What switches sequence parallelism on, "" if nothing does."""
    geometry = Geometry.of(subject)
    if geometry.strategy != "megatron":
        sizes = {
            role: subject.positive(f"skyrl.trainer.{role}.sequence_parallel_size")
            for role, _ in active_roles(geometry)
        }
        return next((f"trainer.{role}.sequence_parallel_size={n}" for role, n in sizes.items() if n > 1), "")
    for role in megatron_roles(subject):
        declared = subject.get(f"{megatron_config(role.name)}.transformer_config_kwargs.sequence_parallel")
        automatic = declared is None and manifest.megatron_sequence_parallel_with_tp
        if role.tp > 1 and (declared is True or automatic):
            return f"{role.name} tp={role.tp}" + (" with sequence_parallel: true" if declared else "")
    return ""


@check(
    "BKD-21",
    "an image serves the GPU",
    area="backend",
    rule="some image of the profile has the node's processor, kernels or a compiler for the GPU's compute capability, and a "
    "CUDA compiler where libraries build kernels at run time",
    prevents='"no kernel image", or a failed compilation after the weights were loaded.',
    inputs=("spec", "cluster", "runtime"),
    source="catalogue BKD-21 (#70), failure rows 1, 2 (marin#7883, #9102), 26 (SkyRL#1982), 56 (vllm#20748); nobody for "
    "the task image",
)
def bkd_21(subject: PreflightSubject) -> Iterator[Finding]:
    images = _images(subject)
    variant = subject.get(_VARIANT)
    arch, sm = _hardware(subject, "arch"), _hardware(subject, "sm")
    problems = [_image_problem(image, arch, sm) for image in images]
    if not images or not all(problems):
        if arch is None or sm is None:
            raise MissingFact("a cluster card with arch and sm")
        return
    gpu = word(variant) if isinstance(variant, str) else "the GPU"
    yield Finding(
        path=_VARIANT,
        message=f"no image serves {gpu} (SM {sm or 'unknown'} on {arch or 'an unknown processor'}): "
        + "; ".join(problem for problem in problems if problem),
        repair="use a runtime with an image built for it, or another cluster",
    )


def _images(subject: PreflightSubject) -> list[TaskImage]:
    """The images that may run the document's profile. Raises MissingFact."""
    images = subject.manifest().images
    if images is None:
        raise MissingFact("images in the runtime manifest")
    profile = subject.text(_PROFILE)
    return [image for image in images if image.profile in (None, profile)]


def _hardware(subject: PreflightSubject, name: str) -> str | None:
    """A fact of the GPU: the cluster card's, else what is generally known of the variant."""
    card = getattr(subject.cluster, name, None)
    variant = subject.get(_VARIANT)
    general = subject.manifest().gpu_hardware.get(variant) if isinstance(variant, str) else None
    found: str | None = card or getattr(general, name, None)
    return found


def _image_problem(image: TaskImage, arch: str | None, sm: str | None) -> str:
    """Why the image does not serve the GPU, "" if nothing known speaks against it."""
    if image.compiles_at_run_time and image.cuda_compiler is False:
        return f"the {image.arch} image has no CUDA compiler, {listed(image.compiles_at_run_time)} needs one at run time"
    if arch is not None and image.arch != arch:
        return f"the {image.arch} image does not run on {arch}"
    if sm is None:
        return ""
    built = image.wheel_sm is not None and any(_runs_on(wheel, sm) for wheel in image.wheel_sm)
    cuda = f" of CUDA {image.cuda}" if image.cuda else ""
    if image.wheel_sm is not None and not built:
        return f"the {image.arch} image has kernels for SM {listed(image.wheel_sm)}, not for {sm}"
    compiles = bool(image.compiles_at_run_time) or image.wheel_sm is None
    if compiles and image.compilable_sm is not None and sm not in image.compilable_sm:
        return f"the compiler{cuda} in the {image.arch} image builds for SM {listed(image.compilable_sm)}, not for {sm}"
    return ""


def _runs_on(built_for: str, sm: str) -> bool:
    """CUDA binaries run on the same major version from their minor version on; "9.0a" on 9.0 alone."""
    kernel, gpu = (re.fullmatch(r"(\d{1,3})\.(\d{1,3})([a-z]?)", text) for text in (built_for, sm))
    if kernel is None or gpu is None:
        return built_for == sm
    if kernel[3]:
        return (kernel[1], kernel[2]) == (gpu[1], gpu[2])
    return kernel[1] == gpu[1] and int(kernel[2]) <= int(gpu[2])


@check(
    "BKD-22",
    "the image has the profile's libraries",
    area="backend",
    rule="every module that the bootstrap imports for the profile, and for training, is in the image",
    prevents="An import error in the bootstrap.",
    inputs=("spec", "runtime"),
    source="catalogue BKD-22 (#71), failure row 5 (marin#6655); the launcher's bootstrap, after allocation",
)
def bkd_22(subject: PreflightSubject) -> Iterator[Finding]:
    manifest = subject.manifest()
    profile = subject.text(_PROFILE)
    imports = (manifest.profile_imports or {}).get(profile)
    if imports is None:
        raise MissingFact(f"profile_imports of {shown(profile)} in the runtime manifest")
    trains = manifest.entrypoints.get(subject.entrypoint)
    if trains is None or trains.training_type is not None:
        imports = (*imports, *manifest.training_imports)
    known = [image for image in _images(subject) if image.modules is not None]
    if not known:
        raise MissingFact(f"modules of an image of profile {shown(profile)} in the runtime manifest")
    lacking = [[module for module in imports if module not in (image.modules or ())] for image in known]
    if all(lacking):
        yield Finding(
            path=_PROFILE,
            message=f"image of profile {profile} lacks {listed(lacking[0])}",
            repair="use a runtime whose image has the modules",
        )


@check(
    "BKD-23",
    "all nodes have the same Python and Ray",
    area="backend",
    rule="python and ray have one version over all kinds of nodes, to the patch",
    prevents="Ray compares exact versions: the gang never joins.",
    inputs=("runtime",),
    source="catalogue BKD-23 (#72), failure row 10 (MarinSkyRL debug log); the launcher, after allocation",
)
def bkd_23(subject: PreflightSubject) -> Iterator[Finding]:
    nodes = subject.manifest().node_versions
    if nodes is None:
        raise MissingFact("node_versions in the runtime manifest")
    for program in ("python", "ray"):
        versions = {kind: getattr(node, program) for kind, node in nodes.items()}
        if len(set(versions.values())) > 1:
            yield Finding(
                path=_COMMIT,
                message=f"{program} {' and '.join(f'{version} on {kind}' for kind, version in versions.items())}. "
                "Ray wants one patch version",
                repair="use a runtime whose nodes have one version",
            )


@check(
    "BKD-30",
    "the runtime contains the fixes that the experiment relies on",
    area="backend",
    rule="every id in required_fixes of the spec is among the fixes of the runtime manifest",
    prevents="The experiment runs into a fault that it was written around.",
    inputs=("spec", "runtime"),
    source="what is reviewed before large launches: declared backend fixes; nobody checks it",
)
def bkd_30(subject: PreflightSubject) -> Iterator[Finding]:
    required = subject.planned.required_fixes if subject.planned is not None else ()
    if not required:
        return
    manifest = subject.manifest()
    if manifest.fixes is None:
        raise MissingFact("fixes in the runtime manifest")
    contained = {fix.id for fix in manifest.fixes}
    for fix in dict.fromkeys(required):
        if fix not in contained:
            yield Finding(
                path=_COMMIT,
                message=f"required fix {shown(fix)} is not among those of runtime {manifest.commit[:8]}. "
                f"It contains: {listed(sorted(contained)) or 'none that are listed'}",
                repair=f"use a runtime that contains it, or drop {shown(fix)} from required_fixes",
            )


@check(
    "BKD-34",
    "collectives wait until the engines have started",
    area="backend",
    rule="trainer.distributed.worker_collective_timeout_seconds > the longest known engine start",
    prevents="An all-reduce of the trainer runs into its timeout while engines still load.",
    inputs=("spec", "runtime"),
    source="failure row 4 (marin#7052), its note; nobody checks it",
)
def bkd_34(subject: PreflightSubject) -> Iterator[Finding]:
    start = subject.manifest().engine_start_seconds
    if start is None:
        raise MissingFact("engine_start_seconds in the runtime manifest")
    timeout = subject.positive(_COLLECTIVE)
    if timeout <= start:
        yield Finding(
            path=_COLLECTIVE,
            message=f"collectives time out after {timeout} s, engines of this runtime were seen to take {start} s to start",
            repair=set_to(_COLLECTIVE, 2 * start),
            severity="warning",
        )


CHECKS = (bkd_20, bkd_21, bkd_22, bkd_23, bkd_30, bkd_34)
