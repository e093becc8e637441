"""Launching the points of a sweep: look, table, gates, agreement, each of them once, and how they ended."""

import shlex
import sys
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.cli import exit_codes
from tools.launcher.cli.launch_arguments import agreeing_arguments
from tools.launcher.cli.launch_cluster import opened
from tools.launcher.cli.launch_flow import dry_run_text, gates_of, reached, resumption
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.cli.launch_question import agree_here
from tools.launcher.cli.launch_stage import looked_for_only, refuse_unmade
from tools.launcher.cli.launch_waiting import said_if_slow
from tools.launcher.cli.sweep_calls import Calls
from tools.launcher.cli.sweep_ends import Ended, show_ends
from tools.launcher.cli.sweep_gates import missing_words, show_together
from tools.launcher.cli.sweep_records import TO_RELAUNCH, TO_SUBMIT, PointState, Standing, standings
from tools.launcher.cli.sweep_table import Doing, SweepTable, gpu_hours, sweep_text
from tools.launcher.cli.sweep_work import PointLaunch, Work, sorted_out
from tools.launcher.iris.gateway import IrisGateway
from tools.launcher.iris.jobs import IrisError
from tools.launcher.iris.local.shapes import check_offered
from tools.launcher.render.sweep import Sweep
from tools.launcher.store.object_store import ObjectStore
from tools.launcher.submit.gates.labels import verb_target
from tools.launcher.submit.request import IRIS_USER


