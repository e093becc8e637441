"""The graph below some terminal steps, and the questions that are asked of it."""

from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from tools.launcher.graph.paths import output_path
from tools.launcher.graph.stages import stage_ends
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.graph.versions import is_mutable


class ArtifactGraph(BaseModel):
    """All steps that the terminal steps need, each once, dependencies first."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", defer_build=True)

    steps: tuple[ArtifactStep, ...]
    terminals: tuple[ArtifactStep, ...]

    @property
    def stages(self) -> dict[str, tuple[str, ...]]:
        """Stage -> addresses of the steps that end it (`stages.stage_ends`)."""
        return stage_ends({step.address: step.kind for step in self.steps})

    @property
    def last_steps(self) -> dict[str, str]:
        """Stage -> address of its last step, for the stages of what is made: imports come in no order."""
        return {stage: ends[-1] for stage, ends in self.stages.items() if stage != "import"}


def build_graph(terminals: Sequence[ArtifactStep]) -> ArtifactGraph:
    """Collect the steps below `terminals` in topological order.

    The order depends only on the order of terminals and dependencies. Two different steps
    with one address are both kept, so that preflight can name them (`address_conflicts`).
    """
    ordered: list[ArtifactStep] = []

    def visit(step: ArtifactStep) -> None:
        if any(step is seen or step == seen for seen in ordered):
            return
        for dep in step.deps:
            visit(dep)
        ordered.append(step)

    for terminal in terminals:
        visit(terminal)
    return ArtifactGraph(steps=tuple(ordered), terminals=tuple(terminals))


def steps_below(step: ArtifactStep) -> Iterator[ArtifactStep]:
    """Yield the direct and indirect dependencies of `step`, each once."""
    seen: list[ArtifactStep] = []
    pending = list(step.deps)
    while pending:
        dep = pending.pop(0)
        if dep not in seen:
            seen.append(dep)
            pending.extend(dep.deps)
            yield dep


def mutable_dependencies(graph: ArtifactGraph) -> list[tuple[ArtifactStep, ArtifactStep]]:
    """Return (fixed step, mutable step below it) for every such pair (ART-03)."""
    return [
        (step, dep)
        for step in graph.steps
        if not is_mutable(step.version)
        for dep in steps_below(step)
        if is_mutable(dep.version)
    ]


def address_conflicts(graph: ArtifactGraph) -> list[tuple[ArtifactStep, ArtifactStep]]:
    """Return pairs of different steps that share a name: one address twice, or two versions (ART-19)."""
    return [
        (first, second)
        for index, first in enumerate(graph.steps)
        for second in graph.steps[index + 1 :]
        if first.name == second.name
    ]


def nested_outputs(graph: ArtifactGraph, prefix: str) -> list[tuple[ArtifactStep, ArtifactStep, str, str]]:
    """Return (outer, inner, outer path, inner path) where one output lies inside another (ART-19)."""
    paths = [
        (step, (step.override_path or output_path(prefix, step.name, step.version))) for step in graph.steps
    ]
    return [
        (outer, inner, outer_path, inner_path)
        for outer, outer_path in paths
        for inner, inner_path in paths
        if outer is not inner and inner_path.startswith(outer_path.rstrip("/") + "/")
    ]
