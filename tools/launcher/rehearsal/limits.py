"""How long a rehearsal waits, and how fast it steps.

The document's own time-outs are for gangs of hundreds of GPUs (half an hour to join); on one
machine a task that is a minute late will not come. The document can shorten these limits, not
lengthen them; the two variables below are for slow machines and for looking on.
"""

import math
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from tools.launcher.rehearsal.problems import RehearsalProblem

LIMIT_VARIABLE = "SLIPWAY_REHEARSAL_LIMIT_SECONDS"
STEP_VARIABLE = "SLIPWAY_REHEARSAL_STEP_SECONDS"
FORWARDED_PREFIX = "SLIPWAY_REHEARSAL_"

DEFAULT_LIMIT_SECONDS = 60.0
# Long enough that a person sees the reward rise, short enough that twenty steps take two seconds.
DEFAULT_STEP_SECONDS = 0.1


class LimitError(RehearsalProblem):
    """A variable does not hold a number of seconds."""


class Limits(BaseModel):
    """Seconds.

    Attributes:
        join: until all tasks must have joined.
        step: until every task must have reached a common step.
        pace: least duration of a training step.
        pending: how long the child job may wait for its workers.
        progress: how long the launcher waits for a running gang to show progress.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    join: float
    step: float
    pace: float
    pending: float
    progress: float


def limits_from(environ: Mapping[str, str], cluster_join_timeout: int) -> Limits:
    """Return the limits of this rehearsal.

    Args:
        environ: the process environment.
        cluster_join_timeout: `ray.cluster_join_timeout` of the document, seconds.

    Raises:
        LimitError: a variable is not a number of seconds.
    """
    limit = _seconds(environ, LIMIT_VARIABLE, DEFAULT_LIMIT_SECONDS, least=0.1)
    pace = _seconds(environ, STEP_VARIABLE, DEFAULT_STEP_SECONDS, least=0.0)
    # The launcher waits longer than the tasks do, so that a task gets to say what went wrong.
    return Limits(
        join=min(limit, float(cluster_join_timeout)), step=limit + pace, pace=pace, pending=5 * limit,
        progress=2 * limit + pace,
    )  # fmt: skip


def _seconds(environ: Mapping[str, str], name: str, default: float, least: float) -> float:
    text = environ.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (least <= value < math.inf):
        raise LimitError(f"{name} is {text!r}. Give a number of seconds, at least {least}")
    return value
