"""Environment variables of the tasks."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.execution.reading import runtime_fact
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import also, below, delete, listed, shown

_RECIPE = "skyrl.extra_env"
_TASKS = "runtime.task_env"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_IMPOSSIBLE = re.compile(r"[=\s\x00-\x1f\x7f]")


class Variable(NamedTuple):
    """One environment variable, where it is set, and how."""

    name: str
    value: Any
    paths: tuple[str, ...]
    deletion: str
    """The repair that takes it out everywhere."""


def variables(subject: PreflightSubject) -> list[Variable]:
    """Return the variables of the tasks; what the recipe and the document set to one text is one variable.

    Of a document that was built here only the recipe counts: the document repeats it.
    """
    found: dict[tuple[str, str | None], Variable] = {}
    for place in (_RECIPE,) if subject.planned is not None else (_RECIPE, _TASKS):
        content = subject.get(place)
        for name, value in content.items() if isinstance(content, dict) else ():
            path = below(place, name)
            repair = delete(path) if subject.planned is None else f"delete extra_env.{name} from the recipe"
            key = (str(name), None if value is None else as_text(value))
            first = found.get(key)
            if first is None:
                found[key] = Variable(str(name), value, (path,), repair)
            else:
                found[key] = first._replace(paths=(*first.paths, path), deletion=also(first.deletion, repair))
    return list(found.values())


def set_variables(subject: PreflightSubject) -> list[Variable]:
    """Return the variables that reach a task: the launcher drops null (runtime-facts.md §12)."""
    return [variable for variable in variables(subject) if variable.value is not None]


def as_text(value: Any) -> str:
    """What the launcher makes of a value (runtime-facts.md §12); of what is no scalar, its kind."""
    if isinstance(value, bool):
        return str(int(value))
    return shown(value) if isinstance(value, list | dict | int | float) else str(value)


@check(
    "EXE-13",
    "the recipe does not set the launcher's own variables",
    area="execution",
    rule="extra_env is a mapping; no name begins with SKYRL_",
    prevents="The launcher refuses it, but only when it launches.",
    inputs=("spec", "runtime"),
    source="catalogue EXE-13 (#112), case n187; the launcher, at launch only",
)
def exe_13(subject: PreflightSubject) -> Iterator[Finding]:
    content = subject.get(_RECIPE)
    if content is not None and not isinstance(content, dict):
        yield Finding(
            path=_RECIPE,
            message=f"extra_env is {shown(content)}, not a mapping of names to values",
            repair=delete(_RECIPE),
        )
    prefixes = runtime_fact(subject, "reserved_variables").refused_prefixes
    for variable in set_variables(subject):
        if variable.name.startswith(prefixes):
            yield Finding(
                path=variable.paths[0],
                message=f"{shown(variable.name)}: names that begin with {listed(prefixes)} are reserved",
                repair=variable.deletion,
            )


@check(
    "EXE-23",
    "the recipe leaves the pod's own variables alone",
    area="execution",
    rule="no AWS_*, no R2_*, no GLOO_SOCKET_IFNAME",
    prevents="The pod's credentials are overwritten, or every node looks for the interface of one.",
    inputs=("spec", "runtime"),
    source="catalogue EXE-23 (new), contract runtime-facts.md §12; nobody checks it",
)
def exe_23(subject: PreflightSubject) -> Iterator[Finding]:
    reserved = runtime_fact(subject, "reserved_variables")
    for variable in set_variables(subject):
        if variable.name.startswith(reserved.pod_credential_prefixes):
            why = "it would replace what the pod has for its storage"
        elif variable.name in reserved.differs_by_node:
            why = "it takes the name of one interface, which differs from node to node"
        else:
            continue
        yield Finding(
            path=variable.paths[0],
            message=f"{shown(variable.name)} must not be set for the whole job: {why}",
            repair=variable.deletion,
        )


@check(
    "EXE-36",
    "no variable is set in vain",
    area="execution",
    rule="no name that the launcher sets itself, such as WANDB_ENTITY",
    prevents="The value is replaced, yet it changes the fingerprint.",
    inputs=("spec", "runtime"),
    source="contract runtime-facts.md §12 (always set); nobody checks it",
)
def exe_36(subject: PreflightSubject) -> Iterator[Finding]:
    reserved = runtime_fact(subject, "reserved_variables")
    for variable in set_variables(subject):
        if variable.name in reserved.set_by_launcher:
            instead = "; write iris.wandb_entity" if variable.name == "WANDB_ENTITY" else ""
            yield Finding(
                path=variable.paths[0],
                message=f"{variable.name} is always set by the launcher, which replaces this value{instead}",
                repair=variable.deletion,
                severity="warning",
            )


@check(
    "EXE-35",
    "variables have a name and a text",
    area="execution",
    rule="a name has letters, digits and '_' only, and no digit first; a value is one text, without NUL",
    prevents="No process can be started with such a variable, or it holds the notation of a list.",
    inputs=("spec",),
    source="POSIX, the environment of a process; nobody checks it",
)
def exe_35(subject: PreflightSubject) -> Iterator[Finding]:
    for variable in set_variables(subject):
        name, value = variable.name, variable.value
        if not name or _IMPOSSIBLE.search(name):
            yield Finding(
                path=variable.paths[0],
                message=f"{shown(name)} cannot be the name of a variable: it is empty, or holds '=', a space or a control "
                "character",
                repair=variable.deletion,
            )
        elif _NAME.fullmatch(name) is None:
            yield Finding(
                path=variable.paths[0],
                message=f"{shown(name)} is not a usual name of a variable: letters, digits and '_', no digit first",
                repair=variable.deletion,
                severity="warning",
            )
        if isinstance(value, str) and "\0" in value:
            yield Finding(
                path=variable.paths[0],
                message=f"the value of {shown(name)} holds a NUL character, at which the system ends it",
                repair=variable.deletion,
            )
        elif isinstance(value, list | dict):
            yield Finding(
                path=variable.paths[0],
                message=f"{shown(name)} is {shown(value)}; a task would get its Python notation as text",
                repair=variable.deletion,
                severity="warning",
            )


@check(
    "EXE-34",
    "recipe and tasks have the same environment",
    area="execution",
    rule="source form: task_env == extra_env as text, null left out",
    prevents="Tasks miss a variable that the recipe sets, or have one that it does not.",
    inputs=("spec",),
    source="contract launch-document.md §4.3: task_env equals the recipe's extra_env; nobody checks it",
)
def exe_34(subject: PreflightSubject) -> Iterator[Finding]:
    contents = [subject.get(place) or {} for place in (_RECIPE, _TASKS)]
    if (
        subject.planned is not None
        or not subject.source_form
        or not isinstance(subject.get("skyrl"), dict)
        or not isinstance(subject.get("runtime"), dict)
        or not all(isinstance(c, dict) for c in contents)
    ):
        return
    recipe, tasks = (
        {str(name): as_text(value) for name, value in content.items() if value is not None}
        for content in contents
    )
    differing = sorted(name for name in {*recipe, *tasks} if recipe.get(name) != tasks.get(name))
    if differing:
        yield Finding(
            path=_TASKS,
            message=f"task_env and skyrl.extra_env differ in {listed(shown(name) for name in differing)}; Marin renders one "
            "from the other",
            repair="write the same variables in both",
            severity="warning",
        )


CHECKS = (exe_13, exe_23, exe_34, exe_35, exe_36)
