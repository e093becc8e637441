"""Sides of comparisons for tests, from the contract's examples and the shipped runtime manifest."""

import functools
from pathlib import Path
from typing import Any

from tools.launcher.catalog.load import load_runtime_manifest
from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.compare.consequences import Comparison, SmokeComparison, compare
from tools.launcher.compare.side import Side
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.preflight.subject import PreflightSubject

SAME_SHAPE = SmokeComparison(differences=(), unknown="")


def example(name: str) -> dict[str, Any]:
    """A launch document of the contract."""
    file = Path("tests/contract/examples") / f"{name}.yaml"
    return load_yaml_mapping(file.read_bytes(), source=file.name)


def with_values(document: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The document with values at dotted paths."""
    return PreflightSubject(document=document).with_values(values).document


def side(document: dict[str, Any], **changes: Any) -> Side:
    """A side that came with the project's runtime manifest."""
    values = {
        "name": "x",
        "origin": "file",
        "subject": PreflightSubject(document=document, runtime=_runtime()),
        "recipe": None,
        "gpu_hours": 192.0,
        "gpu_hours_needs": "",
    }
    return Side.model_validate(values | changes)


@functools.cache
def _runtime() -> RuntimeManifest:
    manifest = Path("third_party/marinskyrl/81ae0ef7.yaml")
    return load_runtime_manifest(manifest.read_bytes(), source=manifest.name)


def compared(
    before: dict[str, Any], after: dict[str, Any], smoke: SmokeComparison = SAME_SHAPE, **recipes: str
) -> Comparison:
    """Compare two documents; `a` and `b` are their recipe digests."""
    return compare(
        side(before, recipe=recipes.get("a")), side(after, name="y", recipe=recipes.get("b")), smoke
    )


def sentence(comparison: Comparison, aspect: str) -> tuple[str, str]:
    """Verdict and sentence of one aspect."""
    return next((each.verdict, each.sentence) for each in comparison.consequences if each.aspect == aspect)
