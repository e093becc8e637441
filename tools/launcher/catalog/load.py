"""Reading cards and manifests from their YAML files."""

import json
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tools.launcher.catalog.cards import ClusterCard, DatasetCard, ModelCard
from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.documents.field_problems import field_problem
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


def load_parsed_runtime_manifest(data: bytes, *, source: str) -> RuntimeManifest:
    """Read a runtime manifest of this project that the build has made JSON of (documents/yaml_to_json.py).

    Args:
        data: the JSON.
        source: the YAML file that it was made of.

    Raises:
        DocumentError: as `load_runtime_manifest`, for the same reasons.
    """
    manifest: RuntimeManifest = _validated(json.loads(data), source, "runtime_manifest")
    return manifest


def _load(data: bytes, source: str, kind: str) -> Any:
    return _validated(load_yaml_mapping(data, source=source), source, kind)


def _validated(content: dict[str, Any], source: str, kind: str) -> Any:
    called = kind.replace("_", " ") + ("" if kind == "runtime_manifest" else " card")
    if content.get("kind") != kind:
        raise DocumentError(
            source,
            "",
            f"kind is {content.get('kind')!r}, expected '{kind}'",
            f"Give a {called}, or write `kind: {kind}` if this is one",
        )
    # Strict mode takes no list for a tuple; YAML has only lists.
    try:
        return _MODELS[kind].model_validate(_lists_to_tuples(content))
    except ValidationError as error:
        problems = error.errors()
        said = "; ".join(
            f"{_path(problem)}: {_sentence(problem, problems, kind)}"
            for problem in sorted(problems, key=lambda problem: [str(part) for part in problem["loc"]])
        )
        raise DocumentError(source, "", said, f"Correct the {called}") from None


def _path(problem: ErrorDetails) -> str:
    return ".".join(str(part) for part in problem["loc"]) or "(top)"


def _sentence(problem: ErrorDetails, problems: list[ErrorDetails], kind: str) -> str:
    *parents, name = problem["loc"] or ("",)
    # Below the top, what is missing beside it may be meant.
    beside = [
        other["loc"][-1]
        for other in problems
        if other["type"] == "missing" and [*other["loc"][:-1]] == parents
    ]
    fields = [str(each) for each in beside] if parents else [*_MODELS[kind].model_fields]
    return field_problem(problem["type"], problem["msg"], _seen(problem["input"]), str(name), fields)


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
