"""For tests: the objects that the MarinSkyRL runtime leaves of a run that went well; `marinskyrl_files` says
from which of its sources the forms are."""

import copy
import json
from typing import Any

GANG_EPOCH = "4f1c9f7d8c6a4b0f9f3c0d3e6a5b2c1d"


def result_of(document: dict[str, Any], *, step: int, job_id: str) -> dict[str, Any]:
    """Return the launcher's answer, which is the `result` of what it writes.

    Args:
        document: the attempt's launch document.
        step: last training step.
        job_id: of the child.
    """
    run, artifacts, model = document["run"], document["artifacts"], document["inputs"]["model"]
    policy = {
        "policy_export_uri": f"{artifacts['export_root']}/global_step_{step}/policy",
        "global_step": step,
        "tokenizer_uri": model["tokenizer_uri"],
        "tokenizer_revision": model["tokenizer_revision"],
        "checkpoint_root": artifacts["checkpoint_root"],
        "terminal_manifest_uri": artifacts["terminal_manifest_uri"],
    }
    return {
        "run_id": run["id"],
        "attempt_id": run["attempt_id"],
        "state": "succeeded",
        "iris_job_id": job_id,
        "iris_job_state": "succeeded",
        "launcher_commit": document["runtime"]["launcher_commit"],
        "runtime_profile": document["runtime"]["profile"],
        "model": policy if run["export_hf"] else None,
        "failure": None,
    }


def leavings(document: dict[str, Any], *, step: int, job_id: str) -> dict[str, bytes]:
    """Return URI -> content; arguments as `result_of`."""
    run, artifacts, model = document["run"], document["artifacts"], document["inputs"]["model"]
    config = copy.deepcopy(document)
    policy = {
        "path": model["local_path"],
        "revision": model["identity"],
        "source_uri": model["uri"],
        "source_identity": model["identity"],
    }
    config["skyrl"]["trainer"]["policy"] = {"model": policy}
    resolved = {"config": config, "train_data_sources": [], "val_data_sources": []}
    manifest = {"config": config, "result": result_of(document, step=step, job_id=job_id)}
    checkpoint = f"{artifacts['checkpoint_root']}/global_step_{step}"
    found: dict[str, Any] = {
        artifacts["resolved_config_uri"]: resolved,
        f"{artifacts['attempts_root']}/{run['attempt_id']}.json": manifest,
        artifacts["terminal_manifest_uri"]: manifest,
        f"{checkpoint}/trainer_state.pt": b"PK",
        f"{checkpoint}/data.pt": b"PK",
        f"{checkpoint}/policy/model_world_size_8_rank_0.pt": b"PK",
        f"{artifacts['checkpoint_root']}/latest_ckpt_global_step.txt": str(step).encode(),
    }
    if run["export_hf"]:
        export = f"{artifacts['export_root']}/global_step_{step}/policy"
        shards = [f"model-{number:05}-of-00002.safetensors" for number in (1, 2)]
        found |= {
            f"{export}/config.json": {"architectures": ["Qwen3ForCausalLM"]},
            f"{export}/tokenizer_config.json": {},
            f"{export}/tokenizer.json": {},
            f"{export}/model.safetensors.index.json": {
                "metadata": {"total_size": 2},
                "weight_map": {"model.embed_tokens.weight": shards[0], "model.norm.weight": shards[1]},
            },
            **{f"{export}/{shard}": b"w" for shard in shards},
        }
    tasks = document["iris"]["allocation"]["num_nodes"]
    if tasks > 1:
        rendezvous = document["ray"]["rendezvous_dir"]
        head = {
            "gang_epoch": GANG_EPOCH,
            "head_ip": "10.0.0.1",
            "head_node": "g1",
            "port": 6379,
            "num_tasks": tasks,
            "python_version": "3.12.11",
            "ray_version": "2.51.1",
            "written_at": 1796000000.0,
        }
        done = {"gang_epoch": GANG_EPOCH, "outcome": "succeeded", "written_at": 1796000100.0}
        found |= {f"{rendezvous}/ray_head.json": head, f"{rendezvous}/ray_head.done": done}
    return {
        uri: content if isinstance(content, bytes) else json.dumps(content).encode()
        for uri, content in found.items()
    }
