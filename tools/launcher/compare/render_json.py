"""A comparison for programs."""

from typing import Any

from tools.launcher.compare.consequences import Comparison
from tools.launcher.compare.side import Side

SCHEMA = 1


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as JSON values."""
    identity = {change.path for change in comparison.identity.fields}
    return {
        "schema": SCHEMA,
        "equal": comparison.equal,
        "a": _side(comparison.a),
        "b": _side(comparison.b),
        "recipe_changed": comparison.identity.changed,
        "recipe_compared_by": comparison.identity.basis,
        "consequences": {
            item.aspect: item.model_dump(mode="json", exclude={"aspect", "matters"})
            for item in comparison.consequences
        },
        "fields": [
            {
                "path": change.path,
                "kind": change.kind,
                "before": change.before,
                "after": change.after,
                "recipe": change.path in identity,
            }
            for change in comparison.changes
        ],
    }


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
