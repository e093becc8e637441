"""Agents in sandboxes: the terminal_bench section of a recipe."""

from collections.abc import Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import ceil_div
from tools.launcher.preflight.schedule import trains
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import below, counted, delete, set_to, shown

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
    section = subject.agentic_section
    agentic = subject.entrypoint in _AGENTIC
    if subject.has_agentic_section != agentic:
        yield Finding(
            path=section,
            message=f"entry point {subject.entrypoint} without a terminal_bench section"
            if agentic
            else f"a terminal_bench section makes the run agentic, the entry point is {subject.entrypoint}",
            repair=f"write the section {section}" if agentic else delete(section),
            severity="warning",
        )
    place = f"{section}.harbor"
    harbor = subject.get(place)
    if not agentic or not isinstance(harbor, dict):
        return
    if trains(subject):
        yield from _trial_problems(subject, place)
    known = subject.manifest().harbor_keys
    if known is None:
        raise MissingFact("harbor_keys in the runtime manifest")
    for key in sorted(set(harbor) - set(known), key=str):
        yield Finding(
            path=below(place, key),
            message=f"terminal_bench.harbor has no key {shown(key)}; Harbor drops it",
            repair=delete(below(place, key)),
            severity="warning",
        )


def _trial_problems(subject: PreflightSubject, harbor: str) -> Iterator[Finding]:
    verifier, trials_path = f"{harbor}.verifier_override_timeout_sec", f"{harbor}.n_concurrent_trials"
    masks, logprobs = f"{harbor}.mask_exceptions", f"{harbor}.preserve_logprobs_on_timeout"
    timeout = subject.get(verifier)
    if type(timeout) in (int, float) and timeout < MIN_VERIFIER_TIMEOUT:
        yield Finding(
            path=verifier,
            message=f"verifier timeout {shown(timeout)}s is below {MIN_VERIFIER_TIMEOUT}s",
            repair=set_to(verifier, MIN_VERIFIER_TIMEOUT),
            severity="warning",
        )
    if not subject.has(masks):
        yield Finding(
            path=masks,
            message="mask_exceptions is not declared: failures of the sandbox score zero like wrong answers",
            repair="list the exceptions of the infrastructure in mask_exceptions",
            severity="warning",
        )
    if subject.get(logprobs) is True:
        yield Finding(
            path=logprobs,
            message="preserve_logprobs_on_timeout is true: cut trials are trained on",
            repair=set_to(logprobs, False),
            severity="warning",
        )
    if subject.has(trials_path):
        trials, coordinators = subject.positive(trials_path), subject.positive(_COORDINATORS)
        if trials > coordinators * MAX_TRIALS_PER_COORDINATOR:
            yield Finding(
                path=_COORDINATORS,
                message=f"{counted(trials, 'trial')} on {counted(coordinators, 'coordinator')}: at most "
                f"{MAX_TRIALS_PER_COORDINATOR} each",
                repair=set_to(_COORDINATORS, ceil_div(trials, MAX_TRIALS_PER_COORDINATOR)),
                severity="warning",
            )


CHECKS = (obj_10,)