class SweepStakes(BaseModel):
    """What the submission of several points takes.

    Attributes:
        sweep: its label.
        cluster: where.
        submitted, points: how many points are submitted, of how many.
        gpu_hours: at most, in all.
        charged: who is charged, in words.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    sweep: str
    cluster: str
    submitted: int
    points: int
    gpu_hours: float
    charged: str

    def words(self) -> str:
        """Return the stakes as a block of lines."""
        return (
            f"{self.sweep} is going to be submitted:\n"
            f"  cluster    {self.cluster}\n"
            f"  points     {self.submitted} of {self.points}, as the table above has them\n"
            f"  GPU hours  at most {self.gpu_hours:g} in all\n"
            f"  charged    {self.charged}\n"
        )


def launch_points(
    sweep: Sweep, points: Sequence[PointLaunch], flags: Any, *, doing: Doing = "launched"
) -> int:
    """Bring every point to its end and verify it, as far as that is left to do.

    Args:
        sweep: all of it.
        points: those that were asked for, which all go to one place.
        flags: of `sweep-launch`.
        doing: what is said to be done with them.

    Returns:
        an exit status.
    """
    place = points[0].launching.place
    of = len(sweep.points)
    sweep = sweep.model_copy(update={"points": tuple(each.point for each in points)})
    for each in points:
        refuse_unmade(each.launching.files, place, each.launching.stage)
        if place.is_local:
            check_offered(each.launching.gang)
    sys.stdout.write(looked_for_only(points[0].launching.files, place, points[0].launching.stage))
    if flags.dry_run:
        return _dry_run(sweep, points, flags, doing, of)
    with said_if_slow(f"reading the records in {place.store_url}"):
        store = place.open_store()
        found = standings(store, sweep.points, runtime=place.runtime, stage=flags.stage)
    _show_table(sweep, place, found, place.store_url, _submits(flags), doing, of)
    todo = sorted_out(points, found, store, relaunch=flags.relaunch)
    work = [what for what in todo.values() if isinstance(what, Work)]
    ends = {name: what for name, what in todo.items() if isinstance(what, Ended)}
    if work:
        biggest = max(work, key=lambda one: one.each.launching.gang.num_nodes).each.launching.gang
        with opened(place, biggest) as cluster:
            ended = _work_through(sweep, points, work, flags, store, cluster)
        if isinstance(ended, int):
            return ended
        ends |= ended
    return show_ends({each.name: ends[each.name] for each in points})


def _work_through(
    sweep: Sweep,
    points: Sequence[PointLaunch],
    work: Sequence[Work],
    flags: Any,
    store: ObjectStore,
    cluster: IrisGateway | IrisError,
) -> dict[str, Ended] | int:
    """Return how the points ended, or the exit status of a sweep that was refused or interrupted."""
    place = points[0].launching.place
    new = [one for one in work if one.kind != "follow"]
    reports = {one.each.name: gates_of(one.each.launching, flags, store, cluster) for one in new}
    show_together(reports, unless_passed=place.is_local)
    missing = missing_words(sweep.sweep, reports)
    if missing:
        sys.stderr.writelines(f"refused: {words}\n" for words in missing)
        return exit_codes.REFUSED
    gateway = reached(cluster)
    for one in new:
        _say_what_is_resumed(one)
    if new and not place.is_local:
        agree_here(_stakes(sweep, points, new), yes=flags.yes, command=_agreeing_command(sweep, flags))
    calls = Calls(store, gateway, place, reports, flags.at_most, of=len(points))
    try:
        if flags.detach:
            calls.submit(work)
            calls.leave()
        else:
            calls.run(work)
    except KeyboardInterrupt:
        sys.stderr.write(f"\n{calls.interrupted()}\n")
        return exit_codes.INTERRUPTED
    return calls.ends


def _show_table(
    sweep: Sweep,
    place: LaunchPlace,
    found: tuple[Standing, ...] | None,
    records: str,
    submits: frozenset[PointState],
    doing: Doing,
    of: int,
) -> None:
    table = SweepTable(
        sweep=sweep,
        cluster=place.cluster,
        standings=found,
        records=records,
        submits=submits,
        doing=doing,
        points_in_all=of,
    )
    sys.stdout.write(sweep_text(table))
    sys.stdout.flush()


def _say_what_is_resumed(one: Work) -> None:
    """Say it of new attempts, and of first ones where it can be known."""
    launching = one.each.launching
    if one.kind == "submit" and launching.place.objects() is None:
        return
    lines = resumption(launching, one.ordinal)
    if lines:
        sys.stdout.write(f"{one.each.name}:\n{lines}")


def _stakes(sweep: Sweep, points: Sequence[PointLaunch], new: Sequence[Work]) -> SweepStakes:
    launching = points[0].launching
    return SweepStakes(
        sweep=sweep.sweep,
        cluster=launching.place.cluster,
        submitted=len(new),
        points=len(points),
        gpu_hours=gpu_hours([one.each.point for one in new]),
        charged=f"the Iris user {IRIS_USER}, asked for by {launching.source.who}",
    )


def _agreeing_command(sweep: Sweep, flags: Any) -> str:
    """The command line of this launch, with --yes."""
    typed = [
        *([f"--at-most={flags.at_most}"] if flags.at_most else []),
        *(["--relaunch"] if flags.relaunch else []),
        *agreeing_arguments(flags, "stage", "store", "controller", "authorize"),
    ]
    return f"tools/bazel run {verb_target(sweep.sweep, 'launch')} -- {shlex.join(typed)}"


def _dry_run(sweep: Sweep, points: Sequence[PointLaunch], flags: Any, doing: Doing, of: int) -> int:
    """Show what a launch would do: no server is asked, nothing is written or started."""
    place = points[0].launching.place
    found = None
    if place.store_url.startswith("file:"):
        found = standings(place.open_store(), sweep.points, runtime=place.runtime, stage=flags.stage)
    records = place.store_url if found else "not asked for in a dry run"
    _show_table(sweep, place, found, records, _submits(flags), doing, of)
    known: Sequence[Standing | None] = found or [None] * len(points)
    chosen = [
        each
        for each, standing in zip(points, known, strict=True)
        if standing is None or standing.state in _submits(flags)
    ]
    if not chosen:
        sys.stdout.write("nothing would be submitted\n")
        return exit_codes.OK
    reports = {each.name: gates_of(each.launching, flags, None, None) for each in chosen}
    show_together(reports, unless_passed=False)
    for each in chosen:
        sys.stdout.write(f"\n{each.name}:\n{dry_run_text(each.launching, flags)}")
    return exit_codes.OK


def _submits(flags: Any) -> frozenset[PointState]:
    return TO_SUBMIT | TO_RELAUNCH if flags.relaunch else TO_SUBMIT
