"""Which of two proposals is nearer."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

from tools.launcher.preflight.repair_search.plan import SWITCHES, Current, Plan

WARNING_DISTANCE = math.log(2)
"""A warning weighs as much as one number doubled or halved."""

_SWITCH_DISTANCE = 1.0
_DIGITS = 9
"""Distances are sums of logarithms; equal ones must compare equal on every machine."""


class Cost(NamedTuple):
    """How near a plan is: less is nearer, the first difference decides.

    1. `steps`: changed settings of role plan, allocation and recipe, plus errors that remain, since each of
       them is a change still to be made. The node widths of policy and reference are one setting.
    2. `distance`: sum of |ln(new/old)| over the changed numbers, 1 per changed switch, and ln 2 per warning.
    3. `gpus` of the allocation, fewer first.
    4. `reshaped`: changed sizes of an engine; another number of equal engines is the smaller change.
    5. `plan`: its values, so that the order is total.
    """

    steps: int
    distance: float
    gpus: int
    reshaped: int
    plan: Plan

    @classmethod
    def of(cls, current: Current, plan: Plan, names: Sequence[str], *, remaining: int, warnings: int) -> Self:
        """Return the cost of `plan`.

        Args:
            current: what the document holds.
            plan: what is proposed.
            names: the settings that the search may move.
            remaining: errors that `plan` leaves.
            warnings: that `plan` has, and other numbers may not have.
        """
        changed, size = extent(current, plan, names)
        distance = round(size + warnings * WARNING_DISTANCE, _DIGITS)
        return cls(changed + remaining, distance, plan.gpus, reshaped(current, plan), plan)


def extent(current: Current, plan: Plan, names: Sequence[str]) -> tuple[int, float]:
    """Return how many of `names` change from `current` to `plan`, and by how much together."""
    moved = [name for name in names if current.moved(name, plan)]
    size = 0.0
    for name in moved:
        if name in SWITCHES:
            size += _SWITCH_DISTANCE
        else:
            size += abs(math.log(getattr(plan, name) / getattr(current.plan, name)))
    both_widths = "policy_width" in moved and "reference_width" in moved
    return len(moved) - both_widths, size


def reshaped(current: Current, plan: Plan) -> int:
    """Return how many sizes of an engine change from `current` to `plan`."""
    return sum(current.moved(name, plan) for name in ("tp", "pp", "dp", "ep"))
