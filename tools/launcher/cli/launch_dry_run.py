"""`--dry-run`: the exact requests a launch would send, and nothing else."""

import json
import shlex
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from tools.launcher.cli.launch_place import UNKNOWN_STORE, no_store
from tools.launcher.coordinator.runtime import REHEARSAL_MODULE, marinskyrl_runtime, rehearsal_runtime
from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.iris.jobs import JobRequest
from tools.launcher.store.bundles import BUNDLE_PREFIX, LaunchBundle, pack
from tools.launcher.submit.code_archive import make_code_archive
from tools.launcher.submit.request import LaunchFacts, coordinator_request
from tools.launcher.submit.stage_steps import RL_KIND, steps_of_stage

HIDDEN = "**********"

DOCUMENT = Path("attempt/launch.yaml")
"""Stands for the attempt document, which the coordinator writes into a folder of its own."""


def requests_text(bundle: LaunchBundle, launch_digest: str, facts: LaunchFacts, *, attempt: str) -> str:
    """Return what would be sent, as text that ends with the coordinator's request as JSON.

    Args:
        bundle: the reviewed files.
        launch_digest: 64 hex digits.
        facts: the launch.
        attempt: what is known of other attempts, in words.
    """
    packed = pack(bundle)
    request = coordinator_request(
        facts,
        launch_digest=launch_digest,
        bundle_digest=sha256_hex(packed),
        code=make_code_archive(),
        secrets={name: SecretStr(HIDDEN) for name in facts.credentials},
    )
    where = "its Iris" if facts.route.scheduler == "iris" else "the local Iris"
    return (
        "dry run: nothing is asked, written or submitted\n"
        f"store: {_store(facts)}\n"
        f"attempt: {facts.ordinal} ({attempt})\n"
        f"bundle: {BUNDLE_PREFIX}/{sha256_hex(packed)}\n"
        f"the coordinator then runs: {_then(bundle, facts)}\n"
        f"request to {where} at {facts.cluster}:\n"
        f"{json.dumps(shown(request), indent=2)}\n"
    )


def _store(facts: LaunchFacts) -> str:
    if facts.store_url != UNKNOWN_STORE:
        return facts.store_url
    return f"none given, shown as {UNKNOWN_STORE}; a launch would be refused: {no_store(facts.cluster)}"


def _then(bundle: LaunchBundle, facts: LaunchFacts) -> str:
    steps = steps_of_stage(bundle.graph_json, facts.stage)
    if all(step["kind"] != RL_KIND for step in steps):
        return f"no launcher, stage {facts.stage} trains nothing"
    return shlex.join(launcher_argv(bundle, facts))


def launcher_argv(bundle: LaunchBundle, facts: LaunchFacts) -> tuple[str, ...]:
    """Return the command with which the coordinator hands the attempt document to the runtime's launcher."""
    if facts.object_root_url is not None and facts.runtime == "rehearsal":
        return rehearsal_runtime(("python", "-P", "-m", REHEARSAL_MODULE), facts.object_root_url).launch(
            DOCUMENT
        )
    commit = load_yaml_mapping(bundle.launch_yaml, source="launch.yaml")["runtime"]["launcher_commit"]
    return marinskyrl_runtime(commit).launch(DOCUMENT)


def shown(request: JobRequest) -> dict[str, Any]:
    """Return the request as JSON values: files by size and digest, secrets by name."""
    values = request.model_dump(mode="json", exclude={"files", "secrets"})
    values["files"] = {
        name: f"{len(data)} bytes, sha256:{sha256_hex(data)}" for name, data in request.files.items()
    }
    values["secrets"] = dict.fromkeys(sorted(request.secrets), HIDDEN)
    return values
