"""Faults on request, so that what watches a run can be seen to notice.

Off unless SLIPWAY_REHEARSAL_FAULT holds a fault, for example
`{"rank": 1, "kind": "die", "step": 3}`. A fault strikes only the first start of a task, so that
a retry by Iris goes through and resuming can be seen as well.
"""

import json
import os
import signal
import time
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.launcher.rehearsal.problems import RehearsalProblem

FAULT_VARIABLE = "SLIPWAY_REHEARSAL_FAULT"


class FaultError(RehearsalProblem):
    """The variable does not describe a fault."""


class Fault(BaseModel):
    """One fault.

    Attributes:
        rank: the task it strikes. A torn checkpoint strikes the writer, rank 0.
        kind: `die` (killed by SIGKILL before the step), `never_join` (never reaches the
            rendezvous), `stall` (hangs before the step), `torn_checkpoint` (half a checkpoint is
            written in place and the writer dies).
        step: the training step, from 1; for torn_checkpoint the first checkpoint at or after it.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    rank: Annotated[int, Field(ge=0)]
    kind: Literal["die", "never_join", "stall", "torn_checkpoint"]
    step: Annotated[int, Field(ge=1)] = 1


def fault_from(environ: Mapping[str, str], *, rank: int, start: int) -> Fault | None:
    """Return the fault which this task has to suffer, or None.

    Args:
        environ: the process environment.
        rank: this task's index.
        start: how often Iris has started this task before.

    Raises:
        FaultError: the variable is set and unreadable.
    """
    text = environ.get(FAULT_VARIABLE)
    if not text:
        return None
    try:
        fault = Fault.model_validate(json.loads(text))
    except (ValueError, ValidationError) as error:
        detail = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise FaultError(
            f"{FAULT_VARIABLE} is {text!r}: {detail}. Give for example "
            f'{{"rank": 1, "kind": "die", "step": 3}}'
        ) from None
    return fault if fault.rank == rank and start == 0 else None


def strike_before_joining(fault: Fault | None) -> None:
    """Hang for ever if the fault is never_join."""
    if fault is not None and fault.kind == "never_join":
        print("[rehearsal] fault: this task never joins", flush=True)
        _hang()


def strike_before_step(fault: Fault | None, step: int) -> None:
    """Die or hang if the fault says so for this step."""
    if fault is None or fault.step != step:
        return
    if fault.kind == "die":
        print(f"[rehearsal] fault: this task dies before step {step}", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if fault.kind == "stall":
        print(f"[rehearsal] fault: this task stalls before step {step}", flush=True)
        _hang()


def tears_checkpoint(fault: Fault | None, step: int) -> bool:
    """Tell whether the checkpoint of this step has to be torn."""
    return fault is not None and fault.kind == "torn_checkpoint" and step >= fault.step


def _hang() -> None:
    while True:
        time.sleep(3600)
