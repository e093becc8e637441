"""Agents in sandboxes: the terminal_bench section of a recipe."""

from collections.abc import Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import ceil_div
from tools.launcher.preflight.schedule import trains
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import below, counted, delete, set_to, shown

_SECTION = "skyrl.terminal_bench"
_HARBOR = f"{_SECTION}.harbor"
_VERIFIER = f"{_HARBOR}.verifier_override_timeout_sec"
_TRIALS = f"{_HARBOR}.n_concurrent_trials"
_MASKS = f"{_HARBOR}.mask_exceptions"
_LOGPROBS = f"{_HARBOR}.preserve_logprobs_on_timeout"
_COORDINATORS = "skyrl.trajectory_runner.process_pool.num_coordinators"
_AGENTIC = ("terminal_bench", "terminal_bench_generate")

MIN_VERIFIER_TIMEOUT = 2400
"""Seconds. At 150 s 4 to 14 of 100 samples were scored zero by the timeout alone."""
MAX_TRIALS_PER_COORDINATOR = 66
"""Both: MarinSkyRL cloud/iris/recipe_preflight.py@4c8d412f."""


@check(
    "OBJ-10",
    "agentic trials are not cut or masked by accident",
    area="objective",
    rule=f"terminal_bench.harbor: verifier_override_timeout_sec >= {MIN_VERIFIER_TIMEOUT}; n_concurrent_trials / "
    f"num_coordinators <= {MAX_TRIALS_PER_COORDINATOR}; mask_exceptions declared; preserve_logprobs_on_timeout not "
    "true; known keys; the section goes with the entry point terminal_bench",
    prevents="Trials time out or are masked, and score zero.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-10 (#99), MarinSkyRL cloud/iris/recipe_preflight.py@4c8d412f; a branch tool",
)
def obj_10(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.source_form:
        return
    agentic = subject.entrypoint in _AGENTIC
    if subject.has(_SECTION) != agentic:
        yield Finding(
            path=_SECTION,
            message=f"entry point {subject.entrypoint} without a terminal_bench section"
            if agentic
            else f"a terminal_bench section makes the run agentic, the entry point is {subject.entrypoint}",
            repair="write the terminal_bench section of the recipe" if agentic else delete(_SECTION),
            severity="warning",
        )
    harbor = subject.get(_HARBOR)
    if not agentic or not isinstance(harbor, dict):
        return
    if trains(subject):
        yield from _trial_problems(subject)
    known = subject.manifest().harbor_keys
    if known is None:
        raise MissingFact("harbor_keys in the runtime manifest")
    for key in sorted(set(harbor) - set(known), key=str):
        yield Finding(
            path=below(_HARBOR, key),
            message=f"terminal_bench.harbor has no key {shown(key)}; Harbor drops it",
            repair=delete(below(_HARBOR, key)),
            severity="warning",
        )


def _trial_problems(subject: PreflightSubject) -> Iterator[Finding]:
    timeout = subject.get(_VERIFIER)
    if type(timeout) in (int, float) and timeout < MIN_VERIFIER_TIMEOUT:
        yield Finding(
            path=_VERIFIER,
            message=f"verifier timeout {shown(timeout)}s is below {MIN_VERIFIER_TIMEOUT}s",
            repair=set_to(_VERIFIER, MIN_VERIFIER_TIMEOUT),
            severity="warning",
        )
    if not subject.has(_MASKS):
        yield Finding(
            path=_MASKS,
            message="mask_exceptions is not declared: failures of the sandbox score zero like wrong answers",
            repair="list the exceptions of the infrastructure in mask_exceptions",
            severity="warning",
        )
    if subject.get(_LOGPROBS) is True:
        yield Finding(
            path=_LOGPROBS,
            message="preserve_logprobs_on_timeout is true: cut trials are trained on",
            repair=set_to(_LOGPROBS, False),
            severity="warning",
        )
    if subject.has(_TRIALS):
        trials, coordinators = subject.positive(_TRIALS), subject.positive(_COORDINATORS)
        if trials > coordinators * MAX_TRIALS_PER_COORDINATOR:
            yield Finding(
                path=_COORDINATORS,
                message=f"{counted(trials, 'trial')} on {counted(coordinators, 'coordinator')}: at most "
                f"{MAX_TRIALS_PER_COORDINATOR} each",
                repair=set_to(_COORDINATORS, ceil_div(trials, MAX_TRIALS_PER_COORDINATOR)),
                severity="warning",
            )


CHECKS = (obj_10,)
