"""What is left to do of a sweep: which points are submitted, followed, or over."""

from collections.abc import Sequence
from typing import NamedTuple

from tools.launcher.cli import exit_codes
from tools.launcher.cli.launch_flow import Launching, contradicted_by
from tools.launcher.cli.launch_stage import trains
from tools.launcher.cli.sweep_ends import Ended
from tools.launcher.cli.sweep_follow import verified_quietly
from tools.launcher.cli.sweep_records import TO_RELAUNCH, Standing
from tools.launcher.render.sweep import SweepPoint
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.submit.machine import SubmitState, complete, decided_before

ENDED_BADLY = (SubmitState.FAILED_BEFORE, SubmitState.CANCELLED_BEFORE)


class PointLaunch(NamedTuple):
    """A point and the launch of its experiment."""

    point: SweepPoint
    launching: Launching

    @property
    def name(self) -> str:
        """Its short name."""
        return self.point.point


def point_launch(point: SweepPoint, launching: Launching) -> PointLaunch:
    """Return a point with its launch; one that ends before the training takes no GPU."""
    if not trains(launching.files, launching.stage):
        point = point.model_copy(update={"gpu_hours": 0.0})
    return PointLaunch(point, launching)


class Work(NamedTuple):
    """A point that is submitted or followed.

    Attributes:
        each: the point.
        ordinal: of its attempt.
        kind: `submit` the first attempt, or find out what became of its submission; `relaunch` after an end;
            `follow` the job that it has.
        standing: by its record.
    """

    each: PointLaunch
    ordinal: int
    kind: str
    standing: Standing


def sorted_out(
    points: Sequence[PointLaunch], found: Sequence[Standing], store: ObjectStore, *, relaunch: bool
) -> dict[str, Work | Ended]:
    """Return, for each point, what is to do or how it ended.

    Args:
        points: of the sweep.
        found: what is on record of each.
        store: of the records; what belongs to a run that is over and is missing is written there.
        relaunch: whether points that failed or were cancelled get a new attempt.

    Raises:
        StoreUnavailable: the store did not answer.
    """
    return {
        each.name: _of_point(each, standing, store, relaunch)
        for each, standing in zip(points, found, strict=True)
    }


def _of_point(each: PointLaunch, standing: Standing, store: ObjectStore, relaunch: bool) -> Work | Ended:
    if standing.state == "unreadable":
        return Ended("unreadable", "", standing.problem, exit_codes.UNKNOWN)
    if standing.state == "verified":
        return Ended("verified", standing.run, "", exit_codes.OK)
    newest = standing.newest
    if newest is None:
        return _unless_contradicted(Work(each, 1, "submit", standing))
    if relaunch and standing.state in TO_RELAUNCH:
        return _unless_contradicted(Work(each, newest.key.ordinal + 1, "relaunch", standing))
    launching = each.launching
    decided = decided_before(newest, launching.files.bundle, launching.facts(newest.key.ordinal, {}))
    if decided is None and newest.state.is_live:
        return Work(each, newest.key.ordinal, "follow", standing)
    if decided is None:
        return _unless_contradicted(Work(each, newest.key.ordinal, "submit", standing))
    complete(store, decided, launching.files.bundle)
    if decided.state is SubmitState.FINISHED_BEFORE:
        return verified_quietly(newest, launching.place, store, None, launching.source.who)
    if decided.state in ENDED_BADLY:
        return Ended(standing.state, standing.run, decided.message, exit_codes.FAILED)
    return Ended("refused", standing.run, decided.message, exit_codes.REFUSED)


def _unless_contradicted(work: Work) -> Work | Ended:
    contradicted = contradicted_by(work.each.launching)
    if contradicted is None:
        return work
    return Ended("refused", "", f"{contradicted}. Nothing was submitted", exit_codes.REFUSED)
