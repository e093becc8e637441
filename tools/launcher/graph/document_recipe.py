"""What a launch document alone says of the recipe.

A document that comes without its graph, as `lint` gets it, has no fingerprint of its own. What is left of it
without attempt, runtime, resume mode and placement is compared in its stead.
"""

from typing import Any

from tools.launcher.documents.canonical import digest_of

_IDENTITY: dict[str, tuple[str, ...]] = {
    "run": ("id", "mode", "seed", "export_hf"),
    "runtime": ("entrypoint", "task_env"),
    "artifacts": ("resume_checkpoint_count",),
}
"""Section -> its fields that decide what is learned."""

_ALLOCATION = ("num_nodes", "gpus_per_node", "gpu_variant")
_PLACEMENT_OF_INPUT = ("uri",)
"""An input is known by its identity; its address moves with the cluster."""


def document_recipe(document: dict[str, Any]) -> str:
    """Return the SHA-256 (64 hex digits) of the part of a document in source form that decides what is learned.

    Raises:
        CanonicalEncodingError: for a value that no file can hold.
    """
    kept = {name: _only(document.get(name), fields) for name, fields in _IDENTITY.items()}
    iris = document.get("iris")
    kept["allocation"] = _only(iris.get("allocation") if isinstance(iris, dict) else None, _ALLOCATION)
    kept["inputs"] = _without_addresses(document.get("inputs"))
    kept["skyrl"] = _without_resume_mode(document.get("skyrl"))
    return digest_of(kept)


def _only(section: Any, fields: tuple[str, ...]) -> Any:
    if not isinstance(section, dict):
        return section
    return {name: section[name] for name in fields if name in section}


def _without_addresses(inputs: Any) -> Any:
    if isinstance(inputs, dict):
        return {
            key: _without_addresses(value) for key, value in inputs.items() if key not in _PLACEMENT_OF_INPUT
        }
    if isinstance(inputs, list):
        return [_without_addresses(item) for item in inputs]
    return inputs


def _without_resume_mode(skyrl: Any) -> Any:
    trainer = skyrl.get("trainer") if isinstance(skyrl, dict) else None
    if not isinstance(trainer, dict):
        return skyrl
    return {**skyrl, "trainer": {key: value for key, value in trainer.items() if key != "resume_mode"}}
