"""Legal batches near the present one."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from tools.launcher.preflight.geometry import divisors
from tools.launcher.preflight.repair_search.facts import Facts
from tools.launcher.preflight.repair_search.plan import BATCH_SETTINGS, Current, Plan
from tools.launcher.preflight.repair_search.ranking import WARNING_DISTANCE, extent

LARGEST_TRAIN_BATCH = 100_000
"""Prompts; the largest public recipe trains a few thousand at once."""

_KEPT_PER_STEP_COUNT = 6
_MINIS_PER_TRAIN = 4
_MICROS_PER_MINI = 3


class BatchOption(NamedTuple):
    """One legal batch; compares by how near it is."""

    steps: int
    distance: float
    warnings: int
    """1 if prompts of every batch are dropped (BAT-14); the distance has its weight."""
    values: tuple[int, ...]
    """In the order of `BATCH_SETTINGS`."""


def batch_options(
    facts: Facts, current: Current, *, ranks: int, dispatch: int, samples: int
) -> dict[int, list[BatchOption]]:
    """Return legal batches by how many settings they change, a few of each, nearest first.

    Args:
        facts: what may not change.
        current: what the document holds.
        ranks: dp of the policy.
        dispatch: lcm of the data-parallel sizes of all roles that get the batch.
        samples: n.
    """
    names = tuple(name for name in BATCH_SETTINGS if facts.moves(name))
    found = set()
    for train, mini, micro in _batches(facts, current, ranks, dispatch, samples):
        plan = current.plan._replace(
            train=train,
            mini=mini,
            micro=micro,
            samples=samples,
            forward=micro if facts.megatron else current.plan.forward,
            workers=max(current.plan.workers, mini) if facts.one_mini_batch else current.plan.workers,
        )
        steps, size = extent(current, plan, names)
        warnings = int(train % dispatch > 0)
        distance = size + warnings * WARNING_DISTANCE
        found.add(BatchOption(steps, distance, warnings, plan[-len(BATCH_SETTINGS) :]))
    options: dict[int, list[BatchOption]] = {}
    for option in sorted(found):
        same = options.setdefault(option.steps, [])
        if len(same) < _KEPT_PER_STEP_COUNT:
            same.append(option)
    return options


def _batches(
    facts: Facts, current: Current, ranks: int, dispatch: int, samples: int
) -> Iterator[tuple[int, int, int]]:
    """Yield (T, M, u) that obey BAT-01 to -07, -09 to -11, -15 and -16."""
    now = current.plan
    rows_per_prompt = 1 if facts.best_of_n else samples
    step = ranks // math.gcd(ranks, rows_per_prompt)
    for train in _trains(facts, now, dispatch, step):
        if not dispatch <= train <= LARGEST_TRAIN_BATCH or train % step:
            continue
        if facts.most_prompts is not None and train > facts.most_prompts:
            continue
        if facts.validation_rows is not None and facts.validation_rows % train:
            continue
        for mini in _minis(facts, now, train, step):
            rows = mini * rows_per_prompt // ranks
            for micro in _micros(facts, current, divisors(math.gcd(mini, rows))):
                yield train, mini, micro


def _micros(facts: Facts, current: Current, fitting: list[int]) -> list[int]:
    """The largest micro batch that takes no more memory than now; any of a few where none can be read."""
    now = current.plan
    if "micro" in current.unusable:
        return fitting[:_MICROS_PER_MINI]
    wanted = {max(micro for micro in fitting if micro <= now.micro)}
    if facts.megatron and now.forward in fitting:
        wanted.add(now.forward)
    return sorted(wanted)


def _trains(facts: Facts, now: Plan, dispatch: int, step: int) -> list[int]:
    """Train batches near the present one, near the mini batch, and the largest that the data fills."""
    wholes = {step, math.lcm(dispatch, step), math.lcm(now.mini, step), math.lcm(now.mini, dispatch, step)}
    anchors = {now.train, now.mini, dispatch}
    if facts.most_prompts:
        anchors.add(min(facts.most_prompts, now.train))
    around = {
        anchor // whole * whole + offset * whole
        for anchor in anchors
        for whole in wholes
        for offset in (-1, 0, 1)
    }
    if facts.validation_rows is not None:
        around.update(divisors(facts.validation_rows) if facts.validation_rows else ())
    return sorted(train for train in around if train > 0)


def _minis(facts: Facts, now: Plan, train: int, step: int) -> list[int]:
    """Divisors of the train batch that split over the ranks, nearest to the present mini batch first."""
    if facts.one_mini_batch:
        return [train]
    fitting = [mini for mini in divisors(train) if mini % step == 0]
    return sorted(fitting, key=lambda mini: (abs(math.log(mini / now.mini)), mini))[:_MINIS_PER_TRAIN]
