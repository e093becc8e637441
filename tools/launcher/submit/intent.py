"""The facts a record opens with: everything about a launch that is known before it acts."""

import json
from typing import Any

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.documents.strict_yaml import load_yaml
from tools.launcher.iris.jobs import JobRequest
from tools.launcher.store.bundles import BundleDigests, LaunchBundle
from tools.launcher.submit.code_archive import CodeArchive
from tools.launcher.submit.request import LaunchFacts, LaunchMismatch
from tools.launcher.submit.source_state import SourceState


def intent_facts(
    bundle: LaunchBundle,
    *,
    digests: BundleDigests,
    bundle_digest: str,
    facts: LaunchFacts,
    request: JobRequest,
    source: SourceState,
    code: CodeArchive,
) -> dict[str, Any]:
    """Return the facts of the `intent` event (names as `RunRecord` reads them).

    Args:
        bundle: the reviewed files.
        digests: of its digest file, checked.
        bundle_digest: SHA-256 of the packed bundle.
        facts, request, source, code: the launch.

    Raises:
        LaunchMismatch: the graph is of another experiment, has no such stage, or cannot be read.
    """
    launch = load_yaml(bundle.launch_yaml, source="launch.yaml")
    try:
        graph = json.loads(bundle.graph_json)
        name, stages, steps = graph["experiment_name"], graph["stages"], graph["steps"]
        if name != facts.experiment_name:
            raise LaunchMismatch(
                f"the graph is of the experiment {name!r}, the launch of {facts.experiment_name!r}. "
                "Build the experiment again and launch its own target"
            )
        if facts.stage not in stages:
            raise LaunchMismatch(
                f"{name} has no stage {facts.stage!r}. Its stages are {', '.join(sorted(stages))}: use one "
                "of them"
            )
        needed = _with_dependencies(stages[facts.stage], {step["address"]: step["deps"] for step in steps})
        allocation = launch["iris"]["allocation"]
        topology = {field: allocation[field] for field in ("num_nodes", "gpus_per_node", "gpu_variant")}
        runtime_commit = launch["runtime"]["launcher_commit"]
        artifacts = [step["address"] for step in steps if step["address"] in needed]
    except (KeyError, TypeError, ValueError) as error:
        raise LaunchMismatch(
            f"the bundle's graph or launch document lacks what a launch records ({type(error).__name__}: "
            f"{error}). "
            "Build the experiment again"
        ) from None
    return {
        "job_name": request.name,
        "user": request.user,
        "recipe": digests.recipe,
        "launch": digests.launch,
        "bundle": bundle_digest,
        "graph": sha256_hex(bundle.graph_json),
        "code": code.sha256,
        "cluster": facts.cluster,
        "stage": facts.stage,
        "runtime_commit": runtime_commit,
        "topology": topology,
        "artifacts": artifacts,
        "forwarded_names": sorted({*facts.rehearsal_variables, *facts.credentials}),
        "store": facts.store_url,
        "object_root": facts.object_root_url,
        "route": facts.route.model_dump(),
        "runtime": facts.runtime,
        "shape": facts.shape,
        **facts.gates,
        "authorized": facts.authorized,
        "timeout_seconds": request.timeout_seconds,
        "source_commit": source.source_commit,
        "dirty": source.dirty,
        "source_note": source.note,
    }


def _with_dependencies(address: str, deps: dict[str, list[str]]) -> set[str]:
    needed: set[str] = set()
    waiting = [address]
    while waiting:
        current = waiting.pop()
        if current not in needed:
            needed.add(current)
            waiting += deps[current]
    return needed
