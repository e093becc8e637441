"""What a person asks of a plan first: how long, how fast, how much it takes at most."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

_MAX_STEPS = "trainer.max_steps"
_EPOCHS = "trainer.epochs"
_RATE = "trainer.policy.optimizer_config.lr"
_SAMPLING = "trainer.algorithm.dynamic_sampling.type"
_STEP_WISE = "trainer.step_wise_training"


class _Deadline(BaseModel):
    model_config = ConfigDict(frozen=True)

    seconds: int
    setting: str
    attempts: int = 1


class _Setting(BaseModel):
    model_config = ConfigDict(frozen=True)

    path: str
    value: Any


class _Read(BaseModel):
    """The part of a `PlanDetail` that is read here; all of it takes the models of its pictures to import."""

    model_config = ConfigDict(frozen=True)

    deadline: _Deadline
    settings: tuple[_Setting, ...]


def schedule_rows(
    detail: Mapping[str, Any] | None, *, gpus: int, answers_per_step: int, window: int | None
) -> list[tuple[str, str]]:
    """Return the schedule as rows of (name, value); none of a plan whose launcher wrote no such detail.

    Args:
        detail: of the plan.
        gpus: of the allocation.
        answers_per_step: that the engines give.
        window: tokens of a request at most, None if the plan does not say.
    """
    try:
        read = _Read.model_validate(detail)
    except ValidationError:
        return []
    settings = {setting.path: setting.value for setting in read.settings}
    rows = [("steps", _steps(settings)), ("learning rate", _rate(settings))]
    if window is not None:
        rows.append(("tokens per step", _tokens(settings, answers_per_step, window)))
    return [*rows, ("GPU-hours", _gpu_hours(gpus, read.deadline))]


def _steps(settings: Mapping[str, Any]) -> str:
    epochs = settings.get(_EPOCHS)
    data = f"{_EPOCHS} is not set" if epochs is None else "1 epoch" if epochs == 1 else f"{epochs} epochs"
    steps = settings.get(_MAX_STEPS)
    # Zero and less is no limit (preflight/schedule.py).
    if isinstance(steps, int) and steps <= 0:
        steps = None
    return f"by the data: {data}" if steps is None else f"at most {steps} ({_MAX_STEPS}; {data})"


def _rate(settings: Mapping[str, Any]) -> str:
    rate = settings.get(_RATE)
    return f"the runtime's default: {_RATE} is not set" if rate is None else str(rate)


def _tokens(settings: Mapping[str, Any], answers: int, window: int) -> str:
    # Step-wise training has a row for each turn, with a window of its own; dynamic sampling draws further batches.
    # How many of either a step takes only the run tells.
    turn = " per turn" if settings.get(_STEP_WISE) else ""
    batch = "" if settings.get(_SAMPLING) is None else " per sampled batch"
    per = " and".join(filter(None, (turn, batch)))
    return f"at most {answers * window:,}{per}: {answers} answers x a window of {window}"


def _gpu_hours(gpus: int, deadline: _Deadline) -> str:
    hours = deadline.seconds / 3600
    each = f"{hours / deadline.attempts:g} h"
    longest = each if deadline.attempts == 1 else f"{deadline.attempts} attempts of {each}"
    who = "1 GPU" if gpus == 1 else f"{gpus} GPUs"
    return f"at most {gpus * hours:g}: {who} x {longest} ({deadline.setting})"
