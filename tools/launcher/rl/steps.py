"""The step kinds of an experiment's graph."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, Field

from tools.launcher.catalog.cards import DatasetCard, HfExport, MissingFact, ModelCard
from tools.launcher.graph.step import ArtifactStep, StepKind
from tools.launcher.rl.artifacts import DataSource
from tools.launcher.rl.execution import IrisSkyRLExecution
from tools.launcher.rl.spec import SkyRLSpec, spec_identity
from tools.launcher.rl.topology import SPEC


class SkyRLStepPayload(BaseModel):
    """What the renderer needs of an RL step."""

    model_config = SPEC

    spec: SkyRLSpec
    execution: IrisSkyRLExecution
    export_hf: bool


class ImportStepPayload(BaseModel):
    """What an import step was made from."""

    model_config = SPEC

    card: ModelCard | DatasetCard


class Evaluation(BaseModel):
    """What an evaluation step measures. Identity-bearing."""

    model_config = SPEC

    env_class: str
    episodes: int = Field(gt=0)
    seed: int


def hf_model(card: ModelCard, export: HfExport | None) -> ArtifactStep:
    """The step of a model artifact that exists already.

    Args:
        card: facts about the model.
        export: address, record fingerprint and place of the artifact, often `card.export`.

    Raises:
        MissingFact: if `export` is None.
        TypeError: for another card, or an export that is no HfExport.
    """
    _require_card(card, ModelCard, 'hf_model(): give a model card, inputs.model("name")')
    identity = {"model": card.name, "repository": card.repository, "revision": card.revision}
    return _existing("hf_model", card, export, identity)


def dataset(card: DatasetCard, export: HfExport | None) -> ArtifactStep:
    """The step of a data artifact that exists already. Arguments and errors as for `hf_model`."""
    _require_card(card, DatasetCard, 'dataset(): give a dataset card, inputs.dataset("name")')
    return _existing("dataset", card, export, {"dataset": card.name})


def skyrl_step(spec: SkyRLSpec, execution: IrisSkyRLExecution, *, export_hf: bool) -> ArtifactStep:
    """The RL step: trains `spec.model` on `spec.train_data`.

    Dependencies are the model, then train data, then validation data, each once.

    Args:
        spec: what is learned (identity).
        execution: where it runs (never identity).
        export_hf: whether success needs an exported policy (identity).
    """
    payload = SkyRLStepPayload(spec=spec, execution=execution, export_hf=export_hf)
    return ArtifactStep(
        name=spec.name,
        version=spec.version,
        kind="skyrl",
        config=spec_identity(spec, export_hf=export_hf),
        deps=_once([spec.model.step, *_steps_of(spec.train_data), *_steps_of(spec.validation_data)]),
        override_path=None,
        recorded_fingerprint=None,
        expected_fingerprint=None,
        payload=payload,
    )


def evaluate(
    run: ArtifactStep, *, name: str, version: str, env_class: str, episodes: int, seed: int
) -> ArtifactStep:
    """The step that evaluates the exported policy of an RL step.

    Args:
        run: the RL step; it must export its policy.
        name: artifact name of the evaluation.
        version: its version.
        env_class: registered environment class.
        episodes: answers that are scored, at least one.
        seed: of the episodes.

    Raises:
        ValueError: if `run` is no RL step or exports nothing.
    """
    payload = run.payload if isinstance(run, ArtifactStep) else None
    if not isinstance(payload, SkyRLStepPayload) or not payload.export_hf:
        what = run.address if isinstance(run, ArtifactStep) else type(run).__name__
        raise ValueError(f"evaluate({what}): needs a skyrl_step with export_hf=True")
    return ArtifactStep(
        name=name,
        version=version,
        kind="evaluate",
        config=Evaluation(env_class=env_class, episodes=episodes, seed=seed).model_dump(),
        deps=(run,),
        override_path=None,
        recorded_fingerprint=None,
        expected_fingerprint=None,
    )


def _existing(
    kind: StepKind, card: ModelCard | DatasetCard, export: HfExport | None, config: dict[str, Any]
) -> ArtifactStep:
    if export is None:
        raise MissingFact(
            f"the {card.kind} card '{card.name}' names no artifact. Add `export` (name, version, fingerprint) "
            "to the card, or pass an HfExport"
        )
    if not isinstance(export, HfExport):
        raise TypeError(
            f"the export of '{card.name}' is of the type {type(export).__name__}. "
            "Give an HfExport, such as the card's own `export`"
        )
    return ArtifactStep(
        name=export.name,
        version=export.version,
        kind=kind,
        config=config,
        deps=(),
        override_path=export.uri,
        recorded_fingerprint=export.fingerprint,
        expected_fingerprint=None,
        payload=ImportStepPayload(card=card),
    )


def _require_card(card: object, kind: type[ModelCard] | type[DatasetCard], wish: str) -> None:
    if not isinstance(card, kind):
        raise TypeError(f"{wish}; this is of the type {type(card).__name__}")


def _steps_of(sources: Iterable[DataSource]) -> list[ArtifactStep]:
    return [source.step for source in sources]


def _once(steps: Iterable[ArtifactStep]) -> tuple[ArtifactStep, ...]:
    unique: list[ArtifactStep] = []
    for step in steps:
        if step not in unique:
            unique.append(step)
    return tuple(unique)
