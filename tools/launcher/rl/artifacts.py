"""Typed hand-offs between artifacts: models and data are always steps, never raw paths."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel

from tools.launcher.graph.step import ArtifactStep, StepKind
from tools.launcher.rl.topology import SPEC


def _of_kind(*kinds: StepKind) -> AfterValidator:
    def check(step: ArtifactStep) -> ArtifactStep:
        if step.kind not in kinds:
            raise ValueError(f"{step.address} is of the kind {step.kind}, needed is {' or '.join(kinds)}")
        return step

    return AfterValidator(check)


ModelStep = Annotated[ArtifactStep, _of_kind("hf_model", "skyrl")]
DataStep = Annotated[ArtifactStep, _of_kind("dataset")]


class ArtifactHfModel(BaseModel):
    """The policy's starting weights: a Hugging Face style export of a step."""

    model_config = SPEC

    step: ModelStep
    tokenizer_uri: str
    """Hugging Face repository id or path."""
    tokenizer_revision: str
    """Full 40-hex commit (ART-08)."""
    relative_path: str | None
    """Path of the export below the artifact; None: the newest export, found by the coordinator."""


class ArtifactDataSource(BaseModel):
    """A directory or file of a data artifact."""

    model_config = SPEC

    step: DataStep
    relative_path: str


class TaskTroveSelection(BaseModel):
    """Which tasks of a task collection are used."""

    model_config = SPEC

    sources: tuple[str, ...]
    tags: tuple[str, ...]
    modes: tuple[str, ...]
    tag_match: Literal["all", "any"]
    limit: int | None
    seed: int


class TaskTroveDataSource(BaseModel):
    """Tasks picked from a task collection; the verifier is named by its manifest."""

    model_config = SPEC

    step: DataStep
    selection: TaskTroveSelection
    relative_path: str
    manifest_path: str
    verifier_ref: str
    """`verify_tool_ref` of the manifest, taken from the dataset card."""


DataSource = ArtifactDataSource | TaskTroveDataSource
