"""The nearest batch that breaks no rule, for repairs."""

import math
from collections.abc import Callable, Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.geometry import Geometry, divisors
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.wording import also, set_to

TRAIN = "skyrl.trainer.train_batch_size"
MINI = "skyrl.trainer.policy_mini_batch_size"
MICRO = "skyrl.trainer.micro_train_batch_size_per_gpu"
FORWARD = "skyrl.trainer.micro_forward_batch_size_per_gpu"

_LARGEST_SEARCHED = 100_000
"""Prompts; the largest public recipe trains a few thousand at once."""

Batch = tuple[int, int, int]
"""Train batch and mini batch in prompts, micro batch in rows per GPU."""

Trains = Callable[[Geometry], set[int]]
"""Which train batches a repair may choose from."""


def batch_repair(subject: PreflightSubject, otherwise: str) -> str:
    """Return the repair that sets what differs in the nearest legal batch.

    Args:
        subject: what is judged.
        otherwise: the repair where a value that the search needs cannot be read.
    """
    return _repair(subject, otherwise, near_trains)


def whole_batch_repair(subject: PreflightSubject, otherwise: str) -> str:
    """Like `batch_repair`, to a batch of which no prompt is dropped."""
    return _repair(subject, otherwise, whole_trains)


def smaller_batch_repair(subject: PreflightSubject, most: int, otherwise: str) -> str:
    """Like `batch_repair`, to a batch of at most `most` prompts of which none is dropped."""

    def trains(geometry: Geometry) -> set[int]:
        whole = _whole(geometry)
        return {most // step * step for step in (whole, math.lcm(whole, geometry.mini_batch))}

    return _repair(subject, otherwise, trains)


def _repair(subject: PreflightSubject, otherwise: str, trains: Trains) -> str:
    try:
        changes = batch_changes(subject, trains)
    except (MissingFact, UnreadableValue):
        return otherwise
    return also(*(set_to(path, value) for path, value in (changes or {}).items())) or otherwise


def batch_changes(subject: PreflightSubject, trains: Trains) -> dict[str, int] | None:
    """Return what differs in the nearest legal batch, None if there is none. Raises like `Geometry`."""
    geometry = Geometry.of(subject)
    now = (geometry.train_batch, geometry.mini_batch, geometry.micro_batch)
    then = nearest_legal_batch(geometry, trains, one_mini_batch=subject.entrypoint == "fully_async")
    if then is None:
        return None
    changes = {
        path: new for path, old, new in zip((TRAIN, MINI, MICRO), now, then, strict=True) if old != new
    }
    if MICRO in changes and geometry.strategy == "megatron":
        changes[FORWARD] = changes[MICRO]  # BAT-08
    return changes


def nearest_legal_batch(geometry: Geometry, trains: Trains, *, one_mini_batch: bool) -> Batch | None:
    """Return the legal batch with the fewest changed values, then with its train batch kept, then the nearest.

    Legal: T >= lcm(dp), T % M == 0, (M*n) % dp == 0, M % u == 0, (M*n/dp) % u == 0; T == M with
    `one_mini_batch`. The train batch is one of `trains`. None if there is none of a usual size.
    """
    now = (geometry.train_batch, geometry.mini_batch, geometry.micro_batch)

    if now[0] > _LARGEST_SEARCHED:
        return None

    def distance(batch: Batch) -> tuple[int, bool, float, Batch]:
        changed = sum(old != new for old, new in zip(now, batch, strict=True))
        far = sum(abs(math.log(new / old)) for old, new in zip(now, batch, strict=True))
        return changed, batch[0] != now[0], round(far, 9), batch

    return min(_legal_batches(geometry, trains, one_mini_batch), key=distance, default=None)


def _mini_batch_step(geometry: Geometry) -> int:
    """M must be a multiple of it, so that rows divide over the ranks."""
    return geometry.policy_dp // math.gcd(geometry.policy_dp, geometry.samples)


def whole_trains(geometry: Geometry) -> set[int]:
    """Return the two train batches next to the present one that drop no prompt."""
    whole = _whole(geometry)
    below = geometry.train_batch // whole * whole
    return {below, below + whole}


def near_trains(geometry: Geometry) -> set[int]:
    """Return the present train batch, its whole neighbours, and the one that keeps the mini batch."""
    kept = math.lcm(_whole(geometry), geometry.mini_batch)
    return {geometry.train_batch, *whole_trains(geometry), kept}


def _whole(geometry: Geometry) -> int:
    return math.lcm(geometry.dispatch_multiple, _mini_batch_step(geometry))


def _legal_batches(geometry: Geometry, trains: Trains, one_mini_batch: bool) -> Iterator[Batch]:
    ranks, samples, step = geometry.policy_dp, geometry.samples, _mini_batch_step(geometry)
    for train in sorted(trains(geometry)):
        if not geometry.dispatch_multiple <= train <= _LARGEST_SEARCHED:
            continue
        for mini in [train] if one_mini_batch else divisors(train):
            if mini % step == 0:
                fitting = divisors(math.gcd(mini, mini * samples // ranks))
                yield train, mini, max(micro for micro in fitting if micro <= geometry.micro_batch)
