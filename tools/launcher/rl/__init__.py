"""The authoring API: everything an experiment imports."""

from tools.launcher.catalog.cards import ClusterCard, DatasetCard, HfExport, ModelCard
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.rl.artifacts import (
    ArtifactDataSource,
    ArtifactHfModel,
    TaskTroveDataSource,
    TaskTroveSelection,
)
from tools.launcher.rl.build_options import rl_build_options
from tools.launcher.rl.context_budget import SkyRLContextBudget
from tools.launcher.rl.execution import IrisSkyRLExecution, SkyRLIngress
from tools.launcher.rl.inputs import BuildInputs
from tools.launcher.rl.recipe import SkyRLRecipe
from tools.launcher.rl.runtime import SkyRLRetentionPolicy, SkyRLRuntime
from tools.launcher.rl.spec import SkyRLSpec
from tools.launcher.rl.steps import dataset, evaluate, hf_model, skyrl_step
from tools.launcher.rl.topology import SkyRLRolePlan, SkyRLTopology

__all__ = [
    "ArtifactDataSource",
    "ArtifactHfModel",
    "ArtifactStep",
    "BuildInputs",
    "ClusterCard",
    "DatasetCard",
    "HfExport",
    "IrisSkyRLExecution",
    "ModelCard",
    "SkyRLContextBudget",
    "SkyRLIngress",
    "SkyRLRecipe",
    "SkyRLRetentionPolicy",
    "SkyRLRolePlan",
    "SkyRLRuntime",
    "SkyRLSpec",
    "SkyRLTopology",
    "TaskTroveDataSource",
    "TaskTroveSelection",
    "dataset",
    "evaluate",
    "hf_model",
    "rl_build_options",
    "skyrl_step",
]
