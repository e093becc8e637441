"""The recipe: settings below `skyrl`, merged from named parts. Identity-bearing.

Parts are combined without precedence. Two parts which set one leaf to different values are a
conflict that names both, so nobody has to know which of them wins.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from tools.launcher.rl.topology import SPEC

JsonValue = Any
"""Text, numbers, booleans, None, lists and string-keyed mappings of them."""

_SCALARS = frozenset({str, int, float, bool, type(None)})
_MAX_DEPTH = 50  # A launch document is read to a depth of 60.


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
            TypeError: for values that are no JSON values, naming part and path of each.
        """
        problems = [
            problem
            for name, content in parts.items()
            for problem in _problems(content, f"recipe part '{name}'", "")
        ]
        if problems:
            raise TypeError("; ".join(problems))
        settings: dict[str, JsonValue] = {}
        origins: dict[str, str] = {}
        conflicts: list[LeafConflict] = []
        copies: list[tuple[str, dict[str, JsonValue]]] = []
        for name, content in parts.items():
            copy = _copied(content)
            copies.append((name, copy))
            _merge(settings, copy, name, "", origins, conflicts)
        return cls(parts=tuple(copies), settings=settings, origins=origins, conflicts=tuple(conflicts))


def leaves(settings: Mapping[str, JsonValue], prefix: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Yield (dotted path, value) of every leaf below `settings`, of dicts in dicts; an empty dict is a leaf."""
    for key, value in settings.items():
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(value, dict) and value:
            yield from leaves(value, path)
        else:
            yield path, value


def _problems(value: Any, part: str, path: str, depth: int = 0) -> Iterator[str]:
    """Say what in a part is no JSON value.

    Strict about types, like the document's own reader: a tuple or an enum here would be something
    else after a round trip through YAML.
    """
    place = path or "the part"
    if depth > _MAX_DEPTH:
        yield f"{part}: {place} is nested more than {_MAX_DEPTH} deep. Flatten it"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if type(key) is not str or not _is_unicode(key):
                yield f"{part}: key {key!r} of {place} is not text. Quote it"
            else:
                yield from _problems(item, part, f"{path}.{key}" if path else key, depth + 1)
    elif not path:
        yield f"{part} is {_kind(value)}. Give a mapping, such as {{'trainer': {{'epochs': 1}}}}"
    elif type(value) is list:
        for index, item in enumerate(value):
            yield from _problems(item, part, f"{path}[{index}]", depth + 1)
    elif type(value) is str:
        if not _is_unicode(value):
            yield f"{part}: {place} holds a lone surrogate. Use valid Unicode"
    elif type(value) is float:
        if not math.isfinite(value):
            yield f"{part}: {place} is {value}. Use a finite number"
    elif type(value) not in _SCALARS:
        yield (f"{part}: {place} is {_kind(value)}. Use text, numbers, booleans, lists or mappings")


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _copied(value: Any) -> Any:
    """A copy of a value without problems, in dicts whatever its mappings were."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value]


def _same(one: Any, other: Any) -> bool:
    """Equality that keeps 1, 1.0 and true apart, inside lists too."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    return bool(one == other)


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
            into[key] = _copied(value)
            for leaf, _ in leaves({key: value}, prefix):
                origins[leaf] = part
            continue
        old = into[key]
        if isinstance(old, dict) and isinstance(value, dict):
            _merge(old, value, part, path, origins, conflicts)
        elif not _same(old, value):
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
