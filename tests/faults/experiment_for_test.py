"""The smallest experiments the launcher can launch: cat_count on one node, with one optimizer step, one for each case."""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tools.launcher.catalog.load import (
    load_cluster_card,
    load_dataset_card,
    load_model_card,
    load_runtime_manifest,
)
from tools.launcher.cli.experiment_module import load_experiment
from tools.launcher.cli.plan_experiment import plan_experiment
from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.graph.ledger import VersionLedger
from tools.launcher.rehearsal.standin import import_dataset, import_model
from tools.launcher.rl import BuildInputs
from tools.launcher.store.bundles import LaunchBundle, pack
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.submit.request import LaunchFacts, coordinator_job_name

VERSION = "2026.11.30"
COORDINATOR_STARTS = 4
"""How often Iris starts a coordinator of these experiments that was killed, the first time included."""

_SOURCE = Path("experiments/cat_count/experiment.py")
_OPTIONS = {"scale": "smoke"}
_SMALLER = {
    '"smoke": 20': '"smoke": 1',
    "steps // 4": "steps",
    "num_nodes=2,": "num_nodes=1,",
    "num_inference_engines=16,": "num_inference_engines=8,",
    "batch_size=32,": "batch_size=8,",
    "resume_checkpoint_count=2,": "resume_checkpoint_count=1,",
    "max_retries=0,": f"max_retries={COORDINATOR_STARTS - 1},",
}
"""Text of that source -> what stands there instead."""

_THIRD_PARTY = Path("third_party")
_CLUSTER = _THIRD_PARTY / "clusters/local.yaml"


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
    folder.mkdir(parents=True, exist_ok=True)
    main_file = folder / "experiment.py"
    main_file.write_text(_source_of(artifact, seed, priority))
    planned = plan_experiment(
        load_experiment(main_file).build(inputs, _OPTIONS),
        inputs,
        label=f"//tests/faults:{name}",
        options=_OPTIONS,
        stage="rl",
        smoke=None,
        ledger=VersionLedger(),
    )
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
    model = load_yaml_mapping(_output(experiment, "launch"), source="launch document")["inputs"]["model"]
    for step in json.loads(_output(experiment, "graph"))["steps"]:
        folder = object_root.path(step["output_path"])
        names = {name: step[name] for name in ("name", "version", "fingerprint")}
        if step["kind"] == "hf_model":
            import_model(
                folder,
                **names,
                relative_path=step["config"]["relative_path"],
                model_name=step["config"]["model"],
                tokenizer_uri=model["tokenizer_uri"],
                tokenizer_revision=model["tokenizer_revision"],
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


def _source_of(artifact: str, seed: int, priority: str) -> str:
    source = _SOURCE.read_text(encoding="utf-8")
    own = {
        'name="slipway/cat-count-rl"': f'name="{artifact}"',
        "seed=17,": f"seed={seed},",
        'priority="interactive"': f'priority="{priority}"',
    }
    for old, new in (_SMALLER | own).items():
        assert old in source, f"{_SOURCE} does not have {old}"
        source = source.replace(old, new)
    return source
