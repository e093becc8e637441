"""The training program and its environment."""

from collections.abc import Iterator
from difflib import get_close_matches

from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import listed, set_to, shown

_ENTRYPOINT = "skyrl.entrypoint"
_ENVIRONMENT = "skyrl.environment.env_class"

_WITHOUT_ENVIRONMENT = ("mini_swe", "terminal_bench", "terminal_bench_generate")
"""Entry points whose tasks bring their own environment."""


def _known_entrypoint(subject: PreflightSubject) -> bool:
    """Whether the recipe names a registered program; DOC-08 judges the module of a resolved document."""
    value = subject.get(_ENTRYPOINT)
    return value is None or (isinstance(value, str) and value in subject.manifest().entrypoints)


def _has_environment(subject: PreflightSubject) -> bool:
    """Whether the program scores answers with `env_class`. Raises like `PreflightSubject.value`."""
    if subject.get("run.mode") == "checkpoint_export":
        return False
    return subject.entrypoint not in _WITHOUT_ENVIRONMENT


@check(
    "OBJ-03",
    "entry point and environment are registered",
    area="objective",
    rule="skyrl.entrypoint is a registered name; env_class is one of the runtime's or of the cluster's rehearsal",
    prevents="The launcher refuses the document; an unknown environment is a KeyError at the first rollout.",
    inputs=("spec", "runtime", "cluster"),
    source="catalogue OBJ-03 (#92), failure row 13, contract runtime-facts.md §1 and §8; the launcher",
)
def obj_03(subject: PreflightSubject) -> Iterator[Finding]:
    manifest = subject.manifest()
    if not _known_entrypoint(subject):
        value, names = subject.get(_ENTRYPOINT), tuple(manifest.entrypoints)
        near = get_close_matches(value, names, n=1) if isinstance(value, str) else []
        module = " A Python module is not accepted" if isinstance(value, str) and "." in value else ""
        yield Finding(
            path=_ENTRYPOINT,
            message=f"entrypoint {shown(value)} is not registered. Known: {listed(names)}.{module}",
            repair=set_to(_ENTRYPOINT, *(near or names)),
        )
        return
    if not _has_environment(subject):
        return
    environment = subject.text(_ENVIRONMENT)
    local = subject.cluster.env_classes if subject.cluster is not None else ()
    if environment in manifest.env_classes or environment in local:
        return
    known = (*manifest.env_classes, *local)
    complete = manifest.env_classes_complete
    yield Finding(
        path=_ENVIRONMENT,
        message=f"unknown env_class {shown(environment)}. {'Known' if complete else 'Known, of neighbouring commits'}: "
        f"{listed(known)}",
        repair=set_to(_ENVIRONMENT, *(get_close_matches(environment, known, n=1) or known)),
        severity="error" if complete else "warning",
    )


@check(
    "OBJ-24",
    "the environment suits the data",
    area="objective",
    rule="env_class is that of the dataset card, where the card names one",
    prevents="Answers are scored by the rules of another task: every reward is zero.",
    inputs=("spec", "dataset", "runtime"),
    source="derived from the dataset card; nobody checks it",
)
def obj_24(subject: PreflightSubject) -> Iterator[Finding]:
    if not _known_entrypoint(subject) or not _has_environment(subject):
        return
    of_data = subject.train_fact("env_class")
    environment = subject.text(_ENVIRONMENT)
    if of_data is not None and environment != of_data:
        yield Finding(
            path=_ENVIRONMENT,
            message=f"env_class is {shown(environment)}, the dataset card says {shown(of_data)}",
            repair=set_to(_ENVIRONMENT, of_data),
            severity="warning",
        )


CHECKS = (obj_03, obj_24)
