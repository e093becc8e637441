"""Which task of Iris this process is, read from the variables that Iris sets, without importing Iris.

The names and forms are those that `iris.cluster.client.job_info` reads (marin-iris 0.2.227); importing that
costs more than a second.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict, SecretStr

_TASK_ID: Final = re.compile(r"(?P<job>(/[^/:]*[^/:\s][^/:]*){2,})/(?P<index>\d+)(:(?P<start>\d+))?")


class ThisTask(BaseModel):
    """A running task.

    Attributes:
        job_id: its job, "/user/job".
        attempt_id: the task and which of its starts this is, "/user/job/0:1".
        controller_url: address of the controller that started it.
        token: what it shows the controller as its owner's; None on a cluster that gives none.
        constraints: JSON of each placement constraint of the job, which its children inherit.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)

    job_id: str
    attempt_id: str
    controller_url: str
    token: SecretStr | None
    constraints: tuple[str, ...]


def this_task(environ: Mapping[str, str]) -> ThisTask | None:
    """Return the task that a process with this environment is, None if it is none."""
    match = _TASK_ID.fullmatch(environ.get("IRIS_TASK_ID", ""))
    url = environ.get("IRIS_CONTROLLER_ADDRESS")
    if match is None or not url:
        return None
    token = environ.get("IRIS_TASK_TOKEN")
    return ThisTask(
        job_id=match["job"],
        attempt_id=f"{match['job']}/{match['index']}:{match['start'] or 0}",
        controller_url=url,
        token=SecretStr(token) if token else None,
        constraints=_constraints(environ.get("IRIS_JOB_CONSTRAINTS", "")),
    )


def _constraints(text: str) -> tuple[str, ...]:
    return tuple(json.dumps(constraint) for constraint in json.loads(text or "[]"))
