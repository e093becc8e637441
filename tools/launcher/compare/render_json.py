"""A comparison for programs."""

import math
from collections.abc import Sequence
from typing import Any

from tools.launcher.compare.consequences import Comparison
from tools.launcher.compare.fields import FieldChange
from tools.launcher.compare.side import Side

SCHEMA = 1

_NO_NUMBERS = {math.inf: ".inf", -math.inf: "-.inf"}


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as JSON values. What JSON has no number for is text as YAML writes it: `.nan`, `.inf`."""
    identity = comparison.identity
    return {
        "schema": SCHEMA,
        "equal": comparison.equal,
        "a": _side(comparison.a),
        "b": _side(comparison.b),
        # None: the documents alone do not tell.
        "recipe_changed": None if identity.unsure and not identity.changed else identity.changed,
        "recipe_compared_by": identity.basis,
        "consequences": {
            item.aspect: item.model_dump(mode="json", exclude={"aspect", "matters"})
            for item in comparison.consequences
        },
        "fields": _fields(comparison.changes, {change.keys for change in identity.fields}),
        "graph_fields": _fields(comparison.beside, set()),
    }


def _fields(changes: Sequence[FieldChange], deciding: set[tuple[str | int, ...]]) -> list[dict[str, Any]]:
    return [
        {
            "path": change.path,
            "keys": list(change.keys),
            "kind": change.kind,
            "before": _value(change.before),
            "after": _value(change.after),
            "recipe": change.keys in deciding,
        }
        for change in changes
    ]


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return _NO_NUMBERS.get(value, ".nan")
    return value


def _side(side: Side) -> dict[str, Any]:
    name, version = side.address or (None, None)
    return {
        "name": side.name,
        "origin": side.origin,
        "run": name,
        "version": version,
        "recipe": side.recipe,
        "launch": side.launch,
    }
