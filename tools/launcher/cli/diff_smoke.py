"""Whether a smoke run of one launch is one for another, by the shapes that the smoke gate compares."""

from typing import Any

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.cli.diff_found import Found
from tools.launcher.compare.consequences import SmokeComparison
from tools.launcher.compare.side import Side
from tools.launcher.compare.sizes import sizes_of
from tools.launcher.preflight.subject import UnreadableValue
from tools.launcher.submit.gates.shape import differences, shape_of
from tools.launcher.submit.request import LaunchMismatch

_FROM_GRAPH = ("model made by", "model path in the artifact")
"""Parts of the hand-offs that only a graph tells."""

_ROLES = {"policy": "policy_ranks", "reference": "reference_ranks", "rollout engines": "engine_ranks"}


def smoke_comparison(a: tuple[Found, Side], b: tuple[Found, Side]) -> SmokeComparison:
    """Compare the shape of `a`, which a smoke run of it would have, with the one that `b` asks for."""
    shapes: list[dict[str, Any]] = []
    for name, (found, side) in zip("AB", (a, b), strict=True):
        try:
            shapes.append(_shape(found, side))
        except (LaunchMismatch, UnreadableValue, MissingFact) as error:
            return SmokeComparison(differences=(), unknown=f"{name}: {error}")
    seen, wanted = shapes
    alone = a[0].graph is None or b[0].graph is None
    if alone:
        for shape in shapes:
            for part in _FROM_GRAPH:
                del shape["hand-offs"][part]
    unknown = ""
    if alone and _model(a[1]) != _model(b[1]):
        unknown = "needs both graphs: how the model is handed over"
    return SmokeComparison(differences=tuple(differences(wanted, seen)), unknown=unknown)


def _shape(found: Found, side: Side) -> dict[str, Any]:
    plan = found.plan
    if found.graph is not None and plan is not None:
        return shape_of(side.document, found.graph, plan)
    sizes = sizes_of(side.subject)
    for size in _ROLES.values():
        if size in sizes.unknown:
            raise UnreadableValue(f"needs {sizes.unknown[size]}")
    measured = {
        "entrypoint": side.subject.entrypoint,
        "roles": [{"role": role, "gpus": sizes.known[size]} for role, size in _ROLES.items()],
    }
    return shape_of(side.document, {"steps": []}, measured)


def _model(side: Side) -> tuple[Any, Any]:
    return side.subject.get("inputs.model.identity"), side.subject.get("inputs.model.uri")
