"""docs/schemas: up to date, and of one mind with the models that read the files."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.schemas import FOLDER, MODELS, schemas
from tools.launcher.catalog import load
from tools.launcher.documents.strict_yaml import DocumentError, load_yaml_mapping

SCHEMAS = {path.name.partition(".")[0]: json.loads(text) for path, text in schemas().items()}
FILES = {
    "model_card": sorted(Path("third_party/models").glob("*.yaml")),
    "dataset_card": sorted(Path("third_party/datasets").glob("*.yaml")),
    "cluster_card": sorted(Path("third_party/clusters").glob("*.yaml")),
    "runtime_manifest": sorted(Path("third_party/marinskyrl").glob("*.yaml")),
    "launch_document": sorted(
        [*Path("experiments").glob("*/golden/*.yaml"), *Path("tests/contract/examples").glob("*.yaml")]
    ),
}
CASES = [(kind, file) for kind, files in FILES.items() for file in files]
_TYPES: dict[str, Any] = {
    "array": list,
    "boolean": bool,
    "null": type(None),
    "object": dict,
    "string": str,
}
_TELLS_NOTHING = {"$schema", "$defs", "title", "description", "default"}


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any], place: str = "") -> list[str]:
    """What a reader of JSON Schema says: the words that these schemas use, and KeyError for any other."""
    found: list[str] = []
    for word, rule in schema.items():
        if word not in _TELLS_NOTHING:
            found += [f"{place or '(top)'}: {said}" for said in _RULES[word](value, rule, schema)]
    if "$ref" in schema:
        found += problems(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, place)
    if "anyOf" in schema and all(problems(value, choice, root, place) for choice in schema["anyOf"]):
        found.append(f"{place}: fits none of its forms")
    if isinstance(value, dict):
        for key, item in value.items():
            for inner in _of_key(key, schema):
                found += problems(item, inner, root, f"{place}.{key}".lstrip("."))
    if isinstance(value, list) and "items" in schema:
        inner = schema["items"]
        for number, item in enumerate(value):
            of_item = [inner] if isinstance(inner, dict) else inner[number : number + 1]
            for chosen in of_item:
                found += problems(item, chosen, root, f"{place}.{number}")
    return found


def _of_key(key: str, schema: dict[str, Any]) -> list[dict[str, Any]]:
    if key in schema.get("properties", {}):
        return [schema["properties"][key]]
    by_pattern = [
        inner for pattern, inner in schema.get("patternProperties", {}).items() if re.search(pattern, key)
    ]
    rest = schema.get("additionalProperties")
    return by_pattern or ([rest] if isinstance(rest, dict) else [])


def _is(value: Any, kind: str) -> bool:
    if kind in ("integer", "number"):
        return isinstance(value, int if kind == "integer" else (int, float)) and not isinstance(value, bool)
    return isinstance(value, _TYPES[kind])


def _wrong_type(value: Any, kinds: Any, _: Any) -> list[str]:
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return [] if any(_is(value, kind) for kind in kinds) else [f"{value!r} is none of {kinds}"]


def _unknown_keys(value: Any, rule: Any, schema: Any) -> list[str]:
    if rule is not False or not isinstance(value, dict):
        return []
    return [f"{key} is not known" for key in value if key not in schema["properties"]]


def _when(condition: bool, text: str) -> list[str]:
    return [text] if condition else []


def _nothing(*_: Any) -> list[str]:
    """Judged by `problems` itself."""
    return []


_RULES: dict[str, Any] = {
    "type": _wrong_type,
    "additionalProperties": _unknown_keys,
    "required": lambda value, names, _: [
        f"{name} is missing" for name in names if isinstance(value, dict) and name not in value
    ],
    "enum": lambda value, choices, _: _when(value not in choices, f"{value!r} is none of {choices}"),
    "const": lambda value, only, _: _when(value != only, f"{value!r} is not {only!r}"),
    "pattern": lambda value, rule, _: _when(
        isinstance(value, str) and not re.search(rule, value), f"{value} does not fit {rule}"
    ),
    "minimum": lambda value, least, _: _when(_is(value, "number") and value < least, f"{value} < {least}"),
    "exclusiveMinimum": lambda value, least, _: _when(
        _is(value, "number") and value <= least, f"{value} <= {least}"
    ),
    "minLength": lambda value, least, _: _when(isinstance(value, str) and len(value) < least, "too short"),
    "minItems": lambda value, least, _: _when(isinstance(value, list) and len(value) < least, "too few"),
    "maxItems": lambda value, most, _: _when(isinstance(value, list) and len(value) > most, "too many"),
    "properties": _nothing,
    "patternProperties": _nothing,
    "items": _nothing,
    "anyOf": _nothing,
    "$ref": _nothing,
}


def content(file: Path) -> dict[str, Any]:
    return load_yaml_mapping(file.read_bytes(), source=str(file))


def test_the_files_are_up_to_date():
    kept = {path: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    assert kept == schemas(), "tools/bazel run //tests/goldens:update"


@pytest.mark.parametrize(("kind", "file"), CASES, ids=[str(file) for _, file in CASES])
def test_every_file_of_the_project_is_accepted(kind, file):
    assert problems(content(file), SCHEMAS[kind], SCHEMAS[kind]) == []


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("model_card", {"num_attention_heads": "16"}),
        ("model_card", {"num_attention_heads": True}),
        ("model_card", {"hidden_size": 0}),
        ("model_card", {"revision": "main"}),
        ("model_card", {"hiden_size": 1024}),
        ("model_card", {"export": {"name": "x", "version": "1"}}),
        ("dataset_card", {"rows": -1}),
        ("dataset_card", {"prompt_token_counts": {"512": "many"}}),
        ("dataset_card", {"sources": "a text"}),
        ("cluster_card", {"scheduler": "slurm"}),
        ("cluster_card", {"store": "s3://bucket"}),
        ("cluster_card", {"kind": "model"}),
        ("runtime_manifest", {"commit": "81ae0ef7"}),
        ("runtime_manifest", {"entrypoints": {"standard": {"module": "x", "training_type": "batch"}}}),
        ("runtime_manifest", {"resume_checkpoint_count": [1, 5, 10]}),
    ],
)
def test_what_the_model_refuses_the_schema_refuses(kind, change):
    name = kind.removesuffix("_card")
    wrong = content(FILES[kind][0]) | change
    data = json.dumps(wrong).encode()
    reader = getattr(load, f"load_{kind}")
    with pytest.raises(DocumentError):
        reader(data, source=name)
    assert problems(wrong, SCHEMAS[kind], SCHEMAS[kind])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("iris", "allocation", "num_nodes"), "eight"),
        (("iris", "alocation"), {}),
        (("run", "mode"), "training"),
        (("runtime", "task_env"), {"A": 1}),
        (("skyrl", "trainer", "ckpt_interval"), "8"),
        (("skyrl", "trainer", "resume_mode"), "newest"),
    ],
)
def test_a_mistake_in_a_launch_document_is_marked(path, value):
    document = content(Path("experiments/gsm8k_grpo/golden/launch.yaml"))
    here = document
    for part in path[:-1]:
        here = here[part]
    here[path[-1]] = value
    assert problems(document, SCHEMAS["launch_document"], SCHEMAS["launch_document"])


@pytest.mark.parametrize("kind", MODELS)
def test_every_field_of_a_card_is_explained(kind):
    if kind != "runtime_manifest":
        assert [
            name for name, field in SCHEMAS[kind]["properties"].items() if "description" not in field
        ] == []


@pytest.mark.parametrize("kind", MODELS)
def test_every_file_names_its_schema(kind):
    for file in FILES[kind]:
        first = file.read_text(encoding="utf-8").splitlines()[0]
        named = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
        assert named, f"begin {file} with the line that the other files of its folder begin with"
        assert (file.parent / named[1]).resolve() == (FOLDER / f"{kind}.schema.json").resolve()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
