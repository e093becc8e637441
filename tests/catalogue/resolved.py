"""What the launcher makes of a source document (contract, launch-document.md §2 and §4.9)."""

import copy
import re
from typing import Any

from tools.launcher.catalog.runtime_manifest import RuntimeManifest

_INTERPOLATION = re.compile(r"\$\{([^}]+)\}")
_CONSUMED = (
    *("entrypoint", "context_budget", "config_groups", "extra_env", "model_num_attention_heads"),
    "terminal_bench",
)
"""Keys below `skyrl` that the launcher reads and does not pass on."""
_NOT_IN_THE_TREE = ("dropped", "launcher")


def resolved(source: dict[str, Any], manifest: RuntimeManifest) -> dict[str, Any]:
    """Return the resolved form: base configuration, then recipe, then what composition writes.

    Args:
        source: a legal document in source form, with an entry point that trains.
        manifest: of the document's runtime; its defaults are the base configuration.
    """
    document = copy.deepcopy(source)
    recipe = document["skyrl"]
    entry = manifest.entrypoints[recipe.get("entrypoint", manifest.default_entrypoint)]
    colocated = recipe["trainer"].get("placement", {}).get("colocate_all", True)
    apart = entry.async_unless_colocated and not colocated
    document["runtime"] |= {
        "entrypoint": entry.module,
        "training_type": "async" if apart else entry.training_type,
    }
    document["inputs"]["data_kind"] = recipe["data"].pop("kind", "tasks")

    tree = _base_configuration(manifest)
    _merge(tree, {key: value for key, value in recipe.items() if key not in _CONSUMED})
    for path, value in {**_written(document), **_of_the_budget(recipe["context_budget"])}.items():
        _put(tree, path, value)
    _fill(tree, document["iris"]["allocation"], recipe)
    if "terminal_bench" in recipe:
        agents = copy.deepcopy(recipe["terminal_bench"] or {})
        tree["terminal_bench_config"] = agents | {
            "trials_dir": f"{document['artifacts']['attempts_root']}/trace_jobs"
        }
    _interpolate(tree, tree)
    document["skyrl"] = tree
    return document


def _base_configuration(manifest: RuntimeManifest) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, key in manifest.recipe_keys.items():
        if "default" in key.model_fields_set and key.owner not in _NOT_IN_THE_TREE:
            default = list(key.default) if isinstance(key.default, tuple) else copy.deepcopy(key.default)
            _put(tree, path, default)
    return tree


def _written(document: dict[str, Any]) -> dict[str, Any]:
    """Path below `skyrl` -> what composition takes from the other sections."""
    model, artifacts, run = document["inputs"]["model"], document["artifacts"], document["run"]
    return {
        "trainer.run_name": document["iris"]["job_name"],
        "trainer.export_path": artifacts["export_root"],
        "trainer.ckpt_path": artifacts["checkpoint_root"],
        "trainer.max_ckpts_to_keep": artifacts["resume_checkpoint_count"],
        "trainer.seed": run["seed"],
        "trainer.export_hf_artifact": run["export_hf"],
        "trainer.policy.model.path": model["local_path"],
        "trainer.policy.model.revision": model["identity"],
        "trainer.policy.model.source_uri": model["uri"],
        "trainer.policy.model.source_identity": model["identity"],
        "generator.engine_init_kwargs.served_model_name": model["local_path"].rpartition("/")[2],
        "generator.trajectory_retention.output_path": artifacts["attempts_root"] + "/trajectories",
        "data.train_data": [_staged(record) for record in document["inputs"]["train_data"]],
        "data.val_data": [_staged(record) for record in document["inputs"]["validation_data"]],
    }


def _fill(tree: dict[str, Any], allocation: dict[str, Any], recipe: dict[str, Any]) -> None:
    """Write the counts of the role plan that the recipe leaves out."""
    nodes, width = allocation["num_nodes"], allocation["gpus_per_node"]
    placement, generator = tree["trainer"]["placement"], tree["generator"]
    for role in ("policy", "ref"):
        placement.setdefault(f"{role}_num_nodes", nodes)
        placement.setdefault(f"{role}_num_gpus_per_node", width)
    tensor = recipe.get("generator", {}).get("inference_engine_tensor_parallel_size", 1)
    generator.setdefault("num_inference_engines", nodes * width // tensor)


def _staged(record: dict[str, Any]) -> str:
    return f"{record['local_path']}/{record['relative_path']}"


def _of_the_budget(budget: dict[str, Any]) -> dict[str, Any]:
    window, new, turns = (
        budget[name] for name in ("request_window_tokens", "max_new_tokens_per_turn", "max_turns")
    )
    answer = new if turns == 1 else max(1, int(window * budget.get("generated_budget_fraction", 0.5)))
    overlong = "generator.trajectory_reward_shaping.overlong"
    return {
        "trainer.max_prompt_length": window - new,
        "generator.max_input_length": window - new,
        "generator.max_turns": turns,
        "generator.sampling_params.max_generate_length": new,
        "generator.engine_init_kwargs.max_model_len": window,
        f"{overlong}.l_max": answer,
        f"{overlong}.l_cache": int(answer * budget.get("overlong_cache_fraction", 0.25)),
    }


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *sections, name = path.split(".")
    for section in sections:
        inner = tree.setdefault(section, {})
        if not isinstance(inner, dict):  # a section whose default is null
            inner = tree[section] = {}
        tree = inner
    tree[name] = value


def _merge(tree: dict[str, Any], recipe: dict[str, Any]) -> None:
    for key, value in recipe.items():
        if isinstance(value, dict) and isinstance(tree.get(key), dict):
            _merge(tree[key], value)
        elif value is not None and value != {}:  # such a value is ignored
            tree[key] = copy.deepcopy(value)


def _interpolate(node: Any, root: dict[str, Any]) -> None:
    for key, value in node.items() if isinstance(node, dict) else ():
        if isinstance(value, dict):
            _interpolate(value, root)
        elif isinstance(value, str) and (named := _INTERPOLATION.fullmatch(value)):
            node[key] = _look_up(root, named[1])


def _look_up(root: dict[str, Any], path: str) -> Any:
    value: Any = root
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return f"${{{path}}}"
        value = value[part]
    named = _INTERPOLATION.fullmatch(value) if isinstance(value, str) else None
    return value if named is None else _look_up(root, named[1])
