"""The files of a sweep's target: its points, and the built experiment of each."""

import argparse
from collections.abc import Sequence
from typing import Any

from tools.launcher.cli.experiment_files import ExperimentFiles, read_experiment_files
from tools.launcher.cli.runfiles_paths import WrongFile, read_located
from tools.launcher.render.sweep import PointUnreadable, Sweep, SweepPoint, load_sweep, sweep_problems


def add_sweep_argument(parser: Any) -> Any:
    """Add the flag through which a verb's target names its points, and return its group."""
    group = parser.add_argument_group("files", "set by the sweep's target; paths, or paths in its runfiles")
    group.add_argument("--sweep", required=True, metavar="FILE", help="points of the sweep")
    return group


def read_sweep(path: str) -> Sweep:
    """Read the points that a build wrote.

    Raises:
        WrongFile: the file is missing or not of this launcher's making.
    """
    try:
        return load_sweep(read_located(path, fix="Name the sweep.json of an rl_sweep"))
    except PointUnreadable as error:
        raise WrongFile(f"{path} is not of this launcher's making: {error}. Build the sweep again") from None


def read_points(sweep: Sweep, cluster: str) -> tuple[ExperimentFiles, ...]:
    """Return the experiment of each point, checked against the table and against each other.

    Args:
        sweep: of `read_sweep`.
        cluster: path of the cluster card.

    Raises:
        WrongFile: a file is missing, or of another build than the table; two points would be one run.
        BundleError, DocumentError: as `read_experiment_files`.
    """
    points = [_files_of(point, cluster) for point in sweep.points]
    for point, files in zip(sweep.points, points, strict=True):
        if (files.digests.recipe, files.digests.launch) != (point.recipe, point.launch):
            raise WrongFile(
                f"{point.files.digest} and the table of {sweep.sweep} are of two builds. Build the sweep again"
            )
    problems = _problems(sweep.points, points)
    if problems:
        raise WrongFile(f"{sweep.sweep}: {'; '.join(problems)}")
    return tuple(points)


def _files_of(point: SweepPoint, cluster: str) -> ExperimentFiles:
    return read_experiment_files(argparse.Namespace(**point.files.model_dump(), cluster=cluster))


def _problems(points: Sequence[SweepPoint], files: Sequence[ExperimentFiles]) -> list[str]:
    graphs = {point.label: built.graph for point, built in zip(points, files, strict=True)}
    return sweep_problems(points, graphs)
