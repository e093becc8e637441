"""What of a plan only its report shows, as data: who is on which GPU, deadline, retention, origins.

Not in `plan.py`, so that commands which only read a plan have none of it to import.
"""

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tools.launcher.render.layout import ClusterLayout
from tools.launcher.render.plan import LaunchPlan

_FROZEN = ConfigDict(frozen=True, strict=True, extra="forbid")


class NoDetail(ValueError):
    """The plan is of a launcher that wrote nothing for a report."""


class PlannedSetting(BaseModel):
    """One leaf below `skyrl` of the launch document."""

    model_config = _FROZEN

    path: str
    value: Any
    origin: str
    """Name of the recipe part that set it, or `role plan` or `context budget`, which are rendered into it."""


class PlannedRetention(BaseModel):
    """What a run leaves that does not stay."""

    model_config = _FROZEN

    temporary_days: int
    """Lifetime of the temporary root, a step of the storage's lifecycle."""
    temporary_outputs: tuple[str, ...]
    """Names of `LaunchPlan.outputs` below the temporary root."""
    resume_checkpoint_count: int
    """Checkpoints kept for resuming; older ones are deleted while the run goes on."""


class PlannedDeadline(BaseModel):
    """When a launch is ended at the latest, which bounds its GPU hours (`documents.longest_run`)."""

    model_config = _FROZEN

    seconds: int
    setting: Literal["job_timeout_seconds", "coordinator_timeout_hours"]
    """The field of the execution that says so."""
    # Left out where it says nothing: almost everywhere.
    attempts: int = Field(default=1, ge=1, exclude_if=lambda attempts: attempts == 1)
    """How many attempts of equal length `seconds` is the sum of."""


class PlanDetail(BaseModel):
    """What only the report shows, as data."""

    model_config = _FROZEN

    layout: ClusterLayout
    deadline: PlannedDeadline
    retention: PlannedRetention
    settings: tuple[PlannedSetting, ...]


def detail_of(plan: LaunchPlan) -> PlanDetail:
    """Return the detail of a plan.

    Raises:
        NoDetail: it has none.
        ValidationError: it is of another launcher.
    """
    if plan.detail is None:
        raise NoDetail("it has no `detail`: an earlier launcher wrote it")
    return PlanDetail.model_validate_json(json.dumps(plan.detail))
