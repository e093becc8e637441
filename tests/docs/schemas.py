"""docs/schemas/*.json: what an editor knows about cards, runtime manifests and launch documents.

Made from the models that read the files, their docstrings, the tables of docs/catalog.md and the pinned manifest.
"""

import ast
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tools.launcher.catalog import cards, runtime_manifest
from tools.launcher.catalog.load import load_runtime_manifest
from tools.launcher.catalog.runtime_manifest import DocumentField, RecipeKey, RuntimeManifest

FOLDER = Path("docs/schemas")
CATALOG = Path("docs/catalog.md")
PINNED = Path("third_party/marinskyrl/81ae0ef7.yaml")

MODELS: dict[str, type[BaseModel]] = {
    "model_card": cards.ModelCard,
    "dataset_card": cards.DatasetCard,
    "cluster_card": cards.ClusterCard,
    "runtime_manifest": RuntimeManifest,
}
"""Name of a schema -> the model that reads such files."""

# The newest that yaml-language-server understands; what is used here is the same in all newer ones.
_DIALECT = "http://json-schema.org/draft-07/schema#"
_TYPES = {
    "int": "integer",
    "float": "number",
    "str": "string",
    "bool": "boolean",
    "list": "array",
    "map": "object",
    "text_map": "object",
    "records": "array",
    "open": "object",
}


def schemas() -> dict[Path, str]:
    """Return path -> text of every schema. The working directory is the checkout, or runfiles."""
    made = {name: _of_model(model) for name, model in MODELS.items()}
    made["launch_document"] = _of_launch_document()
    return {
        FOLDER / f"{name}.schema.json": json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        for name, schema in made.items()
    }


def _of_model(model: type[BaseModel]) -> dict[str, Any]:
    schema = _plain(model.model_json_schema())
    told = _catalog_tables()
    for name, part in [(model.__name__, schema), *schema.get("$defs", {}).items()]:
        said = told.get(name, {}) | _docstrings().get(name, {})
        for field, properties in part.get("properties", {}).items():
            if field in said:
                # Beside `$ref` the oldest readers see nothing else.
                properties.setdefault("description", said[field])
    return {"$schema": _DIALECT, "title": model.__name__, **schema}


def _plain(schema: Any) -> Any:
    """Leave out what helps nobody: titles that repeat a name, and defaults of `null`, which means something else."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _plain(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and value is None)
    }
    if "prefixItems" in kept:
        kept["items"] = kept.pop("prefixItems")
    return kept


def _docstrings() -> dict[str, dict[str, str]]:
    """Class -> field -> the text below it."""
    found: dict[str, dict[str, str]] = {}
    for module in (cards, runtime_manifest):
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.ClassDef):
                found[node.name] = dict(_fields_with_text(node))
    return found


def _fields_with_text(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, after in zip(node.body, node.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            yield field.target.id, " ".join(str(after.value.value).split())


def _catalog_tables() -> dict[str, dict[str, str]]:
    """Class -> field -> what docs/catalog.md says of it."""
    text = CATALOG.read_text(encoding="utf-8")
    titles = {
        "ModelCard": "Fields of a model card",
        "DatasetCard": "Fields of a dataset card",
        "ClusterCard": "Fields of a cluster card",
        "HfExport": "Fields of `export`",
    }
    return {
        name: dict(
            re.findall(
                r"^\| `(\w+)` \| (.*) \|$", text.partition(f"## {title}\n")[2].partition("\n## ")[0], re.M
            )
        )
        for name, title in titles.items()
    }


def _of_launch_document() -> dict[str, Any]:
    manifest = load_runtime_manifest(PINNED.read_bytes(), source=str(PINNED))
    root = _object(closed=True)
    for path, field in (manifest.document_fields or {}).items():
        _put(root, path.split("."), _of_field(field, manifest.document_enums.get(path)), closed=True)
        if field.required:
            _require(root, path.split("."))
    skyrl = root["properties"]["skyrl"] = _object(closed=False)
    for path, key in manifest.recipe_keys.items():
        _put(skyrl, path.split("."), _of_key(key, manifest.recipe_enums.get(path)), closed=False)
    return {
        "$schema": _DIALECT,
        "title": "SkyRLLaunchConfig",
        "description": f"Launch document of MarinSkyRL {manifest.commit[:8]}. Help for writing; preflight is the judge.",
        **root,
    }


def _object(*, closed: bool) -> dict[str, Any]:
    return {"type": "object", "properties": {}, **({"additionalProperties": False} if closed else {})}


def _put(root: dict[str, Any], path: list[str], schema: dict[str, Any], *, closed: bool) -> None:
    here = root
    for part in path[:-1]:
        here = here["properties"].setdefault(part, _object(closed=closed))
        here.setdefault("properties", {})
    here["properties"].setdefault(path[-1], {}).update(schema)


def _require(root: dict[str, Any], path: list[str]) -> None:
    here = root
    for part in path:
        here.setdefault("required", [])
        if part not in here["required"]:
            here["required"].append(part)
        here = here["properties"][part]


def _of_field(field: DocumentField, values: tuple[str, ...] | None) -> dict[str, Any]:
    if values is not None:
        return {"enum": [*values, *([None] if field.nullable else [])]}
    kind = _TYPES[field.type]
    schema: dict[str, Any] = {"type": [kind, "null"] if field.nullable else kind}
    if field.type == "text_map":
        schema["additionalProperties"] = {"type": "string"}
    if field.not_empty:
        schema["minLength"] = 1
    return schema


def _of_key(key: RecipeKey, values: tuple[str | None, ...] | None) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": _described(key)}
    if values is not None:
        return {"enum": list(values), **schema}
    # A type that was taken from use, or a default that is computed, is no reason to mark a line red.
    if key.type != "any" and not key.inferred and not str(key.default).startswith("${"):
        kinds = [_TYPES[kind] for kind in key.type.split("|")] + (["null"] if key.nullable else [])
        schema["type"] = kinds[0] if len(kinds) == 1 else kinds
    return schema


def _described(key: RecipeKey) -> str:
    owner = "" if key.owner == "recipe" else f"; owner: {key.owner}"
    default = f"; default {json.dumps(key.default)}" if "default" in key.model_fields_set else ""
    return f"{key.type}{default}{owner}"
