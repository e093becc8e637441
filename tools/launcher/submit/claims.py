"""Which versions a launch claims in the store, from the graph of its bundle."""

import json

from tools.launcher.graph.versions import is_mutable
from tools.launcher.store.version_claims import VersionClaim
from tools.launcher.submit.request import LaunchMismatch
from tools.launcher.submit.stage_steps import RL_KIND, steps_of_stage


def version_claims(graph_json: bytes, *, stage: str, launch_digest: str) -> tuple[VersionClaim, ...]:
    """Return a claim for each fixed version that a launch up to `stage` may make, dependencies first.

    Adopted artifacts were made elsewhere, and what a mutable version is may change: neither is claimed.

    Args:
        graph_json: `graph.json` of the bundle.
        stage: the terminal stage asked for.
        launch_digest: 64 hex digits.

    Raises:
        LaunchMismatch: the graph has no such stage, or lacks what a claim needs.
    """
    try:
        graph = json.loads(graph_json)
        # The runtime is the graph's, also where the stage ends before the step that trains.
        runtime = next(step["config"]["runtime_commit"] for step in graph["steps"] if step["kind"] == RL_KIND)
        return tuple(
            VersionClaim(
                name=step["name"],
                version=step["version"],
                fingerprint=step["fingerprint"],
                runtime_commit=runtime,
                launch=launch_digest,
                compatible=tuple(step.get("compatible", ())),
                repins=graph.get("repins", 0),
            )
            for step in steps_of_stage(graph_json, stage)
            if not step["adopted"] and not is_mutable(step["version"])
        )
    except (KeyError, TypeError, ValueError, StopIteration) as error:
        what = " ".join(str(error).split())[:160]
        raise LaunchMismatch(
            f"the bundle's graph lacks what a claim of its versions needs ({type(error).__name__}: {what}). "
            "Build the experiment again"
        ) from None
