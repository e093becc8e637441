"""The steps that a launch of a stage makes or uses, as the graph document has them."""

import json
from typing import Any

from tools.launcher.documents.canonical import digest_of
from tools.launcher.graph.stages import needed_by, stage_ends
from tools.launcher.submit.request import LaunchMismatch

RL_KIND = "skyrl"
"""Kind of the step that trains."""

_MAKES = ("address", "kind", "fingerprint", "deps")


def stages_of(graph_json: bytes) -> dict[str, tuple[str, ...]]:
    """Return stage -> addresses of the steps that end it, in the order of work (`graph.stages`).

    Raises:
        LaunchMismatch: the graph cannot be read.
    """
    try:
        return stage_ends({step["address"]: step["kind"] for step in json.loads(graph_json)["steps"]})
    except (KeyError, TypeError, ValueError) as error:
        raise _lacking(error) from None


def steps_of_stage(graph_json: bytes, stage: str) -> list[dict[str, Any]]:
    """Return the steps that the stage makes or uses, in the graph's order.

    Raises:
        LaunchMismatch: the graph has no such stage, or cannot be read.
    """
    ends = stages_of(graph_json)
    try:
        graph = json.loads(graph_json)
        if stage not in ends:
            raise LaunchMismatch(
                f"{graph['experiment_name']} has no stage {stage!r}. Its stages are {', '.join(ends)}: use one of them"
            )
        steps: list[dict[str, Any]] = graph["steps"]
        needed = needed_by(ends[stage], {step["address"]: step["deps"] for step in steps})
        return [step for step in steps if step["address"] in needed]
    except (KeyError, TypeError, ValueError) as error:
        raise _lacking(error) from None


def steps_digest(graph_json: bytes) -> str:
    """Return the SHA-256 (64 hex digits) of what a graph makes: its stages, and each step's address, kind,
    fingerprint and inputs.

    Of two builds of one launch document it tells whether a step around the document is another. What only says how
    a run is handled may differ: names of credentials, retries, whether the version is pinned.

    Raises:
        LaunchMismatch: the graph cannot be read.
    """
    try:
        graph = json.loads(graph_json)
        made = [{name: step[name] for name in _MAKES} for step in graph["steps"]]
        return digest_of({"stages": graph["stages"], "steps": made})
    except (KeyError, TypeError, ValueError) as error:
        raise _lacking(error) from None


def _lacking(error: Exception) -> LaunchMismatch:
    return LaunchMismatch(
        f"the bundle's graph lacks what a launch needs ({type(error).__name__}: {error}). Build the "
        "experiment again"
    )
