"""For tests: a small launch document of two tasks and the artifacts it needs."""

import copy
from typing import Any

from tools.launcher.documents.yaml_writer import dump_yaml
from tools.launcher.rehearsal.standin import import_dataset, import_model
from tools.launcher.store.locations import ObjectRoot

MODEL_FINGERPRINT = "1512cff8" * 8
DATA_FINGERPRINT = "425a569b" * 8
REVISION = "c1899de289a04d12100db370d81485cdf75e47ca"
_OUTPUT = "local://marin/lab/cat-count/2026.11.30"
_TEMPORARY = "local://scratch/tmp/ttl=14d/skyrl/marin/lab/cat-count/2026.11.30"

DOCUMENT: dict[str, Any] = {
    "schema_version": 1,
    "run": {
        "id": "lab/cat-count-2026.11.30",
        "attempt_id": "0123456789ab",
        "seed": 17,
        "mode": "train",
        "submission": "wait",
        "export_hf": True,
    },
    "runtime": {
        "launcher_commit": "81ae0ef7033c500207b191a2ae7c3806f6dc78ff",
        "profile": "fsdp",
        "entrypoint": "",
        "experiments_dir": "/app/experiments",
        "task_env": {},
    },
    "iris": {
        "cluster": "local",
        "cluster_config": "local",
        "job_name": "lab-cat-count-2026.11.30-0123456789ab",
        "wandb_entity": None,
        "allocation": {
            "num_nodes": 2,
            "gpus_per_node": 8,
            "gpu_variant": "H100",
            "cpu": 8.0,
            "memory": "16GB",
            "disk": "16GB",
        },
        "priority": "batch",
        "max_retries": 0,
        "timeout": 0,
        "target_cluster": None,
        "parent_cluster_config": None,
    },
    "ray": {
        "port": 6379,
        "spill_backend": "local",
        "spill_dir": "/tmp/skyrl-ray-spill",
        "rendezvous_dir": f"{_TEMPORARY}/attempts/rendezvous",
        "log_dir": f"{_TEMPORARY}/attempts/ray-logs",
        "rendezvous_timeout": 1800,
        "cluster_join_timeout": 1800,
        "driver_liveness_timeout": 9000,
    },
    "artifacts": {
        "checkpoint_root": f"{_TEMPORARY}/checkpoints",
        "export_root": f"{_OUTPUT}/exports",
        "attempts_root": f"{_TEMPORARY}/attempts",
        "resolved_config_uri": f"{_OUTPUT}/resolved-launch.yaml",
        "terminal_manifest_uri": f"{_OUTPUT}/terminal.json",
        "resume_checkpoint_count": 2,
    },
    "inputs": {
        "model": {
            "uri": "local://marin/lab/qwen/2026.09.01/hf/step-32",
            "identity": "lab/qwen@2026.09.01:1512cff8",
            "local_path": "/tmp/marinskyrl/models/qwen",
            "tokenizer_uri": "Qwen/Qwen3-0.6B",
            "tokenizer_revision": REVISION,
            "chat_template": None,
        },
        "data_kind": "parquet",
        "train_data": [
            {
                "uri": "local://marin/lab/cats/2026.09.01",
                "identity": "lab/cats@2026.09.01:425a569b",
                "local_path": "/tmp/marinskyrl/data/cats",
                "relative_path": "train.parquet",
                "kind": "directory",
            }
        ],
        "validation_data": [
            {
                "uri": "local://marin/lab/cats/2026.09.01",
                "identity": "lab/cats@2026.09.01:425a569b",
                "local_path": "/tmp/marinskyrl/data/cats",
                "relative_path": "validation.parquet",
                "kind": "directory",
            }
        ],
    },
    "skyrl": {
        "entrypoint": "standard",
        "context_budget": {"request_window_tokens": 512, "max_new_tokens_per_turn": 64, "max_turns": 1},
        "environment": {"env_class": "cat_count"},
        "data": {"kind": "parquet"},
        "trainer": {
            "strategy": "fsdp2",
            "algorithm": {"advantage_estimator": "grpo", "use_kl_loss": False},
            "epochs": 1,
            "max_steps": 8,
            "ckpt_interval": 3,
            "resume_mode": "latest",
            "placement": {"colocate_all": True, "policy_num_nodes": 2, "policy_num_gpus_per_node": 8},
            "train_batch_size": 16,
            "policy_mini_batch_size": 8,
            "micro_train_batch_size_per_gpu": 1,
        },
        "generator": {"sampling_params": {"temperature": 1.0}, "n_samples_per_prompt": 4},
        "extra_env": {},
    },
}


def document(**changes: Any) -> dict[str, Any]:
    """Return a copy of DOCUMENT; `changes` maps a path written with `__` to a value (`run__seed=3`)."""
    made = copy.deepcopy(DOCUMENT)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place: Any = made
        for parent in parents:
            place = place[parent]
        place[last] = value
    return made


def document_bytes(**changes: Any) -> bytes:
    """Return `document` as YAML."""
    return dump_yaml(document(**changes))


def import_inputs(object_root: ObjectRoot, env_class: str = "cat_count") -> None:
    """Make the two artifacts the document names."""
    import_model(
        object_root.path("local://marin/lab/qwen/2026.09.01"),
        name="lab/qwen",
        version="2026.09.01",
        fingerprint=MODEL_FINGERPRINT,
        relative_path="hf/step-32",
        model_name="qwen3-0.6b",
        tokenizer_uri="Qwen/Qwen3-0.6B",
        tokenizer_revision=REVISION,
    )
    import_dataset(
        object_root.path("local://marin/lab/cats/2026.09.01"),
        name="lab/cats",
        version="2026.09.01",
        fingerprint=DATA_FINGERPRINT,
        relative_paths=["train.parquet", "validation.parquet"],
        env_class=env_class,
    )
