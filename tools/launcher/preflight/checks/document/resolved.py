"""What a document states about its own form, against what the launcher derives."""

from collections.abc import Callable, Iterator
from typing import Any

from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.artifacts.sources import DATA_KINDS
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import delete, listed, set_to, shown

_TYPE = "runtime.training_type"
_MODULE = "runtime.entrypoint"
_MODE = "run.mode"
_EXPORT = "checkpoint_export"
_KIND = "inputs.data_kind"
_RECIPE_KIND = "skyrl.data.kind"
_DEFAULT_KIND = DATA_KINDS[0]
"""Of `skyrl.data.kind` (contract, launch-document.md §4.9)."""
_COLOCATED = "skyrl.trainer.placement.colocate_all"
_SWITCHES = (
    *("trainer.placement.colocate_all", "trainer.algorithm.use_kl_loss"),
    "generator.run_engines_locally",
)
_ROLE_PLAN = (
    *_SWITCHES,
    *("trainer.placement.policy_num_nodes", "trainer.placement.policy_num_gpus_per_node"),
    *("trainer.train_batch_size", "trainer.policy_mini_batch_size", "trainer.micro_train_batch_size_per_gpu"),
    *("generator.backend", "generator.n_samples_per_prompt", "generator.num_inference_engines"),
    "generator.inference_engine_tensor_parallel_size",
)
"""What the launcher reads without a default (MarinSkyRL cloud/iris/role_plan.py@00ee4e42)."""


@check(
    "DOC-07",
    "a stated training type is the entry point's",
    area="document",
    rule="training_type is what follows from the entry point: async for fully_async and for terminal_bench with "
    "colocate_all false, null for generation and for the export of a checkpoint, else sync",
    prevents="A resolved document is refused; of a source document the statement is overwritten and misleads its reader.",
    inputs=("spec", "runtime"),
    source="contract launch-document.md §4.3, case d21; the launcher",
)
def doc_07(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.has(_TYPE):
        return
    stated = subject.get(_TYPE)
    manifest, source = subject.manifest(), subject.source_form
    follows: str | None = None
    program = manifest.export_entrypoint
    if source or program is None or subject.get(_MODULE) != program:
        program = subject.entrypoint
        entry = manifest.entrypoints.get(program)
        if entry is None:
            return
        apart = entry.async_unless_colocated and not subject.flag(_COLOCATED)
        follows = "async" if apart else entry.training_type
    if stated == follows:
        return
    yield Finding(
        path=_TYPE,
        message=f"training_type is {shown(stated)}, from entry point {program} follows {shown(follows)}"
        + ("; the launcher overwrites it" if source else ""),
        repair=delete(_TYPE) if source or follows is None else set_to(_TYPE, follows),
        severity="warning" if source else "error",
    )


@check(
    "DOC-08",
    "the module of the training program is registered",
    area="document",
    rule="runtime.entrypoint is empty in source form, and in resolved form a module of the runtime's registry; the module "
    "that exports checkpoints belongs to run.mode checkpoint_export",
    prevents="A resolved document is refused for its module; in a source document the launcher overwrites it.",
    inputs=("spec", "runtime"),
    source="contract launch-document.md §2, runtime-facts.md §1; the launcher",
    implied_by=("DOC-01",),
)
def doc_08(subject: PreflightSubject) -> Iterator[Finding]:
    module = subject.get(_MODULE)
    if not isinstance(module, str | None) or (subject.source_form and not module):
        return
    manifest = subject.manifest()
    export = manifest.export_entrypoint
    known = [entry.module for entry in manifest.entrypoints.values()]
    exports = subject.get(_MODE) == _EXPORT
    fitting = [export] if exports and export is not None else known
    if subject.source_form:
        yield Finding(
            path=_MODULE,
            message=f"a source document names the module {shown(module)}; the launcher overwrites it from skyrl.entrypoint",
            repair=f"set {_MODULE}=''",
            severity="warning",
        )
    elif not module:
        yield Finding(
            path=_MODULE,
            message="a resolved document names its module, and this one has none. It has the values that only "
            f"composition writes, and no skyrl.context_budget. Modules: {listed(fitting)}",
            repair=set_to(_MODULE, *fitting),
        )
    elif module != export and module not in known:
        yield Finding(
            path=_MODULE,
            message=f"module {shown(module)} is not registered. Registered: {listed(known)}",
            repair=set_to(_MODULE, *fitting),
        )
    elif module == export and not exports:
        yield Finding(
            path=_MODULE,
            message=f"module {shown(module)} exports a checkpoint and is not registered for training, but {_MODE} is "
            f"{shown(subject.get(_MODE))}. Registered: {listed(known)}",
            repair=set_to(_MODULE, *known),
        )
    elif exports and export is not None and module != export:
        yield Finding(
            path=_MODULE,
            message=f"{_MODE} is {_EXPORT}, which module {shown(export)} does; the document names {shown(module)}",
            repair=set_to(_MODULE, export),
            severity="warning",
        )


def _same(value: Any) -> Any:
    return value


def _last_part(value: Any) -> Any:
    return value.rstrip("/").rpartition("/")[2] if isinstance(value, str) else value


_WRITTEN: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "trainer.export_path": ("artifacts.export_root", _same),
    "trainer.ckpt_path": ("artifacts.checkpoint_root", _same),
    "trainer.max_ckpts_to_keep": ("artifacts.resume_checkpoint_count", _same),
    "trainer.seed": ("run.seed", _same),
    "trainer.export_hf_artifact": ("run.export_hf", _same),
    "trainer.policy.model.path": ("inputs.model.local_path", _same),
    "trainer.policy.model.revision": ("inputs.model.identity", _same),
    "generator.engine_init_kwargs.served_model_name": ("inputs.model.local_path", _last_part),
}
"""Path below skyrl -> where composition takes it from, and how (contract, launch-document.md §2)."""


