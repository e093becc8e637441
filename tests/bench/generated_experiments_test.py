"""The generated experiments are legal, all different, and the same every time."""

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.generated_experiments import GeneratedExperiment, generated_experiment, write_experiments
from tools.launcher.catalog.load import (
    load_cluster_card,
    load_dataset_card,
    load_model_card,
    load_runtime_manifest,
)
from tools.launcher.cli.experiment_module import load_experiment
from tools.launcher.cli.plan_experiment import PlannedExperiment, plan_experiment
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.graph.ledger import VersionLedger
from tools.launcher.rl import BuildInputs

PLANNED = (3, 5, 16, 29)
"""One of each kind: a dense model with FSDP2, one on the local cluster, one with Megatron, a mixture of experts."""


def target_of(experiment: GeneratedExperiment) -> dict[str, Any]:
    """The attributes of its rl_experiment."""
    calls = [
        node.value for node in ast.parse(experiment.files["BUILD.bazel"]).body if isinstance(node, ast.Expr)
    ]
    (target,) = (
        call
        for call in calls
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "rl_experiment"
    )
    return {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in target.keywords}


def card(label: str) -> bytes:
    return Path(label.removeprefix("//").replace(":", "/") + ".yaml").read_bytes()


def planned(experiment: GeneratedExperiment, folder: Path) -> PlannedExperiment:
    """Plan it as its target would. Raises PreflightFailed where a check refuses it."""
    target = target_of(experiment)
    (model,) = (load_model_card(card(label), source=label) for label in target["models"])
    (dataset,) = (load_dataset_card(card(label), source=label) for label in target["datasets"])
    runtime = Path("third_party/marinskyrl/81ae0ef7.yaml")
    inputs = BuildInputs(
        version=target["version"],
        runtime=load_runtime_manifest(runtime.read_bytes(), source=str(runtime)),
        cluster=load_cluster_card(card(target["cluster"]), source=target["cluster"]),
        models={model.name: model},
        datasets={dataset.name: dataset},
    )
    options = {name: str(value).lower() for name, value in target["options"].items()}
    main = load_experiment(folder / experiment.name / "experiment.py")
    return plan_experiment(
        main.build(inputs, options),
        inputs,
        label=f"{experiment.label}:{experiment.name}",
        options=options,
        stage="rl",
        smoke=None,
        ledger=VersionLedger(),
    )


@pytest.mark.parametrize("number", PLANNED)
def test_one_of_each_kind_passes_preflight(number, tmp_path):
    (experiment,) = write_experiments(tmp_path, range(number, number + 1))
    document = load_yaml_mapping(planned(experiment, tmp_path / "experiments/gen").launch, source="launch")
    # Each has a name and a seed of its own, so no two documents are equal.
    assert document["run"]["seed"] == 17 + number
    assert experiment.name in document["run"]["id"]


def test_they_differ_in_what_a_plan_depends_on():
    sources = [generated_experiment(number).files["experiment.py"] for number in PLANNED]
    assert len({source.count("megatron_config") for source in sources}) == 2
    targets = [target_of(generated_experiment(number)) for number in range(1000)]
    assert len({target["cluster"] for target in targets}) == 4
    assert len({tuple(target["models"]) for target in targets}) == 5
    assert len({tuple(target["options"].items()) for target in targets}) == 4
    assert len({target["name"] for target in targets}) == 1000


def test_a_number_is_always_the_same_experiment(tmp_path):
    write_experiments(tmp_path, range(12))
    written = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(written) == 24
    assert written[Path("experiments/gen/g0007/BUILD.bazel")] == generated_experiment(7).files["BUILD.bazel"]
    assert written == {
        Path("experiments/gen", f"g{number:04}", name): text
        for number in range(12)
        for name, text in generated_experiment(number).files.items()
    }


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
