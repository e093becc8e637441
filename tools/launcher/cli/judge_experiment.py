"""An experiment's graph, judged: everything that its digests follow from, before anything is rendered for people.

Pure: reads nothing, knows no clock, network, environment or absolute path.
"""

import dataclasses
from typing import Any

from tools.launcher.catalog.cards import ClusterCard, DatasetCard, ModelCard
from tools.launcher.cli.experiment_module import ExperimentError
from tools.launcher.documents.canonical import CanonicalEncodingError, canonical_json, digest_of
from tools.launcher.graph.artifact_graph import ArtifactGraph, build_graph
from tools.launcher.graph.fingerprint import step_fingerprint
from tools.launcher.graph.ledger import VersionLedger
from tools.launcher.graph.stages import other_stages
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.preflight.findings import PreflightReport
from tools.launcher.preflight.judge import judge
from tools.launcher.preflight.pinned_versions import compatible_with, pinned_run, repins_of
from tools.launcher.preflight.planned import PlannedFrom
from tools.launcher.preflight.registry import CHECKS
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.render.digests import LaunchDigests
from tools.launcher.render.graph_document import render_graph_document
from tools.launcher.render.launch_document import Storage, render_launch_document
from tools.launcher.rl.artifacts import DataSource
from tools.launcher.rl.inputs import BuildInputs
from tools.launcher.rl.steps import ImportStepPayload, SkyRLStepPayload


class PreflightFailed(Exception):
    """The experiment was refused; `report` holds every violation."""

    def __init__(self, report: PreflightReport) -> None:
        super().__init__(f"{len(report.errors)} errors")
        self.report = report


@dataclasses.dataclass(frozen=True)
class JudgedExperiment:
    """An experiment that no check refuses.

    Attributes:
        graph: its artifact steps.
        run: the step that trains.
        payload: what that step was made of.
        subject: what the checks looked at; has the launch document.
        report: what they said.
        graph_document: content of `<name>.graph.json`.
        digests: recipe and launch.
    """

    graph: ArtifactGraph
    run: ArtifactStep
    payload: SkyRLStepPayload
    subject: PreflightSubject
    report: PreflightReport
    graph_document: dict[str, Any]
    digests: LaunchDigests


def judge_experiment(
    terminals: tuple[ArtifactStep, ...], inputs: BuildInputs, *, label: str, stage: str, ledger: VersionLedger
) -> JudgedExperiment:
    """Judge the graph of an experiment.

    Args:
        terminals: what the experiment's main returned.
        inputs: what the target declares.
        label: of the target.
        stage: default terminal stage.
        ledger: what was published before.

    Raises:
        ExperimentError: the graph has no single RL step, or lacks `stage`; its cluster is not the card's; the card has
            no storage; a value that no check can read, or no file can hold; no terminal step has the target's version.
        PreflightFailed: there are errors.
    """
    try:
        return _judged(terminals, inputs, label, stage, ledger)
    except CanonicalEncodingError as error:
        raise ExperimentError(f"a value cannot be pinned: {str(error).removeprefix('$.')}") from None


def _judged(
    terminals: tuple[ArtifactStep, ...], inputs: BuildInputs, label: str, stage: str, ledger: VersionLedger
) -> JudgedExperiment:
    graph = _graph(terminals)
    run, payload = _rl_step(graph)
    _require_cluster(payload, inputs.cluster)
    if stage not in graph.stages:
        raise ExperimentError(f"stage '{stage}' does not end this graph. {other_stages(stage, graph.stages)}")
    storage = _storage(inputs.cluster)
    document = render_launch_document(payload, storage)
    launch_digest = _digest(document)
    subject = _subject(document, graph, payload, inputs, storage, stage, ledger, launch_digest)
    report = judge(subject, CHECKS)
    if report.errors:
        raise PreflightFailed(report)
    _require_judged(report)
    _require_version(terminals, inputs.version)
    digests = LaunchDigests(
        # Again for a document that no file can hold: this names the value's place.
        launch=launch_digest or digest_of(document),
        recipe=step_fingerprint(run),
    )
    pin = pinned_run(subject)
    graph_document = render_graph_document(
        graph,
        document,
        storage,
        experiment=label,
        default_stage=stage,
        recipe=digests.recipe,
        pinned=pin is not None and pin.recipe == digests.recipe,
        compatible=compatible_with(subject),
        repins=repins_of(subject),
    )
    canonical_json(graph_document)
    return JudgedExperiment(graph, run, payload, subject, report, graph_document, digests)


