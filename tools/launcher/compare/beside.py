"""What a graph says of a launch that its launch document does not.

Neither digest covers it: the recipe is that of the RL step, and the launch digest is of the document alone.
"""

from typing import Any

from tools.launcher.documents.canonical import digest_of

_IN_DOCUMENT = ("skyrl", "hf_model", "dataset")
"""Kinds of steps whose identities stand in the launch document."""


def beside_document(graph: Any) -> dict[str, Any]:
    """Return it, equal for launches that differ in their documents alone.

    What the version ledger puts into a graph is left out: it tells of earlier launches.

    Args:
        graph: a graph document, also one of another launcher; what it lacks is left out.
    """
    if not isinstance(graph, dict):
        return {}
    steps = graph.get("steps")
    beside: dict[str, Any] = {
        name: graph[name]
        for name in ("default_stage", "coordinator_timeout_hours", "credentials")
        if name in graph
    }
    further = {
        str(step.get("name")): {name: step.get(name) for name in ("kind", "stage", "version", "config")}
        for step in (steps if isinstance(steps, list) else ())
        if isinstance(step, dict) and step.get("kind") not in _IN_DOCUMENT
    }
    return {**beside, "steps": further} if further else beside


def beside_digest(graph: Any) -> str:
    """Return the SHA-256 (64 hex digits) of `beside_document`.

    Raises:
        CanonicalEncodingError: for a value that no graph holds.
    """
    return digest_of(beside_document(graph))