@check(
    "DOC-09",
    "a resolved document agrees with itself",
    area="document",
    rule="below skyrl, a value that composition writes equals the one it is written from",
    prevents="The run has another seed, model or checkpoint folder than the sections say.",
    inputs=("spec",),
    source="contract launch-document.md §2, §4.2; the launcher for the seed",
)
def doc_09(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.source_form:
        return
    for path, (origin, written_as) in _WRITTEN.items():
        below_skyrl = f"skyrl.{path}"
        if not subject.has(below_skyrl) or not subject.has(origin):
            continue
        value, wanted = subject.get(below_skyrl), written_as(subject.get(origin))
        if type(value) is not type(wanted) or value != wanted:
            yield Finding(
                path=below_skyrl,
                message=f"{below_skyrl} is {shown(value)}, from {origin} follows {shown(wanted)}",
                repair=set_to(below_skyrl, wanted),
                severity="error" if path == "trainer.seed" else "warning",
            )


@check(
    "DOC-12",
    "a resolved document has the whole tree",
    area="document",
    rule="in resolved form, skyrl has every section of the base configuration, and in them every value of the role plan",
    prevents="Nobody composes a resolved document again: launcher or trainer fails at the first key that is missing.",
    inputs=("spec", "runtime"),
    source="contract launch-document.md §2, MarinSkyRL cloud/iris/role_plan.py@00ee4e42; the launcher, the trainer late",
)
def doc_12(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.source_form or not isinstance(subject.get("skyrl"), dict):
        return
    keys = subject.manifest().recipe_keys
    sections = dict.fromkeys(path.partition(".")[0] for path, key in keys.items() if key.owner != "dropped")
    missing = [name for name in sections if not subject.has(f"skyrl.{name}")]
    if missing:
        yield Finding(
            path="skyrl",
            message=f"a resolved document has the full tree; skyrl lacks {listed(missing)}. A source document has "
            "skyrl.context_budget",
            repair=f"write {listed(f'skyrl.{name}' for name in missing)} as the launcher resolved it, or give the source "
            "document",
        )
    for path in _ROLE_PLAN:
        section, value = path.split(".")[0], subject.get(f"skyrl.{path}")
        absent = value is None and (path not in _SWITCHES or not subject.declares(f"skyrl.{path}"))
        if absent and isinstance(subject.get(f"skyrl.{section}"), dict):
            yield Finding(
                path=f"skyrl.{path}",
                message=f"a resolved document has skyrl.{path}, from which the launcher derives the roles; it is "
                f"{'null' if subject.declares(f'skyrl.{path}') else 'missing'}",
                repair=f"write skyrl.{path} as the launcher resolved it",
            )


@check(
    "DOC-13",
    "the stated kind of data is the recipe's",
    area="document",
    rule="in source form, inputs.data_kind equals skyrl.data.kind, which is tasks where it is left out",
    prevents="The launcher overwrites the one with the other, and the data is read as what it is not.",
    inputs=("spec",),
    source="contract launch-document.md §2, §4.8; the launcher overwrites it",
)
def doc_13(subject: PreflightSubject) -> Iterator[Finding]:
    stated, kind = subject.get(_KIND), subject.get(_RECIPE_KIND)
    sections = (subject.get("skyrl"), subject.get("skyrl.data") or {})
    if not subject.source_form or not all(isinstance(section, dict) for section in sections):
        return
    follows = _DEFAULT_KIND if kind is None else kind
    known = all(isinstance(each, str) and each in DATA_KINDS for each in (stated, follows))
    if not known or stated == follows:  # ART-14 names the kinds.
        return
    why = "which is left out and defaults to" if kind is None else "which is"
    yield Finding(
        path=_KIND,
        message=f"{_KIND} is {shown(stated)}; the launcher overwrites it from {_RECIPE_KIND}, {why} {shown(follows)}",
        repair=set_to(_RECIPE_KIND, stated) if kind is None else set_to(_KIND, follows),
        severity="warning",
    )


CHECKS = (doc_07, doc_08, doc_09, doc_12, doc_13)
