"""Which experiments became others between two states of the sources."""

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tools.launcher.compare.digest_manifest import DigestManifest, ExperimentDigests
from tools.launcher.graph.versions import is_mutable

Effect = Literal["refused", "recipe", "launch", "graph", "new", "removed", "repaired"]
"""What happened to an experiment, gravest first."""

EFFECTS: tuple[Effect, ...] = ("refused", "recipe", "launch", "graph", "new", "removed", "repaired")


class AffectedExperiment(BaseModel):
    """One experiment that is not what it was.

    Attributes:
        label: of its target.
        effect: what happened to it.
        before, after: its digests, None where it had or has none.
        sentence: what that means, without a full stop.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    label: str
    effect: Effect
    before: ExperimentDigests | None
    after: ExperimentDigests | None
    sentence: str


class AffectedReport(BaseModel):
    """The experiments that became others.

    Attributes:
        base, head: how the two states are called.
        affected: gravest effect first, then by label.
        unaffected: how many are as they were.
        refused_before: labels that built in neither state.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    base: str
    head: str
    affected: tuple[AffectedExperiment, ...]
    unaffected: int
    refused_before: tuple[str, ...]

    def touches_recipe(self) -> bool:
        """Whether an experiment learns something else, or cannot be told because it does not build."""
        return any(item.effect in ("refused", "recipe") for item in self.affected)


def affected_report(base: DigestManifest, head: DigestManifest, *, names: tuple[str, str]) -> AffectedReport:
    """Return what changes from `base` to `head`.

    Args:
        base, head: the two states.
        names: how the two are called.
    """
    affected = sorted(_affected(base, head), key=lambda item: (EFFECTS.index(item.effect), item.label))
    seen = {item.label for item in affected}
    refused_before = tuple(sorted(label for label in head.refused if _refusal(base, label) is not None))
    return AffectedReport(
        base=names[0],
        head=names[1],
        affected=tuple(affected),
        unaffected=sum(label not in seen for label in head.experiments),
        refused_before=refused_before,
    )


def _affected(base: DigestManifest, head: DigestManifest) -> Iterator[AffectedExperiment]:
    gone = {
        (digests.recipe, digests.launch): label
        for label, digests in base.experiments.items()
        if label not in head.experiments and _refusal(head, label) is None
    }
    labels = base.experiments.keys() | base.refused.keys() | head.experiments.keys() | head.refused.keys()
    known_packages = {_package(label) for label in labels if ":" in label}
    for label in labels:
        if ":" not in label and label in known_packages:
            continue  # Its experiments are told instead.
        before, after = base.experiments.get(label), head.experiments.get(label)
        found = _effect(before, after, refused=(_refusal(base, label), _refusal(head, label)))
        if found is not None:
            effect, sentence = found
            same = gone.get((after.recipe, after.launch)) if effect == "new" and after is not None else None
            if same is not None:
                sentence += f", what {same} was"
            yield AffectedExperiment(
                label=label, effect=effect, before=before, after=after, sentence=sentence
            )


def _refusal(manifest: DigestManifest, label: str) -> str | None:
    """Why an experiment does not build, or its package cannot be read."""
    return manifest.refused.get(label, manifest.refused.get(_package(label)))


def _package(label: str) -> str:
    return label.partition(":")[0]


def _effect(
    before: ExperimentDigests | None, after: ExperimentDigests | None, refused: tuple[str | None, str | None]
) -> tuple[Effect, str] | None:
    if refused[1] is not None:
        if refused[0] is not None:
            return None
        return "refused", f"does not build{' any more' if before else ''}: {refused[1]}"
    if after is None:
        return "removed", "no such experiment any more"
    if before is None:
        return ("new", f"version {after.version}") if refused[0] is None else ("repaired", "builds again")
    if before.recipe != after.recipe:
        return "recipe", _recipe_sentence(before.version, after.version)
    if before.launch != after.launch:
        return "launch", "the same recipe in another place or with other limits; its version stays"
    if None not in (before.graph, after.graph) and before.graph != after.graph:
        return (
            "graph",
            "the same launch document; another deadline, other credentials, or other steps after training",
        )
    return None


def _recipe_sentence(before: str, after: str) -> str:
    if before != after:
        return f"new version {before} -> {after}"
    if is_mutable(after):
        return f"{after} is no fixed version and may change"
    return f"{after} now means another recipe: publish a new version, unless nobody launched it"
