"""How long the steps of a run take, as somebody who watches it sees them end. Pure: no clock.

No runtime writes down when a step ended, so an estimate rests on what was seen: the moments at which the
count of steps was first found higher.
"""

from pydantic import BaseModel, ConfigDict, Field

WINDOW = 20
"""Ends of steps an estimate rests on, the latest: a run's pace changes with the length of its answers."""


class StepTimes(BaseModel):
    """What was seen so far.

    Attributes:
        step: the latest count, None before the first. When it was reached is not known for the first one: the
            watcher came upon it.
        ends: (seconds of the watcher's clock, count) of each later increase, oldest first.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    step: int | None = Field(default=None, ge=0)
    ends: tuple[tuple[float, int], ...] = ()

    def seen(self, seconds: float, step: int | None) -> "StepTimes":
        """Return what is known after another look.

        Args:
            seconds: of the watcher's clock, which never goes back.
            step: steps done, None if that cannot be told.
        """
        if step is None or step == self.step:
            return self
        if self.step is None or step < self.step:
            # A later attempt does steps again that the earlier one had not saved: its pace is its own.
            return StepTimes(step=step)
        return StepTimes(step=step, ends=(*self.ends, (seconds, step))[-WINDOW:])

    @property
    def seconds_per_step(self) -> float | None:
        """Mean time of a step; None until two steps were seen to end."""
        if len(self.ends) < 2:
            return None
        (begin, first), (end, last) = self.ends[0], self.ends[-1]
        return (end - begin) / (last - first)

    def seconds_waited(self, now: float) -> float:
        """Return how long ago a step was last seen to end, 0 if none was.

        Args:
            now: seconds of the watcher's clock.
        """
        return now - self.ends[-1][0] if self.ends else 0.0

    def seconds_left(self, now: float, steps: int | None) -> float | None:
        """Return how long the steps that are left will take; None if that cannot be told.

        The step under way counts as what its pace leaves of it, and as nothing once it takes longer.

        Args:
            now: seconds of the watcher's clock.
            steps: as planned, None if the plan leaves it open.
        """
        pace = self.seconds_per_step
        if pace is None or steps is None or self.step is None:
            return None
        left = steps - self.step
        if left <= 0:
            return 0.0
        under_way = max(pace - self.seconds_waited(now), 0.0)
        return under_way + (left - 1) * pace
