"""Every experiment of the repository: lint and the rehearsal take its golden, its smoke has its shape, and a
typical mistake in its source is refused by name."""

import argparse
import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.launcher.cli import lint_command, preflight_action
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.iris.local.shapes import GangShape, check_offered
from tools.launcher.rehearsal.document import read_document
from tools.launcher.submit.gates.shape import differences, shape_of

RUNTIME = "third_party/marinskyrl/81ae0ef7.yaml"
FOLDERS = sorted(path.parents[1] for path in Path("experiments").glob("*/golden/launch.yaml"))
CARD_FLAGS = {"models": "model", "datasets": "dataset"}

# An experiment, what its source says, what somebody writes instead, and the id that names the mistake.
MISTAKES = [
    ("cat_count", "num_inference_engines=16", "num_inference_engines=15", "GEO-08"),
    (
        "gb200_moe",
        "inference_engine_data_parallel_size=GPUS",
        "inference_engine_data_parallel_size=8",
        "GEO-04",
    ),
    ("gb200_moe", 'memory="760GB"', 'memory="1400GB"', "EXE-05"),
    ("gb200_moe", "num_nodes=2 * sized.nodes_per_side", "num_nodes=17", "GEO-10"),
    ("gsm8k_async", "colocate_all=False", "colocate_all=True", "OBJ-14"),
    ("gsm8k_async", "policy_mini_batch_size=PROMPTS", "policy_mini_batch_size=PROMPTS // 2", "BAT-07"),
    ("gsm8k_async", "PROMPTS * (STALENESS + 1)", "PROMPTS // 2", "BAT-18"),
    ("gsm8k_chain", "num_inference_engines=8", "num_inference_engines=4", "GEO-08"),
    (
        "gsm8k_grpo",
        "inference_engine_tensor_parallel_size=1",
        "inference_engine_tensor_parallel_size=3",
        "CTX-08",
    ),
    (
        "moe_ep8",
        "inference_engine_expert_parallel_size=GPUS",
        "inference_engine_expert_parallel_size=4",
        "GEO-07",
    ),
    ("moe_ep8", '"expert_model_parallel_size": GPUS', '"expert_model_parallel_size": 3', "BKD-07"),
    ("moe_ep8", '"tensor_model_parallel_size": 1', '"tensor_model_parallel_size": 3', "BKD-06"),
    ("swe_agents", 'sources=("swe",), tags=("python",)', "sources=(), tags=()", "ART-10"),
    ("swe_agents", '("DAYTONA_RL_API_KEY", "WANDB_API_KEY")', '("DAYTONA_RL_API_KEY",)', "EXE-12"),
    ("swe_agents", '"sequence_parallel_size": 4', '"sequence_parallel_size": 3', "GEO-26"),
    (
        "swe_agents",
        'target_cluster=inputs.cluster.name,\n        parent_cluster_config="lib/iris/config/marin.yaml"',
        "target_cluster=None,\n        parent_cluster_config=None",
        "EXE-10",
    ),
]


def targets(folder: Path) -> dict[str, dict[str, Any]]:
    """The attributes of the rl_experiment targets of a package, by name; BUILD.bazel reads as Python."""
    calls = [
        statement.value
        for statement in ast.parse((folder / "BUILD.bazel").read_text(encoding="utf-8")).body
        if isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement.value.func) == "rl_experiment"
    ]
    found = [{str(word.arg): ast.literal_eval(word.value) for word in call.keywords} for call in calls]
    return {attributes["name"]: attributes for attributes in found}


def card_file(label: str) -> str:
    """The file of a card, named as its target is."""
    return label.removeprefix("//").replace(":", "/") + ".yaml"


def planned(folder: Path, name: str, out: Path, source: str | None = None) -> tuple[int, str]:
    """Run the preflight of a target, with another source if one is given; return its status and its errors."""
    attributes = targets(folder)[name]
    main_file = folder / attributes["main"]
    if source is not None:
        main_file = out / "experiment.py"
        main_file.write_text(source, encoding="utf-8")
    arguments = [
        f"--label=//{folder}:{name}",
        f"--main={main_file}",
        f"--version={attributes['version']}",
        f"--stage={attributes.get('stage', 'rl')}",
        f"--runtime={RUNTIME}",
        f"--cluster={card_file(attributes['cluster'])}",
        *(
            f"--{flag}={card_file(label)}"
            for list_name, flag in CARD_FLAGS.items()
            for label in attributes[list_name]
        ),
        *(f"--option={option}={value}" for option, value in attributes.get("options", {}).items()),
        *(f"--{output}_out={out / output}" for output in preflight_action.OUTPUTS),
    ]
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        status = preflight_action.main(arguments)
    return status, errors.getvalue()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_rehearsal_takes_the_golden_and_the_local_iris_its_gang(folder):
    golden = folder / "golden" / "launch.yaml"
    allocation = read_document(golden.read_bytes(), source=str(golden)).iris.allocation
    check_offered(GangShape(allocation.gpu_variant, allocation.gpus_per_node, allocation.num_nodes))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_lint_takes_the_golden(folder):
    attributes = targets(folder)[folder.name]
    parser = argparse.ArgumentParser()
    lint_command.add_arguments(parser)
    (model,), (data,) = attributes["models"], attributes["datasets"]
    flags = parser.parse_args(
        [
            f"{folder}/golden/launch.yaml",
            "--format=json",
            f"--runtime={RUNTIME}",
            f"--cluster_card={card_file(attributes['cluster'])}",
            f"--model_card={card_file(model)}",
            f"--dataset_card={card_file(data)}",
        ]
    )
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(printed):
        status = lint_command.run(flags)
    (entry,) = json.loads(printed.buffer.getvalue())["documents"]
    # On clusters whose temporary bucket is in another region that is said; nothing else is.
    assert (status, {item["id"] for item in entry["violations"]} - {"EXE-17"}) == (0, set())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_smoke_has_the_shape_of_what_it_stands_for(folder, tmp_path):
    of_package = targets(folder)
    for name, attributes in of_package.items():
        out = tmp_path / name
        out.mkdir()
        assert planned(folder, name, out) == (0, "")
        if "smoke" not in attributes:
            continue
        smoke = attributes["smoke"].removeprefix(":")
        small = tmp_path / "smoke"
        small.mkdir()
        assert planned(folder, smoke, small) == (0, "")
        assert differences(shape(out), shape(small)) == []


def shape(out: Path) -> dict[str, Any]:
    """The shape of what was planned into a folder."""
    launch = load_yaml_mapping((out / "launch").read_bytes(), source="launch")
    return shape_of(launch, json.loads((out / "graph").read_bytes()), json.loads((out / "plan").read_bytes()))


@pytest.mark.parametrize(
    ("name", "right", "wrong", "refused"), MISTAKES, ids=[f"{case[0]}-{case[3]}" for case in MISTAKES]
)
def test_a_typical_mistake_is_refused_by_name(name, right, wrong, refused, tmp_path):
    folder = Path("experiments") / name
    source = (folder / "experiment.py").read_text(encoding="utf-8")
    assert right in source
    status, errors = planned(folder, name, tmp_path, source.replace(right, wrong, 1))
    assert status == 1
    assert f"error: {refused} at " in errors


def test_every_experiment_has_a_mistake():
    assert {case[0] for case in MISTAKES} == {folder.name for folder in FOLDERS}


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
