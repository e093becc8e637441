"""The facts a record opens with: everything about a launch that is known before it acts."""

import json
from typing import Any

from tools.launcher.documents.strict_yaml import load_yaml
from tools.launcher.iris.jobs import JobRequest
from tools.launcher.store.bundles import BundleDigests, LaunchBundle
from tools.launcher.submit.code_archive import CodeArchive
from tools.launcher.submit.request import LaunchFacts, LaunchMismatch
from tools.launcher.submit.source_state import SourceState
from tools.launcher.submit.stage_steps import steps_digest, steps_of_stage


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
        name = json.loads(bundle.graph_json)["experiment_name"]
        allocation = launch["iris"]["allocation"]
        topology = {field: allocation[field] for field in ("num_nodes", "gpus_per_node", "gpu_variant")}
        runtime_commit = launch["runtime"]["launcher_commit"]
    except (KeyError, TypeError, ValueError) as error:
        raise LaunchMismatch(
            f"the bundle's graph or launch document lacks what a launch records ({type(error).__name__}: "
            f"{error}). "
            "Build the experiment again"
        ) from None
    if name != facts.experiment_name:
        raise LaunchMismatch(
            f"the graph is of the experiment {name!r}, the launch of {facts.experiment_name!r}. "
            "Build the experiment again and launch its own target"
        )
    artifacts = [step["address"] for step in steps_of_stage(bundle.graph_json, facts.stage)]
    return {
        "job_name": request.name,
        "user": request.user,
        "recipe": digests.recipe,
        "launch": digests.launch,
        "bundle": bundle_digest,
        "steps": steps_digest(bundle.graph_json),
        "code": code.sha256,
        "cluster": facts.cluster,
        "stage": facts.stage,
        "runtime_commit": runtime_commit,
        "topology": topology,
        "artifacts": artifacts,
        "forwarded_names": sorted({*request.env, *facts.credentials}),
        "store": facts.store_url,
        "object_root": facts.object_root_url,
        "route": facts.route.model_dump(),
        "runtime": facts.runtime,
        "shape": facts.shape,
        **facts.gates,
        "authorized": facts.authorized,
        "credentials": sorted(facts.credentials),
        "timeout_seconds": request.timeout_seconds,
        "max_retries": request.max_task_retries,
        "source_commit": source.source_commit,
        "dirty": source.dirty,
        "source_note": source.note,
    }