def _require_judged(report: PreflightReport) -> None:
    """A value of a wrong type is no missing fact: what nobody could judge is not planned."""
    if report.unusable:
        needs = "".join(
            f"\n    needed: {need} (for {', '.join(ids)})" for need, ids in report.unusable.items()
        )
        raise ExperimentError(f"preflight cannot judge these values. Write what is needed:{needs}")


def _require_version(terminals: tuple[ArtifactStep, ...], version: str) -> None:
    if all(step.version != version for step in terminals):
        found = ", ".join(step.address for step in terminals)
        raise ExperimentError(
            f"the target has the version {version}, main() returns {found}. Write version=inputs.version"
        )


def _graph(terminals: tuple[ArtifactStep, ...]) -> ArtifactGraph:
    try:
        return build_graph(terminals)
    except RecursionError:
        raise ExperimentError(
            "a step is made of itself, by way of its deps, or by far too many of them in a row. Make each step of steps "
            "that were made before it"
        ) from None


def _require_cluster(payload: SkyRLStepPayload, card: ClusterCard) -> None:
    """Refuse a plan for one cluster that the facts of another would judge."""
    if payload.execution.cluster != card.name:
        raise ExperimentError(
            f"IrisSkyRLExecution.cluster is '{payload.execution.cluster}', and `cluster` of the target is the card of "
            f"'{card.name}', by which everything is checked. Write cluster=inputs.cluster.name, or give the target the "
            "other card"
        )


def _rl_step(graph: ArtifactGraph) -> tuple[ArtifactStep, SkyRLStepPayload]:
    runs = [(step, step.payload) for step in graph.steps if isinstance(step.payload, SkyRLStepPayload)]
    if len(runs) != 1:
        found = ", ".join(step.address for step, _ in runs) or "none"
        raise ExperimentError(
            f"an experiment has exactly one skyrl_step, this graph has {len(runs)} ({found}). "
            "Make one experiment for each, and hand the export over as an artifact"
        )
    return runs[0]


def _storage(cluster: ClusterCard) -> Storage:
    if cluster.marin_prefix is None or cluster.temp_bucket is None:
        raise ExperimentError(
            f"cluster card '{cluster.name}' has no marin_prefix or no temp_bucket, so output paths are not known. "
            "Add both to the card"
        )
    return Storage(prefix=cluster.marin_prefix, temporary_bucket=cluster.temp_bucket)


def _subject(
    document: dict[str, Any],
    graph: ArtifactGraph,
    payload: SkyRLStepPayload,
    inputs: BuildInputs,
    storage: Storage,
    stage: str,
    ledger: VersionLedger,
    launch_digest: str | None,
) -> PreflightSubject:
    model = payload.spec.model.step.payload
    return PreflightSubject(
        document=document,
        model=model.card
        if isinstance(model, ImportStepPayload) and isinstance(model.card, ModelCard)
        else None,
        train_dataset=_only_card(payload.spec.train_data),
        validation_dataset=_only_card(payload.spec.validation_data),
        cluster=inputs.cluster,
        runtime=inputs.runtime,
        ledger=ledger,
        planned=PlannedFrom(
            graph=graph,
            prefix=storage.prefix,
            recipe=payload.spec.recipe,
            required_fixes=payload.spec.required_fixes,
            stage=stage,
            launch=launch_digest,
        ),
    )


def _digest(document: dict[str, Any]) -> str | None:
    """The digest, None for a value that no file can hold: what else is wrong is said first."""
    try:
        return digest_of(document)
    except CanonicalEncodingError:
        return None


def _only_card(sources: tuple[DataSource, ...]) -> DatasetCard | None:
    """The card of the data, where one card speaks for all of it."""
    cards = [
        source.step.payload.card for source in sources if isinstance(source.step.payload, ImportStepPayload)
    ]
    return cards[0] if len(cards) == 1 and isinstance(cards[0], DatasetCard) else None
