"""What a smoke run must have in common with the launch that relies on it.

docs/launching.md lists the fields for the people who meet them.
"""

import math
from collections.abc import Iterator
from typing import Any

from tools.launcher.submit.request import LaunchMismatch

SHAPE_SCHEMA = 1
SHAPE_PARTS = ("runtime", "strategy", "entrypoint", "hand-offs", "geometry")

_ROLES = ("policy", "reference", "rollout engines")

# Parallel sizes of training below `skyrl.trainer.<role>`. Left out, each is 1 in the runtime.
_TRAINING_SIZES = {
    "sp": "sequence_parallel_size",
    "megatron tp": "megatron_config.tensor_model_parallel_size",
    "megatron pp": "megatron_config.pipeline_model_parallel_size",
    "megatron cp": "megatron_config.context_parallel_size",
    "megatron ep": "megatron_config.expert_model_parallel_size",
    "fsdp cp": "fsdp_config.context_parallel_size",
    "fsdp ep": "fsdp_config.expert_model_parallel_size",
    "fsdp etp": "fsdp_config.expert_tensor_parallel_size",
}
_ENGINE_SIZES = {
    "TP": "inference_engine_tensor_parallel_size",
    "PP": "inference_engine_pipeline_parallel_size",
    "DP": "inference_engine_data_parallel_size",
    "EP": "inference_engine_expert_parallel_size",
}


def shape_of(launch: dict[str, Any], graph: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    """Return the shape of a launch as JSON values; the same files give the same shape.

    Node counts, batch sizes, step counts, learning rates, data identities, names, versions and everything of
    the placement (cluster, CPU, memory, disk, priority, hub, deadlines, retries) are not part of it: a smoke
    is small and may run elsewhere.

    Args:
        launch: the pinned launch document.
        graph: the graph document.
        plan: the plan.

    Raises:
        LaunchMismatch: one of them lacks what makes a shape.
    """
    try:
        return {
            "schema": SHAPE_SCHEMA,
            "runtime": {"commit": launch["runtime"]["launcher_commit"]},
            "strategy": {
                "training": _at(launch, "skyrl.trainer.strategy"),
                "profile": launch["runtime"]["profile"],
                "engine backend": _at(launch, "skyrl.generator.backend"),
                # The rank is a size; with or without is another way to load, synchronize and checkpoint.
                "LoRA": bool(_at(launch, "skyrl.trainer.policy.model.lora.rank")),
            },
            "entrypoint": {
                "name": plan["entrypoint"],
                "mode": launch["run"]["mode"],
                "environment": _at(launch, "skyrl.environment.env_class"),
                "agents": _at(launch, "skyrl.terminal_bench") is not None,
            },
            "hand-offs": _hand_offs(launch, graph),
            "geometry": _geometry(launch, plan),
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise LaunchMismatch(
            f"the built files lack what a smoke is compared by ({type(error).__name__}: {error}). Build the "
            "experiment again"
        ) from None


def differences(wanted: dict[str, Any], seen: dict[str, Any]) -> list[str]:
    """Return what differs, one sentence without a full stop each, in the order of the shape.

    Args:
        wanted: shape of the launch.
        seen: shape of the smoke run.
    """
    here, there = dict(_leaves(wanted)), dict(_leaves(seen))
    return [
        f"{field} is {_shown(here.get(field))} here, {_shown(there.get(field))} in the smoke run"
        for field in dict.fromkeys((*here, *there))
        if here.get(field) != there.get(field)
    ]


def _hand_offs(launch: dict[str, Any], graph: dict[str, Any]) -> dict[str, Any]:
    """Which artifacts feed the training step in which form, and what it hands on."""
    model = launch["inputs"]["model"]
    step = next((step for step in graph["steps"] if step["identity"] == model["identity"]), None)
    inside = model["uri"].removeprefix(step["output_path"]).strip("/") if step else model["uri"]
    return {
        "model": model["identity"],
        "model made by": step["kind"] if step else None,
        "model path in the artifact": inside,
        "tokenizer": f"{model['tokenizer_uri']}@{model['tokenizer_revision']}",
        "chat template": model["chat_template"],
        "data kind": launch["inputs"]["data_kind"],
        "training data": _forms(launch["inputs"]["train_data"]),
        "validation data": _forms(launch["inputs"]["validation_data"]),
        "weight sync backend": _at(launch, "skyrl.generator.weight_sync_backend"),
        "weight sync transport": _at(launch, "skyrl.generator.weight_sync_transport"),
        "exports the model": launch["run"]["export_hf"],
        "resume mode": _at(launch, "skyrl.trainer.resume_mode"),
        "checkpoints kept": launch["artifacts"]["resume_checkpoint_count"],
    }


def _forms(sources: list[dict[str, Any]]) -> list[str]:
    """Record kind and file ending of each form of data, each once."""
    endings = ((source["kind"], source["relative_path"].rpartition("/")[2]) for source in sources)
    return sorted(
        {f"{kind} {'.' + name.rpartition('.')[2] if '.' in name else 'folder'}" for kind, name in endings}
    )


def _geometry(launch: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    allocation = launch["iris"]["allocation"]
    gpus = {role["role"]: int(role["gpus"]) for role in plan["roles"]}
    counts = [gpus[role] for role in _ROLES]
    common = math.gcd(*counts) or 1
    geometry: dict[str, Any] = {
        "GPUs per node": allocation["gpus_per_node"],
        "GPU": allocation["gpu_variant"],
        "colocate_all": _at(launch, "skyrl.trainer.placement.colocate_all"),
        "colocate_policy_ref": _at(launch, "skyrl.trainer.placement.colocate_policy_ref"),
        "GPUs of policy : reference : engines": " : ".join(str(count // common) for count in counts),
        "teachers": _at(launch, "skyrl.teachers") is not None,
        "draft training": _at(launch, "skyrl.generator.speculative_decoding.training") is not None,
        "engines in the job": _at(launch, "skyrl.generator.run_engines_locally"),
        "engines across nodes": bool(_at(launch, "skyrl.generator.inference_engine_mp_backend")),
        **{f"engine {name}": _at(launch, f"skyrl.generator.{key}") for name, key in _ENGINE_SIZES.items()},
    }
    for role, key in (("policy", "policy"), ("reference", "ref")):
        base = f"skyrl.trainer.{key}"
        sizes = {name: _at(launch, f"{base}.{path}") for name, path in _TRAINING_SIZES.items()}
        geometry |= {f"{role} {name}": 1 if size is None else size for name, size in sizes.items()}
        # Left out it follows from the others, so that it is no size of 1.
        geometry[f"{role} megatron etp"] = _at(launch, f"{base}.megatron_config.expert_tensor_parallel_size")
        geometry[f"{role} fsdp shards"] = _shards(_at(launch, f"{base}.fsdp_config.fsdp_size"), gpus[role])
    return geometry


def _shards(size: Any, world: int) -> Any:
    """`all` for a group that spans the role, which grows with the nodes; else its size."""
    return "all" if size in (None, -1, world) else size


def _at(document: Any, path: str) -> Any:
    """The value at a dotted path, None where it is not written."""
    for key in path.split("."):
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def _leaves(shape: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in shape.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key} ")
        else:
            yield f"{prefix}{key}", value


def _shown(value: Any) -> str:
    if value is None:
        return "not written"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    text = str(value)
    return text[:12] if len(text) == 40 and all(c in "0123456789abcdef" for c in text) else text
