"""`sweep-launch`: launch every point of a sweep that is neither verified nor running."""

import os
from typing import Any

from tools.launcher.cli.errors import reporting
from tools.launcher.cli.launch_arguments import add_launch_arguments
from tools.launcher.cli.launch_flow import prepared
from tools.launcher.cli.launch_place import LaunchPlace, launch_place
from tools.launcher.cli.launch_problems import PlaceRefused
from tools.launcher.cli.runfiles_paths import WrongFile
from tools.launcher.cli.sweep_files import add_sweep_argument, read_points, read_sweep
from tools.launcher.cli.sweep_flow import launch_points
from tools.launcher.cli.sweep_work import point_launch
from tools.launcher.submit.facts import declared_credentials
from tools.launcher.submit.source_state import read_source_state

DESCRIPTION = """Launches the points of a sweep, each as `:launch` of its experiment would: the pinned document,
the same gates, one job however often it is called. Points that are verified on record are left alone, those that
run are followed; all others are shown in one table, with their gates, and agreed to once.

Called again after an interruption it goes on where it stopped. A point that fails keeps no other from running.
One that failed or was cancelled before is started again only with --relaunch --authorize="who: why".

Exit status: 0 every point is verified (with --detach: has its job, or waits for its turn); 1 a point failed, was
refused or is not verified; 2 wrong usage; 3 refused, nothing was submitted; 4 not known of a point: call again.

examples:
  tools/bazel run //experiments/gsm8k_sweep:launch
  tools/bazel run //experiments/gsm8k_sweep:launch -- --dry-run
  tools/bazel run //experiments/gsm8k_sweep:launch -- --at-most=2
  tools/bazel run //experiments/gsm8k_sweep:launch -- --relaunch --authorize="ann: node fault, agreed with ops"
"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `sweep-launch`."""
    files = add_sweep_argument(parser)
    files.add_argument("--cluster", required=True, metavar="FILE", help="cluster card")
    parser.add_argument(
        "--at-most",
        type=int,
        metavar="N",
        help="so many points run at a time; the others wait. With --detach they wait for the next call",
    )
    add_launch_arguments(parser)


@reporting
def run(flags: Any) -> int:
    """Launch the points; see DESCRIPTION."""
    if flags.at_most is not None and flags.at_most < 1:
        raise WrongFile(f"--at-most={flags.at_most}: no point could run. Give a number from 1")
    sweep = read_sweep(flags.sweep)
    built = read_points(sweep, flags.cluster)
    places = [launch_place(files.cluster, files.launch["iris"], flags, os.environ) for files in built]
    source = read_source_state(os.environ)
    points = []
    for point, files, place in zip(sweep.points, built, places, strict=True):
        _require_one_place(point.point, place, sweep.points[0].point, places[0])
        launching = prepared(
            files, place, flags, credentials=declared_credentials(files.bundle), source=source
        )
        points.append(point_launch(point, launching))
    return launch_points(sweep, points, flags)


def _require_one_place(point: str, place: LaunchPlace, first: str, expected: LaunchPlace) -> None:
    """Refuse a sweep that goes to several schedulers: one command asks one, and agrees to one."""
    if place != expected:
        raise PlaceRefused(
            f"the points {first} and {point} go to different places, {_place_words(expected)} and "
            f"{_place_words(place)}. Make a sweep for each"
        )


def _place_words(place: LaunchPlace) -> str:
    return (
        f"{place.cluster} by {place.route.config or place.route.scheduler} for {place.route.target_cluster}"
    )
