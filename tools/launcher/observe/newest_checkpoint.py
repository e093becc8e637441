"""The newest whole checkpoint of a run, by the mark that trainers write last."""

import time
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict

from tools.launcher.observe.evidence import Unreadable
from tools.launcher.observe.marinskyrl_files import Reader, Unknown, latest_step
from tools.launcher.observe.run_files import RunFiles
from tools.launcher.store.objects import ObjectReader

BETWEEN_SECONDS = 30.0
"""A bucket is asked again after this: checkpoints come every few minutes at most."""

AFTER_FAILURE_SECONDS = 300.0
"""A bucket that could not be read is asked again after this: each try takes seconds."""


class Checkpoint(BaseModel):
    """What is known of a run's checkpoints.

    Attributes:
        step: of the newest whole one, None if there is none or it cannot be told.
        unknown: why it cannot be told, "" if it can.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    step: int | None
    unknown: str = ""


Checkpoints = Callable[[RunFiles], Checkpoint]
"""Looks for the newest checkpoint of a plan."""


def newest_checkpoint(files: RunFiles, objects: ObjectReader) -> Checkpoint:
    """Return the newest whole checkpoint at the plan's checkpoint root, also one of an earlier attempt, from
    which the run resumed or would."""
    try:
        return Checkpoint(step=latest_step(files, Reader(objects)))
    except Unreadable:
        return Checkpoint(step=None)
    except Unknown as unknown:
        return Checkpoint(step=None, unknown=str(unknown))


class PatientCheckpoints:
    """Looks again only after a while: for buckets, which take their time."""

    def __init__(
        self, open_objects: Callable[[], ObjectReader], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Look through what `open_objects` gives, which is called at the first look."""
        self._open, self._clock = open_objects, clock
        self._objects: ObjectReader | None = None
        self._last = Checkpoint(step=None)
        self._next = float("-inf")

    def __call__(self, files: RunFiles) -> Checkpoint:
        """See `newest_checkpoint`."""
        if self._clock() >= self._next:
            if self._objects is None:
                self._objects = self._open()
            self._last = newest_checkpoint(files, self._objects)
            pause = AFTER_FAILURE_SECONDS if self._last.unknown else BETWEEN_SECONDS
            self._next = self._clock() + pause
        return self._last
