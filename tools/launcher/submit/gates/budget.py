"""budget: the GPU hours that a launch may take at most, under the repository's ceiling."""

import math
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.launcher.documents.longest_run import LongestRun, longest_run
from tools.launcher.documents.strict_yaml import DocumentError, load_yaml_mapping
from tools.launcher.submit.gates.gate import Gate

BUDGET_FILE = "experiments/budget.yaml"

_FILE = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

GpuHours = Annotated[float, Field(ge=0)]


class Ceilings(BaseModel):
    """GPU hours of one launch: of each named cluster, and of every other one."""

    model_config = _FILE

    default: GpuHours
    clusters: dict[str, GpuHours] = {}


class Budget(BaseModel):
    """experiments/budget.yaml."""

    model_config = _FILE

    schema_version: Literal[1] = Field(alias="schema")
    gpu_hours_per_launch: Ceilings


def load_budget(data: bytes, *, source: str) -> Budget:
    """Read a budget file.

    Raises:
        DocumentError: it cannot be read; the message names every wrong field and the form.
    """
    content = load_yaml_mapping(data, source=source)
    try:
        return Budget.model_validate(content)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}"
            + ("" if item["type"] == "missing" else f", got {item['input']!r}")
            for item in error.errors()
        )
        raise DocumentError(
            source,
            "",
            problems,
            "Write schema: 1 and gpu_hours_per_launch: {default: HOURS, clusters: {NAME: HOURS}}",
        ) from None


class BudgetFacts(BaseModel):
    """What a launch may take.

    Attributes:
        cluster: name of the cluster.
        nodes, gpus_per_node: of the allocation.
        job_timeout_seconds: deadline of each attempt of the training job; 0 means none of its own.
        max_retries: of the training job.
        coordinator_timeout_hours: deadline of the coordinator, which ends the job with itself.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    cluster: str
    nodes: int
    gpus_per_node: int
    job_timeout_seconds: int
    max_retries: int
    coordinator_timeout_hours: int


def most_gpu_hours(facts: BudgetFacts) -> Fraction:
    """Return the GPU hours that a launch may take at most."""
    return facts.nodes * facts.gpus_per_node * Fraction(_longest(facts).seconds, 3600)


def budget_gate(facts: BudgetFacts, budget: Budget | None) -> Gate:
    """Return the gate, with the arithmetic in words.

    Args:
        facts: the launch.
        budget: the repository's ceilings, None if no file was handed over.
    """
    if budget is None:
        return Gate(
            id="budget",
            state="missing",
            found="no budget file was handed over, so the ceiling is not known",
            fix=f"launch through the experiment's target, or with --budget={BUDGET_FILE}",
        )
    longest = _longest(facts)
    wanted = most_gpu_hours(facts)
    ceilings = budget.gpu_hours_per_launch
    own = facts.cluster in ceilings.clusters
    ceiling = ceilings.clusters[facts.cluster] if own else ceilings.default
    sum_in_words = (
        f"{_counted(facts.nodes, 'node')} x {_counted(facts.gpus_per_node, 'GPU')} x {_duration(longest)} = "
        f"{_number(wanted)} GPU-hours"
    )
    whose = f"ceiling of {facts.cluster}" if own else f"default ceiling ({facts.cluster} has none of its own)"
    found = f"{sum_in_words}; the {whose} is {ceiling:.15g}"
    if wanted <= Fraction(ceiling):
        return Gate(id="budget", state="passed", found=found)
    knob = longest.setting if longest.attempts == 1 else f"{longest.setting}, max_retries"
    return Gate(
        id="budget",
        state="missing",
        found=found,
        fix=f"lower {knob} or the nodes in the experiment, or have the ceiling raised in {BUDGET_FILE}",
    )


def _longest(facts: BudgetFacts) -> LongestRun:
    return longest_run(
        job_timeout_seconds=facts.job_timeout_seconds,
        max_retries=facts.max_retries,
        nodes=facts.nodes,
        coordinator_timeout_hours=facts.coordinator_timeout_hours,
    )


def _duration(longest: LongestRun) -> str:
    each = f"{_number(Fraction(longest.seconds, 3600 * longest.attempts))} h"
    return each if longest.attempts == 1 else f"{longest.attempts} attempts of {each}"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _number(value: Fraction) -> str:
    """At most two digits behind the point, rounded up: a sum above the ceiling never looks equal to it."""
    hundredths = math.ceil(value * 100)
    whole, rest = divmod(hundredths, 100)
    return f"{whole}.{rest:02}".rstrip("0") if rest else str(whole)
