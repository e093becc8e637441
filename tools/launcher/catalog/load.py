"""Reading cards and manifests from their YAML files."""

from typing import Any

from pydantic import BaseModel, ValidationError

from tools.launcher.catalog.cards import ClusterCard, DatasetCard, ModelCard
from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.documents.strict_yaml import DocumentError, load_yaml_mapping

_SHOWN_CHARACTERS = 80

_MODELS: dict[str, type[BaseModel]] = {
    "model": ModelCard,
    "dataset": DatasetCard,
    "cluster": ClusterCard,
    "runtime_manifest": RuntimeManifest,
}


def load_model_card(data: bytes, *, source: str) -> ModelCard:
    """Read a model card. Raises DocumentError naming the field and the rule."""
    card: ModelCard = _load(data, source, "model")
    return card


def load_dataset_card(data: bytes, *, source: str) -> DatasetCard:
    """Read a dataset card. Raises DocumentError naming the field and the rule."""
    card: DatasetCard = _load(data, source, "dataset")
    return card


def load_cluster_card(data: bytes, *, source: str) -> ClusterCard:
    """Read a cluster card. Raises DocumentError naming the field and the rule."""
    card: ClusterCard = _load(data, source, "cluster")
    return card


def load_runtime_manifest(data: bytes, *, source: str) -> RuntimeManifest:
    """Read a runtime manifest. Raises DocumentError naming the field and the rule."""
    manifest: RuntimeManifest = _load(data, source, "runtime_manifest")
    return manifest


def _load(data: bytes, source: str, kind: str) -> Any:
    content = load_yaml_mapping(data, source=source)
    if content.get("kind") != kind:
        raise DocumentError(
            source,
            "",
            f"kind is {content.get('kind')!r}, expected '{kind}'",
            f"Give a {kind.replace('_', ' ')}{'' if kind == 'runtime_manifest' else ' card'}, or write `kind: {kind}` if this is one",
        )
    # Strict mode takes no list for a tuple; YAML has only lists.
    try:
        return _MODELS[kind].model_validate(_lists_to_tuples(content))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in item['loc']) or '(top)'}: {item['msg']}"
            + ("" if item["type"] == "missing" else f", got {_seen(item['input'])}")
            for item in sorted(error.errors(), key=lambda item: [str(part) for part in item["loc"]])
        )
        raise DocumentError(source, "", problems, f"Correct the {kind.replace('_', ' ')}") from None


def _seen(value: Any) -> str:
    if isinstance(value, dict | tuple):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _lists_to_tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_lists_to_tuples(item) for item in value)
    if isinstance(value, dict):
        return {key: _lists_to_tuples(item) for key, item in value.items()}
    return value
