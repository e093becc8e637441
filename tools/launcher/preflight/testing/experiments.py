"""Typed origins for the tests of preflight."""

from typing import Any, Literal

from tools.launcher.catalog.cards import DatasetCard, HfExport, ModelCard
from tools.launcher.graph.artifact_graph import build_graph
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.preflight.planned import PlannedFrom
from tools.launcher.rl.artifacts import (
    ArtifactDataSource,
    ArtifactHfModel,
    TaskTroveDataSource,
    TaskTroveSelection,
)
from tools.launcher.rl.context_budget import SkyRLContextBudget
from tools.launcher.rl.execution import IrisSkyRLExecution
from tools.launcher.rl.recipe import SkyRLRecipe
from tools.launcher.rl.runtime import SkyRLRetentionPolicy, SkyRLRuntime
from tools.launcher.rl.spec import SkyRLSpec
from tools.launcher.rl.steps import dataset, hf_model, skyrl_step
from tools.launcher.rl.topology import SkyRLRolePlan, SkyRLTopology

PREFIX = "s3://lab/marin"
COMMIT = "81ae0ef7033c500207b191a2ae7c3806f6dc78ff"
"""The pinned runtime."""


def step(
    name: str,
    version: str = "2026.09.21",
    kind: Literal["hf_model", "dataset", "skyrl", "evaluate"] = "dataset",
    deps: tuple[ArtifactStep, ...] = (),
    **facts: Any,
) -> ArtifactStep:
    """A step without payload."""
    values = {"override_path": None, "recorded_fingerprint": None, "expected_fingerprint": None} | facts
    return ArtifactStep(name=name, version=version, kind=kind, deps=deps, config={}, **values)


def planned(
    *terminals: ArtifactStep,
    recipe: SkyRLRecipe | None = None,
    overrides: dict[str, str] | None = None,
    stage: str | None = None,
) -> PlannedFrom:
    """The typed origin of a document whose graph ends with `terminals`."""
    return PlannedFrom(
        graph=build_graph(terminals),
        prefix=PREFIX,
        recipe=SkyRLRecipe.combine() if recipe is None else recipe,
        overrides=overrides or {},
        stage=stage,
    )


def model_step(relative_path: str | None = "hf/step-32") -> ArtifactStep:
    """A model that exists already; `relative_path` is what its card knows of the export."""
    export = HfExport(
        name="lab/model", version="2026.09.01", fingerprint="1512cff8", relative_path=relative_path
    )
    return hf_model(ModelCard(kind="model", name="lab-model", export=export), export)


def data_step() -> ArtifactStep:
    """A dataset that exists already."""
    export = HfExport(name="lab/data", version="2026.09.01", fingerprint="425a569b")
    return dataset(DatasetCard(kind="dataset", name="lab-data", export=export), export)


def tasktrove_source(manifest_path: str) -> TaskTroveDataSource:
    """Tasks of one source, with their manifest at `manifest_path`."""
    selection = TaskTroveSelection(sources=("swe",), tags=(), modes=(), tag_match="all", limit=None, seed=0)
    return TaskTroveDataSource(
        step=data_step(),
        selection=selection,
        relative_path="pack.parquet",
        manifest_path=manifest_path,
        verifier_ref="verify-tool@1.4.0",
    )


def rl_step(
    model: ArtifactStep,
    *,
    name: str = "lab/run",
    relative_path: str | None = None,
    export_hf: bool = False,
    data: TaskTroveDataSource | None = None,
    execution: IrisSkyRLExecution | None = None,
    ttl_days: int = 14,
) -> ArtifactStep:
    """An RL step on one node of 8 GPUs that starts from `model`."""
    spec = SkyRLSpec(
        name=name,
        version="2026.09.21",
        recipe=SkyRLRecipe.combine(),
        context_budget=SkyRLContextBudget(
            request_window_tokens=1536,
            max_new_tokens_per_turn=1024,
            max_turns=1,
            generated_budget_fraction=None,
            overlong_cache_fraction=None,
        ),
        runtime=SkyRLRuntime(profile="fsdp", commit=COMMIT),
        model=ArtifactHfModel(
            step=model,
            tokenizer_uri="Qwen/Qwen3-0.6B",
            tokenizer_revision="c" * 40,
            relative_path=relative_path,
        ),
        train_data=(data or ArtifactDataSource(step=data_step(), relative_path="train.parquet"),),
        validation_data=(),
        topology=SkyRLTopology(num_nodes=1, gpus_per_node=8, gpu_variant="H100", role_plan=_one_node()),
        retention=SkyRLRetentionPolicy(resume_checkpoint_count=2, temporary_storage_ttl_days=ttl_days),
        seed=17,
    )
    return skyrl_step(spec, execution or placement(), export_hf=export_hf)


def _one_node() -> SkyRLRolePlan:
    return SkyRLRolePlan(
        colocate_all=True,
        colocate_policy_ref=True,
        policy_num_nodes=1,
        reference_num_nodes=1,
        policy_num_gpus_per_node=8,
        num_inference_engines=8,
        inference_engine_tensor_parallel_size=1,
        inference_engine_pipeline_parallel_size=1,
        inference_engine_data_parallel_size=1,
        inference_engine_expert_parallel_size=1,
        train_batch_size=16,
        policy_mini_batch_size=16,
        micro_train_batch_size_per_gpu=1,
        n_samples_per_prompt=4,
    )


def placement(**changes: Any) -> IrisSkyRLExecution:
    """The placement of the contract's first example, with `changes`."""
    values: dict[str, Any] = {
        "cluster": "cw-us-east-02a",
        "cluster_config": "lib/iris/config/cw-us-east-02a.yaml",
        "cpu": 48.0,
        "memory": "700GB",
        "disk": "2TB",
        "priority": "batch",
        "max_retries": 1,
        "target_cluster": "cw-us-east-02a",
        "parent_cluster_config": "lib/iris/config/marin.yaml",
        "coordinator_timeout_hours": 12,
        "wandb_entity": "lab",
        "job_timeout_seconds": 0,
    }
    return IrisSkyRLExecution(**values | changes)
