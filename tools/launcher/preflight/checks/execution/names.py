"""Names of the run and of its job."""

import re
from collections.abc import Iterator

from tools.launcher.graph.names import POD_NAME_LIMIT, sanitised_job_name
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import set_to, shown

_JOB_NAME = "iris.job_name"
_ATTEMPT = "run.attempt_id"
_ATTEMPT_ID = re.compile(r"[0-9a-f]{12}")
_KEPT = POD_NAME_LIMIT - 9
"""About what is left of a long name before the hash of 8 digits."""

_JOBS = ("skyrl", "evaluate")
"""Kinds of steps that run as jobs."""


@check(
    "EXE-07",
    "the job has a name that Iris takes as it is",
    area="execution",
    rule=f"job_name: not blank, no '/', no number; sanitised, at most {POD_NAME_LIMIT} characters; no two jobs of a graph sanitise "
    "to one name",
    prevents="Iris refuses the name, cuts it to an unreadable one, or takes two jobs for one.",
    inputs=("spec",),
    source="catalogue EXE-07 (#106), cases n120, 99g; Iris cuts",
)
def exe_07(subject: PreflightSubject) -> Iterator[Finding]:
    name = subject.text(_JOB_NAME)
    sanitised = sanitised_job_name(name)
    if not name.strip():
        yield Finding(
            path=_JOB_NAME,
            message=f"job_name {shown(name)} is blank",
            repair=set_to(_JOB_NAME, sanitised_job_name(_wanted_job_name(subject) or "")),
        )
    elif "/" in name:
        yield Finding(
            path=_JOB_NAME,
            message=f"job_name {shown(name)} holds a '/', with which Iris separates jobs",
            repair=set_to(_JOB_NAME, sanitised),
        )
    elif name != sanitised:
        yield Finding(
            path=_JOB_NAME,
            message=f"job_name {shown(name)} is not sanitised; Marin would call the job {shown(sanitised)}",
            repair=set_to(_JOB_NAME, sanitised),
            severity="warning",
        )
    elif name.isdecimal():
        yield Finding(
            path=_JOB_NAME,
            message=f"job_name {shown(name)} is a number: below its coordinator, Iris refuses a job that is called like the index of a task",
            repair=set_to(_JOB_NAME, f"job-{name}"),
        )
    if "/" not in name and len(sanitised) > POD_NAME_LIMIT:
        yield Finding(
            path=_JOB_NAME,
            message=f"the job name has {len(sanitised)} characters, pods and labels take {POD_NAME_LIMIT}: it will be cut to "
            f"about {shown(sanitised[:_KEPT])} and a hash",
            repair="give the experiment a shorter name",
            severity="warning",
        )
    yield from _collisions(subject)


def _collisions(subject: PreflightSubject) -> Iterator[Finding]:
    """Two jobs of one graph whose names sanitise to the same; a document alone is one job."""
    if subject.planned is None:
        return
    seen: dict[str, str] = {}
    for step in subject.planned.graph.steps:
        if step.kind not in _JOBS:
            continue
        name = sanitised_job_name(f"{step.name}-{step.version}")
        first = seen.setdefault(name, step.address)
        if first != step.address:
            yield Finding(
                path=step.address,
                message=f"{first} and {step.address} both become jobs called {shown(name)}",
                repair="rename one",
            )


def _wanted_job_name(subject: PreflightSubject) -> str | None:
    identifier, attempt = subject.get("run.id"), subject.get(_ATTEMPT)
    if not isinstance(identifier, str) or not isinstance(attempt, str):
        return None
    return sanitised_job_name(f"{identifier}-{attempt}")


@check(
    "EXE-33",
    "the job is named after its run and attempt",
    area="execution",
    rule="attempt_id is 12 hex digits; job_name is the sanitised <run.id>-<attempt_id>",
    prevents="The job of a run cannot be found by the run's name, or is found under another's.",
    inputs=("spec",),
    source="contract launch-document.md §4.2 and §4.4; nobody checks it",
    implied_by=("EXE-07",),
)
def exe_33(subject: PreflightSubject) -> Iterator[Finding]:
    attempt = subject.text(_ATTEMPT)
    if _ATTEMPT_ID.fullmatch(attempt) is None:
        yield Finding(
            path=_ATTEMPT,
            message=f"attempt_id {shown(attempt)} is not 12 hex digits; records of the attempt are called after it",
            repair="write 12 hex digits, others for every attempt",
            severity="warning",
        )
    wanted = _wanted_job_name(subject)
    if wanted is not None and subject.text(_JOB_NAME) != wanted:
        yield Finding(
            path=_JOB_NAME,
            message=f"job_name {shown(subject.get(_JOB_NAME))} is not that of run.id and attempt_id, {shown(wanted)}",
            repair=set_to(_JOB_NAME, wanted),
            severity="warning",
        )


CHECKS = (exe_07, exe_33)
