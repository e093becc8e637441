"""The smallest experiments the launcher can launch: one node, one optimizer step, one for each case."""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tools.launcher.catalog.load import (
    load_cluster_card,
    load_dataset_card,
    load_model_card,
    load_runtime_manifest,
)
from tools.launcher.cli.plan_experiment import plan_experiment
from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.graph.ledger import VersionLedger
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.rehearsal.standin import import_dataset, import_model
from tools.launcher.rl import (
    ArtifactDataSource,
    ArtifactHfModel,
    BuildInputs,
    HfExport,
    IrisSkyRLExecution,
    SkyRLContextBudget,
    SkyRLRecipe,
    SkyRLRetentionPolicy,
    SkyRLRolePlan,
    SkyRLSpec,
    SkyRLTopology,
    dataset,
    hf_model,
    skyrl_step,
)
from tools.launcher.store.bundles import LaunchBundle, pack
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.submit.request import LaunchFacts, coordinator_job_name

VERSION = "2026.11.30"
COORDINATOR_STARTS = 4
"""How often Iris starts a coordinator of these experiments that was killed, the first time included."""

_THIRD_PARTY = Path("third_party")
_CLUSTER = _THIRD_PARTY / "clusters/local.yaml"
_MODEL = HfExport(name="slipway/qwen3-0.6b", version="2026.11.30", fingerprint="c0ffee06", relative_path="hf")
_TOKENIZER, _REVISION = "Qwen/Qwen3-0.6B", "c1899de289a04d12100db370d81485cdf75e47ca"

_RECIPE: dict[str, dict[str, object]] = {
    "objective": {
        "entrypoint": "standard",
        "environment": {"env_class": "cat_count"},
        "trainer": {"algorithm": {"advantage_estimator": "grpo", "use_kl_loss": False}},
        "generator": {"sampling_params": {"temperature": 1.0}},
    },
    "backend": {
        "trainer": {"strategy": "fsdp2", "micro_forward_batch_size_per_gpu": 1},
        "generator": {"backend": "vllm", "run_engines_locally": True, "gpu_memory_utilization": 0.7},
    },
    "logging": {"trainer": {"logger": "console", "project_name": "slipway"}},
    "schedule": {
        "data": {"kind": "parquet"},
        "trainer": {
            "epochs": 1,
            "max_steps": 1,
            "ckpt_interval": 1,
            "resume_mode": "latest",
            "eval_before_train": False,
            "eval_interval": -1,
        },
    },
}


