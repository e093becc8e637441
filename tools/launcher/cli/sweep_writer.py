"""The action of a sweep: plans and graphs of its points in, one file out.

Exit status: 0 written, 1 two points would be one run, 2 a plan or graph of another launcher.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from absl.flags import argparse_flags

from tools.launcher.render.sweep import (
    PointFiles,
    PointUnreadable,
    Sweep,
    SweepPoint,
    dump_sweep,
    point_of,
    sweep_problems,
)


def main(arguments: Sequence[str]) -> int:
    """Write the points of a sweep; `--point=JSON` stands once for each, as sweep.bzl writes it."""
    parser = argparse_flags.ArgumentParser(fromfile_prefix_chars="@", inherited_absl_flags=None)
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--point", action="append", default=[], type=json.loads)
    parser.add_argument("--out", required=True, type=Path)
    flags = parser.parse_args(list(arguments))
    try:
        points = tuple(_point(given) for given in flags.point)
    except PointUnreadable as error:
        sys.stderr.write(f"error: {flags.sweep}: {error}. Build the sweep again\n")
        return 2
    graphs = {given["label"]: json.loads(Path(given["graph"]).read_bytes()) for given in flags.point}
    problems = _written_twice(points) or sweep_problems(points, graphs)
    if problems:
        sys.stderr.writelines(f"error: {flags.sweep}: {problem}\n" for problem in problems)
        return 1
    flags.out.write_bytes(dump_sweep(Sweep(sweep=flags.sweep, points=points)))
    return 0


def _written_twice(points: Sequence[SweepPoint]) -> list[str]:
    """Values of an axis that are one number to main(): it is used, and its points are one run all the same."""
    first: dict[str, SweepPoint] = {}
    told: dict[tuple[str, str, str], str] = {}
    for point in points:
        other = first.setdefault(point.recipe, point)
        differing = [axis for axis, value in point.values.items() if value != other.values[axis]]
        if any(not _one_number(other.values[axis], point.values[axis]) for axis in differing):
            continue
        for axis in differing:
            values = other.values[axis], point.values[axis]
            told.setdefault(
                (axis, *values),
                f"axis '{axis}' has '{values[0]}' and '{values[1]}', which are one number: the points {other.point} and "
                f"{point.point} would be one run. Keep one of the two in `axes`",
            )
    return list(told.values())


def _one_number(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return False


def _point(given: Mapping[str, Any]) -> SweepPoint:
    case, files = given["case"], PointFiles(**given["files"])
    plan = Path(given["plan"]).read_bytes()
    return point_of(case["point"], given["label"], case["values"], files, plan)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
