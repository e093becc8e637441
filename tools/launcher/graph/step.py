"""The inert handle of one artifact."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

StepKind = Literal["hf_model", "dataset", "skyrl", "evaluate"]

STAGE_OF_KIND: dict[str, str] = {
    "hf_model": "import",
    "dataset": "import",
    "skyrl": "rl",
    "evaluate": "evaluate",
}
"""Kind of a step -> the stage that it belongs to (`stages.stage_ends`)."""


class ArtifactStep(BaseModel):
    """One artifact: its address, what it is made of, and what it is made from.

    Two steps with the same address must be equal; see `artifact_graph.build_graph`.
    """

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True
    )

    name: str
    """Artifact name such as `team/experiment`; with `version` its address."""
    version: str
    """Calendar version, or `dev`."""
    kind: StepKind
    """Which work makes the artifact."""
    config: dict[str, Any]
    """Identity: everything that changes what the artifact contains. JSON values only."""
    deps: tuple["ArtifactStep", ...]
    """Other steps, in order, without repeats. Their identities are part of this step's."""
    override_path: str | None
    """An existing output to use in place of `{prefix}/{name}/{version}`. Not identity."""
    recorded_fingerprint: str | None
    """The fingerprint in the record of an artifact which exists already (8 to 64 hex digits)."""
    expected_fingerprint: str | None
    """A pin: preflight refuses the graph when the computed fingerprint differs (ART-05)."""
    payload: Any = Field(default=None, repr=False, exclude=True)
    """For the renderer: typed objects behind `config` and the placement. Never identity."""

    @property
    def address(self) -> str:
        """`name@version`."""
        return f"{self.name}@{self.version}"

    @property
    def stage(self) -> str:
        """The stage that this step belongs to."""
        return STAGE_OF_KIND[self.kind]
