"""The recipe: settings below `skyrl`, merged from named parts. Identity-bearing.

Parts are combined without precedence. Two parts which set one leaf to different values are a
conflict that names both, so nobody has to know which of them wins.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from tools.launcher.rl.topology import SPEC

JsonValue = Any
"""Text, numbers, booleans, None, lists and string-keyed mappings of them."""


class LeafConflict(BaseModel):
    """One leaf that two parts set differently."""

    model_config = SPEC

    path: str
    first_part: str
    first_value: JsonValue
    second_part: str
    second_value: JsonValue


class SkyRLRecipe(BaseModel):
    """Named parts, in the order in which they were given, and what they merge to."""

    model_config = SPEC

    parts: tuple[tuple[str, dict[str, JsonValue]], ...]
    settings: dict[str, JsonValue]
    """The merged mapping. A leaf in conflict has the value of the first part."""
    origins: dict[str, str]
    """Path of each leaf -> name of the part that set it first."""
    conflicts: tuple[LeafConflict, ...]

    @classmethod
    def combine(cls, **parts: Mapping[str, JsonValue]) -> "SkyRLRecipe":
        """Merge named parts.

        Args:
            **parts: part name -> nested mapping. `trainer={"epochs": 1}` inside a part sets the
                leaf `trainer.epochs`. Lists are leaves.

        Raises:
            TypeError: for a value that is no JSON value, naming part and path.
        """
        settings: dict[str, JsonValue] = {}
        origins: dict[str, str] = {}
        conflicts: list[LeafConflict] = []
        copies: list[tuple[str, dict[str, JsonValue]]] = []
        for name, content in parts.items():
            copy = _json_copy(content, name, "")
            copies.append((name, copy))
            _merge(settings, copy, name, "", origins, conflicts)
        return cls(parts=tuple(copies), settings=settings, origins=origins, conflicts=tuple(conflicts))


def leaves(settings: Mapping[str, JsonValue], prefix: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Yield (dotted path, value) of every leaf; an empty mapping is a leaf."""
    for key, value in settings.items():
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(value, Mapping) and value:
            yield from leaves(value, path)
        else:
            yield path, value


def _json_copy(value: Any, part: str, path: str) -> Any:
    # Strict about types, like the document's own reader: a tuple or an enum here would be
    # something else after a round trip through YAML.
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [_json_copy(item, part, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        wrong = next((key for key in value if type(key) is not str), None)
        if wrong is not None:
            raise TypeError(f"recipe part '{part}': key {wrong!r} of {path or 'the part'} is not text")
        return {key: _json_copy(item, part, f"{path}.{key}" if path else key) for key, item in value.items()}
    raise TypeError(
        f"recipe part '{part}': {path or 'the part'} is a {type(value).__name__}. "
        "Use text, numbers, booleans, lists or mappings"
    )


def _merge(
    into: dict[str, JsonValue],
    new: Mapping[str, JsonValue],
    part: str,
    prefix: str,
    origins: dict[str, str],
    conflicts: list[LeafConflict],
) -> None:
    for key, value in new.items():
        path = f"{prefix}.{key}" if prefix else key
        if key not in into:
            # A copy: a later part merges into it, and parts stay as they were given.
            into[key] = _json_copy(value, part, path)
            for leaf, _ in leaves({key: value}, prefix):
                origins[leaf] = part
            continue
        old = into[key]
        if isinstance(old, dict) and isinstance(value, dict):
            _merge(old, value, part, path, origins, conflicts)
        elif type(old) is not type(value) or old != value:
            conflicts.append(
                LeafConflict(
                    path=path,
                    first_part=_origin_below(path, origins),
                    first_value=old,
                    second_part=part,
                    second_value=value,
                )
            )


def _origin_below(path: str, origins: Mapping[str, str]) -> str:
    return origins.get(path) or next(part for leaf, part in origins.items() if leaf.startswith(path + "."))
