"""What a document states about its own form, against what the launcher derives."""

from collections.abc import Callable, Iterator
from typing import Any

from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import delete, listed, set_to, shown

_TYPE = "runtime.training_type"
_MODULE = "runtime.entrypoint"
_COLOCATED = "skyrl.trainer.placement.colocate_all"


@check(
    "DOC-07",
    "a stated training type is the entry point's",
    area="document",
    rule="training_type is what follows from the entry point: async for fully_async and for terminal_bench with "
    "colocate_all false, null for generation, else sync",
    prevents="A resolved document is refused; of a source document the statement is overwritten and misleads its reader.",
    inputs=("spec", "runtime"),
    source="contract launch-document.md §4.3, case d21; the launcher",
)
def doc_07(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.has(_TYPE):
        return
    stated = subject.get(_TYPE)
    entry = subject.manifest().entrypoints.get(subject.entrypoint)
    if entry is None:
        return
    follows: str | None = entry.training_type
    if entry.async_unless_colocated and not subject.flag(_COLOCATED):
        follows = "async"
    if stated == follows:
        return
    source = subject.source_form
    yield Finding(
        path=_TYPE,
        message=f"training_type is {shown(stated)}, from entry point {subject.entrypoint} follows {shown(follows)}"
        + ("; the launcher overwrites it" if source else ""),
        repair=delete(_TYPE) if source or follows is None else set_to(_TYPE, follows),
        severity="warning" if source else "error",
    )


@check(
    "DOC-08",
    "the module of the training program is registered",
    area="document",
    rule="runtime.entrypoint is empty in source form, and in resolved form a module of the runtime's registry",
    prevents="A resolved document is refused for its module; in a source document the launcher overwrites it.",
    inputs=("spec", "runtime"),
    source="contract launch-document.md §2; the launcher",
)
def doc_08(subject: PreflightSubject) -> Iterator[Finding]:
    module = subject.get(_MODULE)
    if not isinstance(module, str) or not module:
        return
    entrypoints = subject.manifest().entrypoints
    if subject.source_form:
        yield Finding(
            path=_MODULE,
            message=f"a source document names the module {shown(module)}; the launcher overwrites it from skyrl.entrypoint",
            repair=f"set {_MODULE}=''",
            severity="warning",
        )
    elif module != subject.manifest().export_entrypoint and module not in [
        entry.module for entry in entrypoints.values()
    ]:
        known = [entry.module for entry in entrypoints.values()]
        yield Finding(
            path=_MODULE,
            message=f"module {shown(module)} is not registered. Registered: {listed(known)}",
            repair=set_to(_MODULE, known[0], *known[1:]),
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


CHECKS = (doc_07, doc_08, doc_09)
