"""What is trained: the identity side of an experiment."""

from typing import Any

from pydantic import BaseModel, InstanceOf

from tools.launcher.graph.fingerprint import step_identity
from tools.launcher.rl.artifacts import ArtifactHfModel, DataSource, TaskTroveDataSource
from tools.launcher.rl.context_budget import SkyRLContextBudget
from tools.launcher.rl.recipe import SkyRLRecipe
from tools.launcher.rl.runtime import SkyRLRetentionPolicy, SkyRLRuntime
from tools.launcher.rl.topology import SPEC, SkyRLTopology

LATEST_EXPORT = "<terminal-hf-export>"
"""Stands for the export that is only found at run time (contract, typed-spec.md §1)."""


class SkyRLSpec(BaseModel):
    """Everything that decides what a run learns."""

    model_config = SPEC

    name: str
    version: str
    recipe: InstanceOf[SkyRLRecipe]
    context_budget: SkyRLContextBudget
    runtime: SkyRLRuntime
    model: ArtifactHfModel
    train_data: tuple[DataSource, ...]
    validation_data: tuple[DataSource, ...]
    topology: SkyRLTopology
    retention: SkyRLRetentionPolicy
    seed: int
    """Becomes `run.seed` and, in the runtime, `trainer.seed`."""
    required_fixes: tuple[str, ...] = ()
    """Fixes of the back end that the experiment relies on, by their ids in the runtime manifest (BKD-30). Neither
    identity nor rendered: which code runs is the commit's matter, and that is identity."""


def spec_identity(spec: SkyRLSpec, *, export_hf: bool) -> dict[str, Any]:
    """Return the identity-bearing content of `spec` as JSON values.

    Order of recipe keys and parts is not in it, nor is anything of the placement or the
    lifetime of temporary data.
    """
    return {
        "name": spec.name,
        "version": spec.version,
        "recipe": spec.recipe.settings,
        "context_budget": spec.context_budget.declared(),
        "runtime": spec.runtime.model_dump(),
        "model": {
            "identity": step_identity(spec.model.step),
            "tokenizer_uri": spec.model.tokenizer_uri,
            "tokenizer_revision": spec.model.tokenizer_revision,
            "relative_path": LATEST_EXPORT if spec.model.relative_path is None else spec.model.relative_path,
        },
        "train_data": [_source_identity(source) for source in spec.train_data],
        "validation_data": [_source_identity(source) for source in spec.validation_data],
        "topology": spec.topology.model_dump(),
        "resume_checkpoint_count": spec.retention.resume_checkpoint_count,
        "seed": spec.seed,
        "export_hf": export_hf,
    }


def _source_identity(source: DataSource) -> dict[str, Any]:
    identity: dict[str, Any] = {"identity": step_identity(source.step), "relative_path": source.relative_path}
    if isinstance(source, TaskTroveDataSource):
        identity["selection"] = source.selection.model_dump(mode="json")
        identity["manifest_path"] = source.manifest_path
        identity["verifier_ref"] = source.verifier_ref
    return identity
