"""Where a document comes from that was rendered here."""

from pydantic import BaseModel, ConfigDict

from tools.launcher.graph.artifact_graph import ArtifactGraph
from tools.launcher.rl.recipe import SkyRLRecipe


class PlannedFrom(BaseModel):
    """The typed origin of a document that was rendered here."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    graph: ArtifactGraph
    prefix: str
    """`MARIN_PREFIX` of the target cluster."""
    recipe: SkyRLRecipe
    overrides: dict[str, str] = {}
    """Artifact name -> version asked for with --override."""
    required_fixes: tuple[str, ...] = ()
    """Ids of the back end's fixes that the experiment relies on."""
    stage: str | None = None
    """Where a launch ends that asks for no stage; None: not known."""
    launch: str | None = None
    """Digest of the document that the graph renders to. A proposal's document is another one, and the graph is not its."""
