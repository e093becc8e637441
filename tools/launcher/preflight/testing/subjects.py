"""Subjects for the tests of preflight: the contract's two examples, changed in few places."""

import copy
import functools
import re
from pathlib import Path
from typing import Any

from tools.launcher.catalog.cards import ClusterCard, DatasetCard, ModelCard
from tools.launcher.catalog.load import load_runtime_manifest
from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.documents.strict_yaml import load_yaml_mapping

_ROOT = Path(__file__).parents[4]
_MANIFEST = "third_party/marinskyrl/81ae0ef7.yaml"

DELETED: Any = object()
"""Value of a change which removes its path."""

_DELETION = re.compile(r"(?:^| and )delete (\S+)")
_CHANGE = re.compile(r"([\w.\[\]-]+)=(\S+)")
_PART = re.compile(r"[^.\[\]]+|\[\d+\]")


def document(name: str) -> dict[str, Any]:
    """Return a fresh copy of the example `smoke` or `moe`."""
    file = {"smoke": "smoke-fsdp.yaml", "moe": "moe-megatron.yaml"}[name]
    data = _example(file)
    # The copy undoes YAML's alias, so that a change of extra_env leaves task_env alone.
    return {key: copy.deepcopy(value) for key, value in load_yaml_mapping(data, source=file).items()}


@functools.cache
def _pinned() -> RuntimeManifest:
    return load_runtime_manifest((_ROOT / _MANIFEST).read_bytes(), source=_MANIFEST)


@functools.cache
def _example(file: str) -> bytes:
    return (_ROOT / "tests/contract/examples" / file).read_bytes()


def pinned_runtime(**changes: Any) -> RuntimeManifest:
    """Return the manifest of the pinned commit with `changes`; DELETED leaves a field out."""
    manifest = _pinned()
    if not changes:
        return manifest
    kept = {name: getattr(manifest, name) for name in manifest.model_fields_set} | changes
    return RuntimeManifest(**{name: value for name, value in kept.items() if value is not DELETED})


def changed(content: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of `content` in which each path (`a.b[0].c`) has its new value, or is gone."""
    result = copy.deepcopy(content)
    for path, value in changes.items():
        *inner, leaf = _parts(path)
        node: Any = result
        for part in inner:
            if isinstance(node, dict) and node.get(part) is None:
                node[part] = {}
            node = node[part]
        if value is DELETED and isinstance(node, dict):
            node.pop(leaf, None)
        else:
            node[leaf] = copy.deepcopy(value)
    return result


def repaired(content: dict[str, Any], repair: str) -> dict[str, Any] | None:
    """Apply a repair that is ready to type, or return None for one in other words."""
    if not repair.startswith(("set ", "delete ")):
        return None
    values: dict[str, Any] = dict.fromkeys(_DELETION.findall(repair), DELETED)
    values |= {path: _value(text) for path, text in _CHANGE.findall(repair)}
    return changed(content, values) if all("." in path for path in values) else None


def _parts(path: str) -> list[Any]:
    return [int(part[1:-1]) if part.startswith("[") else part for part in _PART.findall(path)]


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "null": None}
    if text in words:
        return words[text]
    if text[:1] == text[-1:] == '"':
        return text[1:-1]
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", text) else text


def model_card(**facts: Any) -> ModelCard:
    """A card of Qwen3-0.6B's geometry with `facts` changed; DELETED leaves one out."""
    geometry = {
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "num_hidden_layers": 28,
        "num_experts": None,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "repository": "Qwen/Qwen3-0.6B",
    } | facts
    known = {name: value for name, value in geometry.items() if value is not DELETED}
    return ModelCard(kind="model", name="lab-model", **known)


def dataset_card(**facts: Any) -> DatasetCard:
    """A card that knows only `facts`."""
    return DatasetCard(kind="dataset", name="lab-data", **facts)


def cluster_card(**facts: Any) -> ClusterCard:
    """A card that knows only `facts`."""
    return ClusterCard(kind="cluster", name="lab-cluster", **facts)
