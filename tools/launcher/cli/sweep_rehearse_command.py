"""`sweep-rehearse`: rehearse every point of a sweep on the local Iris, one after another."""

import os
from collections.abc import Sequence
from typing import Any

from tools.launcher.cli.errors import reporting
from tools.launcher.cli.launch_arguments import add_rehearse_arguments
from tools.launcher.cli.launch_flow import prepared
from tools.launcher.cli.launch_place import rehearsal_place
from tools.launcher.cli.runfiles_paths import WrongFile
from tools.launcher.cli.sweep_files import add_sweep_argument, read_points, read_sweep
from tools.launcher.cli.sweep_flow import launch_points
from tools.launcher.cli.sweep_work import point_launch
from tools.launcher.render.sweep import Sweep
from tools.launcher.submit.source_state import read_source_state

DESCRIPTION = """Rehearses the points of a sweep one after another, each as `:rehearse` of its experiment would: its
exact launch document, on the local Iris, on this machine's CPU. A point that fails keeps no other from its turn, and a
table at the end says how each ended. What a rehearsal leaves is never training, and says so.

Called again after an interruption it goes on where it stopped: points that are verified are left alone, one that runs is
followed. One that failed or was cancelled is started again only with --relaunch --authorize="who: why".

Exit status: 0 every point is verified (with --detach: has its job, or waits for its turn); 1 a point failed, was
refused or is not verified; 2 wrong usage; 3 refused, nothing was submitted; 4 not known of a point: call again.

examples:
  tools/bazel run //experiments/gsm8k_sweep:rehearse
  tools/bazel run //experiments/gsm8k_sweep:rehearse -- --dry-run
  tools/bazel run //experiments/gsm8k_sweep:rehearse -- --only=lr_1e_6_tbs_32
  tools/bazel run //experiments/gsm8k_sweep:rehearse -- --relaunch --authorize="ann: my laptop slept"
"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `sweep-rehearse`."""
    files = add_sweep_argument(parser)
    files.add_argument("--cluster", required=True, metavar="FILE", help="cluster card")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="POINT",
        help="rehearse this point and no other, by its name in the table; repeatable",
    )
    add_rehearse_arguments(parser)
    # They share this machine's cores.
    parser.set_defaults(at_most=1)


@reporting
def run(flags: Any) -> int:
    """Rehearse the points; see DESCRIPTION."""
    whole = read_sweep(flags.sweep)
    sweep = _chosen(whole, flags.only)
    place = rehearsal_place(flags, os.environ)
    source = read_source_state(os.environ)
    built = read_points(sweep, flags.cluster)
    # No credentials: a rehearsal contacts none of the services they are for.
    points = [
        point_launch(point, prepared(files, place, flags, credentials=(), source=source))
        for point, files in zip(sweep.points, built, strict=True)
    ]
    return launch_points(whole, points, flags, doing="rehearsed")


def _chosen(sweep: Sweep, only: Sequence[str]) -> Sweep:
    """Return the sweep with the points that were asked for; all if none was.

    Raises:
        WrongFile: it has no such point.
    """
    if not only:
        return sweep
    names = [point.point for point in sweep.points]
    for name in only:
        if name not in names:
            raise WrongFile(f"--only={name}: {sweep.sweep} has no such point. Its points: {', '.join(names)}")
    return sweep.model_copy(update={"points": tuple(point for point in sweep.points if point.point in only)})
