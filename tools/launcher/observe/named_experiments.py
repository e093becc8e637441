"""Which records somebody means who names an experiment, a sweep, or a pattern of names."""

import fnmatch
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tools.launcher.store.object_store import ObjectStore, StoreError, StoreUnavailable

_PATTERN = re.compile(r"[*?\[]")
_NO_LETTER = re.compile(r"[^A-Za-z0-9_]")
_READERS = 8


def may_be_meant(experiment: str, asked: str) -> bool:
    """True if the records of `experiment` are those asked for, or may be; `points_among` has the doubtful ones.

    Args:
        experiment: as records call it, with its stage behind a dot unless it is the default one.
        asked: the name of an experiment or a sweep, or a pattern such as `my_sweep*`.
    """
    return is_meant(experiment, asked) or (not _PATTERN.search(asked) and experiment.startswith(f"{asked}_"))


def is_meant(experiment: str, asked: str) -> bool:
    """True if the name alone says that the records are those asked for: it fits the pattern, or is the experiment
    with or without a stage."""
    if _PATTERN.search(asked):
        return fnmatch.fnmatchcase(experiment, asked)
    return asked in (experiment, experiment.partition(".")[0])


def points_among(
    store: ObjectStore, sweep: str, found: Iterable[tuple[str, str | None]]
) -> frozenset[tuple[str, str | None]]:
    """Return which of some records are of points of the sweep: their names say a value of their options.

    What is in no bundle any more, or cannot be read there, is taken for a point: its name begins like one.

    Args:
        store: of bundles.
        sweep: its name.
        found: experiment, as records call it, and the digest of its bundle, if it is known.

    Raises:
        StoreUnavailable: the store failed.
    """
    asked = sorted(set(found), key=str)
    with ThreadPoolExecutor(_READERS) as readers:
        options = list(readers.map(lambda each: _options(store, each[1]), asked))
    return frozenset(
        each
        for each, own in zip(asked, options, strict=True)
        if own is None or _is_point(each[0], sweep, own)
    )


def _options(store: ObjectStore, bundle: str | None) -> Mapping[str, str] | None:
    """The options of `main()` in the plan of a bundle, None if they are not to be had."""
    # Only for the points of sweeps.
    from tools.launcher.store.bundles import BUNDLE_PREFIX, unpack
    from tools.launcher.store.content import get_content

    if bundle is None:
        return None
    try:
        options = json.loads(unpack(get_content(store, BUNDLE_PREFIX, bundle)).plan_json)["options"]
        return {str(name): str(value) for name, value in options.items()}
    except StoreUnavailable:
        raise
    except (StoreError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _is_point(experiment: str, sweep: str, options: Mapping[str, str]) -> bool:
    """True if the name is what `rl_sweep` calls a point: the sweep, then axes with their values."""
    point = experiment.partition(".")[0].removeprefix(f"{sweep}_")
    parts = [
        (axis, f"{short}_{_NO_LETTER.sub('_', value)}")
        for axis, value in options.items()
        for short in (axis, _initials(axis))
    ]
    return _is_joined(point, parts)


def _is_joined(point: str, parts: Sequence[tuple[str, str]]) -> bool:
    for axis, part in parts:
        if point == part:
            return True
        others = [other for other in parts if other[0] != axis]
        if point.startswith(f"{part}_") and _is_joined(point.removeprefix(f"{part}_"), others):
            return True
    return False


def _initials(axis: str) -> str:
    words = [word for word in axis.split("_") if word]
    return "".join(word[0] for word in words) if len(words) > 1 else axis
