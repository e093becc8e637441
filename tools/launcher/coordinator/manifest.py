"""The terminal manifest, which a runtime launcher writes once when a run has succeeded."""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.coordinator.attempt import Attempt
from tools.launcher.store.objects import Objects

# What is worth keeping in the run's record, where a manifest says it.
_KEPT = (
    "global_step",
    "task_count",
    "reward_first",
    "reward_last",
    "validation_reward",
    "checkpoint",
    "export",
)


class Manifest(BaseModel):
    """What a manifest says.

    Attributes:
        attempt_id: the attempt that finished the run.
        rehearsal: written by the stand-in.
        export: URI of the exported policy, None if there is none.
        kept: facts for the run's record.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    attempt_id: str
    rehearsal: bool
    export: str | None
    kept: dict[str, Any]


def read_manifest(objects: Objects, attempt: Attempt) -> Manifest | None:
    """Return the run's terminal manifest, None if there is none that can be read.

    Raises:
        StoreUnavailable: whether there is one cannot be told.
    """
    data = objects.read(attempt.terminal_manifest_uri)
    try:
        value = None if data is None else json.loads(data)
    except ValueError:
        return None
    return _of_value(value) if isinstance(value, dict) else None


def _of_value(value: dict[str, Any]) -> Manifest | None:
    # MarinSkyRL writes {"config": the document, "result": its answer} (cloud/iris/launch.py@334c4fa5,
    # `_manifest`), the stand-in its outcome.
    result = value.get("result")
    if isinstance(result, dict):
        model = result.get("model")
        model = model if isinstance(model, dict) else {}
        value = {
            "attempt_id": result.get("attempt_id"),
            "global_step": model.get("global_step"),
            "export": model.get("policy_export_uri"),
        }
    attempt_id, export = value.get("attempt_id"), value.get("export")
    if not isinstance(attempt_id, str):
        return None
    return Manifest(
        attempt_id=attempt_id,
        rehearsal=value.get("rehearsal") is True,
        export=export if isinstance(export, str) else None,
        kept={name: value[name] for name in _KEPT if value.get(name) is not None},
    )