class Experiment(BaseModel):
    """One built experiment.

    Attributes:
        name: of the experiment and of its RL step.
        files: the flags that name its outputs and the cluster card on a launcher's command line.
        launch_digest, bundle_digest: 64 hex digits.
        artifact: name of its RL step.
        job_name: of the coordinator of its first launch.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    name: str
    artifact: str
    files: tuple[str, ...]
    launch_digest: str
    bundle_digest: str
    job_name: str

    @property
    def bundle(self) -> str:
        """Regex for the key of its bundle; the others are for keys of its records."""
        return f"bundles/sha256/{self.bundle_digest}$"

    @property
    def records(self) -> str:
        """Everything below it is of its runs."""
        return f"runs/{self.name}/"

    @property
    def claims(self) -> str:
        """The claims on its version."""
        return f"versions/{self.artifact}/{VERSION}/claims/"

    @property
    def turns(self) -> str:
        """The turns of its version."""
        return f"versions/{self.artifact}/{VERSION}/turns/"

    @property
    def provenance(self) -> str:
        """The provenance of its first run."""
        return f"runs/{self.name}/{self.launch_digest}/1/provenance"

    def event(self, number: int) -> str:
        """The event `number` of its first run."""
        return f"runs/{self.name}/{self.launch_digest}/1/events/{number:04d}"


def build_experiment(
    folder: Path, name: str, *, artifact: str | None = None, seed: int = 17, priority: str = "interactive"
) -> Experiment:
    """Write the outputs of an experiment into `folder`, as its build would.

    Args:
        folder: made if need be.
        name: of the experiment; in every key and job name of it.
        artifact: name of its RL step, the experiment's if not given.
        seed: another seed is another recipe under the same version.
        priority: another one is another placement of the same recipe.
    """
    inputs = _inputs()
    artifact = artifact or f"slipway/{name}"
    planned = plan_experiment(
        (_run(inputs, artifact, seed, priority),),
        inputs,
        label=f"//tests/faults:{name}",
        options={},
        stage="rl",
        smoke=None,
        ledger=VersionLedger(),
    )
    folder.mkdir(parents=True, exist_ok=True)
    outputs = {
        "launch": planned.launch,
        "digest": planned.digest,
        "graph": planned.graph,
        "plan": planned.plan,
    }
    for output, data in outputs.items():
        (folder / output).write_bytes(data)
    bundle = LaunchBundle(
        launch_yaml=planned.launch,
        graph_json=planned.graph,
        plan_json=planned.plan,
        digest_text=planned.digest.decode(),
    )
    launch_digest = json.loads(planned.plan)["digests"]["launch"]
    facts = LaunchFacts(
        experiment_name=name,
        stage="rl",
        default_stage="rl",
        ordinal=1,
        cluster="local",
        store_url="gs://unused",
        object_root_url=None,
        coordinator_timeout_hours=1,
    )
    return Experiment(
        name=name,
        artifact=artifact,
        files=(*(f"--{output}={folder / output}" for output in outputs), f"--cluster={_CLUSTER.absolute()}"),
        launch_digest=launch_digest,
        bundle_digest=sha256_hex(pack(bundle)),
        job_name=coordinator_job_name(facts, launch_digest),
    )


def import_inputs(experiment: Experiment, object_root: ObjectRoot) -> None:
    """Make the model and the data that every experiment reads, so that coordinators reuse them."""
    for step in json.loads(_output(experiment, "graph"))["steps"]:
        folder = object_root.path(step["output_path"])
        names = {name: step[name] for name in ("name", "version", "fingerprint")}
        if step["kind"] == "hf_model":
            import_model(
                folder,
                **names,
                relative_path=step["config"]["relative_path"],
                model_name=step["config"]["model"],
                tokenizer_uri=_TOKENIZER,
                tokenizer_revision=_REVISION,
            )
        elif step["kind"] == "dataset":
            import_dataset(
                folder,
                **names,
                relative_paths=step["config"]["relative_paths"],
                env_class=step["config"]["env_class"],
            )


def _output(experiment: Experiment, name: str) -> bytes:
    flag = f"--{name}="
    path = next(word.removeprefix(flag) for word in experiment.files if word.startswith(flag))
    return Path(path).read_bytes()


def _inputs() -> BuildInputs:
    model = load_model_card(_read("models/qwen3_0_6b.yaml"), source="model card")
    data = load_dataset_card(_read("datasets/cat_count.yaml"), source="dataset card")
    return BuildInputs(
        version=VERSION,
        runtime=load_runtime_manifest(_read("marinskyrl/81ae0ef7.yaml"), source="manifest"),
        cluster=load_cluster_card(_read("clusters/local.yaml"), source="cluster card"),
        models={model.name: model},
        datasets={data.name: data},
    )


def _read(path: str) -> bytes:
    return (_THIRD_PARTY / path).read_bytes()


def _run(inputs: BuildInputs, name: str, seed: int, priority: str) -> ArtifactStep:
    cats = inputs.dataset("cat-count")
    data = dataset(cats, cats.export)
    spec = SkyRLSpec(
        name=name,
        version=inputs.version,
        recipe=SkyRLRecipe.combine(**_RECIPE),
        context_budget=SkyRLContextBudget(
            request_window_tokens=128,
            max_new_tokens_per_turn=64,
            max_turns=1,
            generated_budget_fraction=None,
            overlong_cache_fraction=None,
        ),
        runtime=inputs.skyrl_runtime("fsdp"),
        model=ArtifactHfModel(
            step=hf_model(inputs.model("qwen3-0.6b"), _MODEL),
            tokenizer_uri=_TOKENIZER,
            tokenizer_revision=_REVISION,
            relative_path=_MODEL.relative_path,
        ),
        train_data=(ArtifactDataSource(step=data, relative_path="train.jsonl"),),
        validation_data=(ArtifactDataSource(step=data, relative_path="validation.jsonl"),),
        topology=SkyRLTopology(
            num_nodes=1,
            gpus_per_node=8,
            gpu_variant="H100",
            role_plan=SkyRLRolePlan(
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
                train_batch_size=8,
                policy_mini_batch_size=8,
                micro_train_batch_size_per_gpu=1,
                n_samples_per_prompt=4,
            ),
        ),
        retention=SkyRLRetentionPolicy(resume_checkpoint_count=1, temporary_storage_ttl_days=1),
        seed=seed,
    )
    execution = IrisSkyRLExecution(
        cluster=inputs.cluster.name,
        cluster_config="embedded",
        cpu=8,
        memory="64GB",
        disk="64GB",
        priority=priority,
        max_retries=COORDINATOR_STARTS - 1,
        target_cluster=None,
        parent_cluster_config=None,
        coordinator_timeout_hours=1,
        wandb_entity=None,
        job_timeout_seconds=1800,
        credentials=(),
    )
    return skyrl_step(spec, execution, export_hf=True)
