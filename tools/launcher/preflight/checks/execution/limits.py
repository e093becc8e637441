"""Retries and time limits."""

from collections.abc import Iterator

from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.execution.reading import integer, integers, rl_steps
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import MAX_COUNT, PreflightSubject
from tools.launcher.preflight.wording import set_to, shown

_SECONDS_PER_HOUR = 3600


@check(
    "EXE-19",
    "the coordinator outlives the job",
    area="execution",
    rule="0 < timeout <= coordinator_timeout_hours * 3600, or timeout 0",
    prevents="The coordinator ends first, and the job is orphaned or killed.",
    inputs=("spec",),
    source="catalogue EXE-19 (new); nobody checks it",
)
def exe_19(subject: PreflightSubject) -> Iterator[Finding]:
    timeout = integer(subject, "iris.timeout") or 0
    for _, payload in rl_steps(subject):
        hours = payload.execution.coordinator_timeout_hours
        if 0 < hours <= MAX_COUNT and timeout > hours * _SECONDS_PER_HOUR:
            yield Finding(
                path="iris.timeout",
                message=f"the job's timeout of {shown(timeout)} s exceeds the {hours} h of the coordinator "
                f"({hours * _SECONDS_PER_HOUR} s)",
                repair=set_to("iris.timeout", hours * _SECONDS_PER_HOUR),
            )


@check(
    "EXE-28",
    "retries are not negative",
    area="execution",
    rule="max_retries >= 0",
    prevents="Iris refuses the job after the coordinator started.",
    inputs=("spec",),
    source="contract launch-document.md §4.4: the value counts tolerated failures; nobody checks it",
)
def exe_28(subject: PreflightSubject) -> Iterator[Finding]:
    for path, retries in integers(subject, "iris.max_retries"):
        if retries < 0:
            yield Finding(
                path=path,
                message=f"max_retries={shown(retries)} is negative; 0 means that the first failure ends the job",
                repair=set_to(path, 0),
            )


CHECKS = (exe_19, exe_28)
