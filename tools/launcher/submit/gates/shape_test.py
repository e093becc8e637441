import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.submit.gates.shape import SHAPE_PARTS, differences, shape_of
from tools.launcher.submit.request import LaunchMismatch

EXAMPLES = Path("tests/contract/examples")
LAUNCH = {
    name: load_yaml_mapping((EXAMPLES / f"{name}.yaml").read_bytes(), source=name)
    for name in ("smoke-fsdp", "moe-megatron")
}
GPUS = {"smoke-fsdp": (8, 0, 8), "moe-megatron": (32, 32, 32)}


def files(name: str = "smoke-fsdp") -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A launch document of the contract, with the parts of graph and plan that a shape is read from."""
    launch = copy.deepcopy(LAUNCH[name])
    model = launch["inputs"]["model"]
    steps = [
        {
            "identity": model["identity"],
            "kind": "hf_model",
            "output_path": model["uri"].removesuffix("/hf/step-32"),
        }
    ]
    roles = [
        {"role": role, "gpus": gpus}
        for role, gpus in zip(("policy", "reference", "rollout engines"), GPUS[name], strict=True)
    ]
    return launch, {"steps": steps}, {"entrypoint": "standard", "roles": roles}


def put(document: dict[str, Any], path: str, value: Any) -> None:
    *inner, leaf = path.split(".")
    for key in inner:
        document = document.setdefault(key, {})
    document[leaf] = value


@pytest.mark.parametrize("name", LAUNCH)
def test_a_shape_is_json_and_always_the_same(name):
    shape = shape_of(*files(name))
    assert json.loads(json.dumps(shape)) == shape == shape_of(*files(name))
    assert list(shape) == ["schema", *SHAPE_PARTS]


def test_what_the_shape_of_a_megatron_run_says():
    shape = shape_of(*files("moe-megatron"))
    assert shape["runtime"] == {"commit": "81ae0ef7033c500207b191a2ae7c3806f6dc78ff"}
    assert shape["strategy"] == {
        "training": "megatron",
        "profile": "megatron",
        "engine backend": "vllm",
        "LoRA": False,
    }
    assert shape["entrypoint"] == {
        "name": "standard",
        "mode": "train",
        "environment": "gsm8k",
        "agents": False,
    }
    hand_offs = shape["hand-offs"]
    assert hand_offs["model"] == "tests/qwen06-sft@2026.09.01:1512cff8"
    assert (hand_offs["model made by"], hand_offs["model path in the artifact"]) == ("hf_model", "hf/step-32")
    assert hand_offs["training data"] == ["directory .parquet"]
    geometry = shape["geometry"]
    assert geometry["GPUs of policy : reference : engines"] == "1 : 1 : 1"
    for size, value in {
        "engine DP": 8,
        "engine EP": 8,
        "policy megatron pp": 2,
        "policy megatron ep": 8,
        "policy megatron cp": 1,
        "reference sp": 1,
    }.items():
        assert geometry[size] == value


PLACEMENT = {
    "iris.cluster": st.text(),
    "iris.cluster_config": st.text(),
    "iris.job_name": st.text(),
    "iris.wandb_entity": st.none() | st.text(),
    "iris.priority": st.sampled_from(["batch", "interactive"]),
    "iris.max_retries": st.integers(0, 9),
    "iris.timeout": st.integers(0, 10**6),
    "iris.target_cluster": st.none() | st.text(),
    "iris.parent_cluster_config": st.none() | st.text(),
    "iris.allocation.num_nodes": st.integers(1, 500),
    "iris.allocation.cpu": st.integers(1, 200),
    "iris.allocation.memory": st.text(),
    "iris.allocation.disk": st.text(),
    "run.id": st.text(),
    "run.seed": st.integers(),
    "artifacts.checkpoint_root": st.text(),
    "artifacts.export_root": st.text(),
    "ray.rendezvous_dir": st.text(),
    "skyrl.trainer.placement.policy_num_nodes": st.integers(1, 500),
    "skyrl.trainer.placement.ref_num_nodes": st.integers(1, 500),
    "skyrl.generator.num_inference_engines": st.integers(1, 500),
    "skyrl.trainer.train_batch_size": st.integers(1, 9999),
    "skyrl.trainer.max_steps": st.integers(1, 9999),
    "skyrl.trainer.logger": st.text(),
    "skyrl.context_budget.max_turns": st.integers(1, 99),
}
"""What a smoke run may have otherwise."""


@given(changes=st.fixed_dictionaries({}, optional=PLACEMENT), factor=st.integers(1, 64))
def test_neither_placement_nor_size_is_part_of_a_shape(changes, factor):
    launch, graph, plan = files("moe-megatron")
    for path, value in changes.items():
        put(launch, path, value)
    for role in plan["roles"]:
        role["gpus"] *= factor
    assert shape_of(launch, graph, plan) == shape_of(*files("moe-megatron"))


def test_another_bucket_is_no_other_hand_off():
    launch, graph, plan = files()
    launch["inputs"]["model"]["uri"] = "gs://elsewhere/qwen/hf/step-32"
    graph["steps"][0]["output_path"] = "gs://elsewhere/qwen"
    assert shape_of(launch, graph, plan) == shape_of(*files())


COUNTS = [
    (
        "runtime.launcher_commit",
        "0" * 40,
        "runtime commit is 000000000000 here, 81ae0ef7033c in the smoke run",
    ),
    ("runtime.profile", "megatron", "strategy profile is megatron here, fsdp in the smoke run"),
    ("skyrl.trainer.strategy", "megatron", "strategy training is megatron here, fsdp2 in the smoke run"),
    ("skyrl.generator.backend", "sglang", "strategy engine backend is sglang here, vllm in the smoke run"),
    # Breaker, issue 4: a full run passed for the smoke of one with adapters, and NCCL for Gloo.
    ("skyrl.trainer.policy.model.lora.rank", 32, "strategy LoRA is yes here, no in the smoke run"),
    (
        "skyrl.generator.weight_sync_backend",
        "gloo",
        "hand-offs weight sync backend is gloo here, not written in the smoke run",
    ),
    (
        "skyrl.generator.weight_sync_transport",
        "expert_block",
        "hand-offs weight sync transport is expert_block here, not written in the smoke run",
    ),
    ("skyrl.environment.env_class", "x", "entrypoint environment is x here, gsm8k in the smoke run"),
    ("skyrl.terminal_bench", {}, "entrypoint agents is yes here, no in the smoke run"),
    (
        "inputs.model.tokenizer_revision",
        "main",
        (
            "hand-offs tokenizer is Qwen/Qwen3-0.6B@main here, "
            "Qwen/Qwen3-0.6B@c1899de289a04d12100db370d81485cdf75e47ca "
            "in the smoke run"
        ),
    ),
    ("inputs.data_kind", "tasks", "hand-offs data kind is tasks here, parquet in the smoke run"),
    (
        "inputs.validation_data",
        [],
        "hand-offs validation data is none here, directory .parquet in the smoke run",
    ),
    ("run.export_hf", False, "hand-offs exports the model is no here, yes in the smoke run"),
    ("skyrl.trainer.resume_mode", "none", "hand-offs resume mode is none here, latest in the smoke run"),
    ("artifacts.resume_checkpoint_count", 3, "hand-offs checkpoints kept is 3 here, 2 in the smoke run"),
    ("iris.allocation.gpus_per_node", 4, "geometry GPUs per node is 4 here, 8 in the smoke run"),
    ("iris.allocation.gpu_variant", "GB200", "geometry GPU is GB200 here, H100 in the smoke run"),
    (
        "skyrl.trainer.placement.colocate_all",
        False,
        "geometry colocate_all is no here, yes in the smoke run",
    ),
    (
        "skyrl.generator.inference_engine_tensor_parallel_size",
        2,
        "geometry engine TP is 2 here, 1 in the smoke run",
    ),
    ("skyrl.trainer.policy.sequence_parallel_size", 2, "geometry policy sp is 2 here, 1 in the smoke run"),
    (
        "skyrl.trainer.policy.fsdp_config.fsdp_size",
        4,
        "geometry policy fsdp shards is 4 here, all in the smoke run",
    ),
    ("skyrl.teachers", {}, "geometry teachers is yes here, no in the smoke run"),
]


@pytest.mark.parametrize(("path", "value", "says"), COUNTS, ids=[row[0] for row in COUNTS])
def test_what_counts_is_named_when_it_differs(path, value, says):
    launch, graph, plan = files()
    put(launch, path, value)
    assert differences(shape_of(launch, graph, plan), shape_of(*files())) == [says]


def test_another_model_or_another_entry_point_counts():
    launch, graph, plan = files()
    launch["inputs"]["model"]["identity"] = graph["steps"][0]["identity"] = "other@2026.09.01:00000000"
    plan["entrypoint"] = "fully_async"
    assert differences(shape_of(launch, graph, plan), shape_of(*files())) == [
        "entrypoint name is fully_async here, standard in the smoke run",
        (
            "hand-offs model is other@2026.09.01:00000000 here, tests/qwen06-sft@2026.09.01:1512cff8 "
            "in the smoke run"
        ),
    ]


def test_another_share_of_the_gpus_counts():
    launch, graph, plan = files("moe-megatron")
    plan["roles"][2]["gpus"] = 96
    assert differences(shape_of(launch, graph, plan), shape_of(*files("moe-megatron"))) == [
        "geometry GPUs of policy : reference : engines is 1 : 1 : 3 here, 1 : 1 : 1 in the smoke run"
    ]


def test_a_parallel_size_of_one_and_one_left_out_are_the_same():
    launch, graph, plan = files()
    put(launch, "skyrl.trainer.policy.sequence_parallel_size", 1)
    put(launch, "skyrl.trainer.policy.fsdp_config.fsdp_size", 8)
    assert shape_of(launch, graph, plan) == shape_of(*files())


def test_a_shape_of_an_older_launcher_differs():
    older = shape_of(*files())
    del older["geometry"]["GPU"]
    assert differences(shape_of(*files()), older) == [
        "geometry GPU is H100 here, not written in the smoke run"
    ]


@pytest.mark.parametrize("lacking", ["runtime", "inputs", "iris", "run", "artifacts"])
def test_files_that_lack_a_part_are_refused(lacking):
    launch, graph, plan = files()
    del launch[lacking]
    with pytest.raises(
        LaunchMismatch, match="the built files lack what a smoke is compared by .*Build the exp"
    ):
        shape_of(launch, graph, plan)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
