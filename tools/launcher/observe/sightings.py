"""What somebody who watches a run sees: each look, and what the looks together tell of its pace."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from tools.launcher.observe.progress import Progress
from tools.launcher.observe.render_text import progress_line, rows_table, rows_text, status_rows
from tools.launcher.observe.spans import seconds_between, span_words
from tools.launcher.observe.status import RunStatus
from tools.launcher.observe.step_times import StepTimes

if TYPE_CHECKING:
    from rich.table import Table

NOT_KNOWN_YET = "not known until two steps were seen to end"

STALLED_STEPS, STALLED_SECONDS = 5, 30.0
"""After so many times the time of a step, and so long at least, the steps before tell nothing of the one under way."""


class Sighting(BaseModel):
    """One look, with what was seen before it.

    Attributes:
        progress: the look.
        times: of the steps, by the clock that `sightings` was given.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    progress: Progress
    times: StepTimes

    @property
    def status(self) -> RunStatus:
        """Of the run."""
        return self.progress.status


def sightings(
    looks: Iterable[Progress], *, clock: Callable[[], float] = time.monotonic
) -> Iterator[Sighting]:
    """Yield each look with the times of the steps seen so far."""
    times = StepTimes()
    for look in looks:
        times = times.seen(clock(), look.status.steps_known)
        yield Sighting(progress=look, times=times)


def watch_rows(sighting: Sighting, now: float, today: str) -> list[tuple[str, str]]:
    """Return label and value of every line of a live table: those of `status`, and the time it took and takes.

    The last look does not say that verifying was not asked for yet: that is what comes next.

    Args:
        sighting: the latest.
        now: seconds of the clock that `sightings` was given.
        today: the time as records have it.
    """
    status = sighting.status
    end = status.last_event.at if status.is_over else today
    after = {
        "launched": ("elapsed", span_words(seconds_between(status.when, end))),
        "steps": None if status.is_over else ("ETA", eta_words(sighting, now)),
    }
    rows: list[tuple[str, str]] = []
    for row in status_rows(status):
        if row[0] == "verified" and status.verified is None and sighting.progress.end is not None:
            continue
        rows.append(row)
        more = after.get(row[0])
        if more is not None:
            rows.append(more)
    return rows


def watch_table(sighting: Sighting, now: float, today: str) -> "Table":
    """Return `watch_rows` as a table for a terminal."""
    return rows_table(watch_rows(sighting, now, today), sighting.status)


def watch_text(sighting: Sighting, now: float, today: str) -> str:
    """Return `watch_rows` as plain lines, each `label: value`."""
    return rows_text(watch_rows(sighting, now, today))


def eta_words(sighting: Sighting, now: float) -> str:
    """Return how long the steps will still take, for people; arguments as `watch_rows`."""
    times, steps = sighting.times, sighting.status.steps_expected
    pace = times.seconds_per_step
    if pace is None:
        return NOT_KNOWN_YET
    left = times.seconds_left(now, steps)
    each = f"{span_words(pace)} a step" if pace >= 1 else "less than 1 s a step"
    waited = times.seconds_waited(now)
    goes_on = steps is None or times.step is None or times.step < steps
    if goes_on and waited > max(STALLED_STEPS * pace, STALLED_SECONDS):
        return f"not known: no step ended for {span_words(waited)} (it was {each})"
    if left is None:
        return f"not known: the plan leaves the number of steps open ({each})"
    return f"about {span_words(left)} for {_steps_left(times, steps)} ({each})"


def _steps_left(times: StepTimes, steps: int | None) -> str:
    count = max((steps or 0) - (times.step or 0), 0)
    return "1 more step" if count == 1 else f"{count} more steps"


def sighting_line(sighting: Sighting, now: float) -> str:
    """Return a look in one line, for a log: `progress_line`, and the time that is left where it is known."""
    status = sighting.status
    line = progress_line(status)
    left = None if status.is_over else sighting.times.seconds_left(now, status.steps_expected)
    return line if not left else f"{line}  about {span_words(left)} left"
