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
    problems = sweep_problems(points, graphs)
    if problems:
        sys.stderr.writelines(f"error: {flags.sweep}: {problem}\n" for problem in problems)
        return 1
    flags.out.write_bytes(dump_sweep(Sweep(sweep=flags.sweep, points=points)))
    return 0


def _point(given: Mapping[str, Any]) -> SweepPoint:
    case, files = given["case"], PointFiles(**given["files"])
    plan = Path(given["plan"]).read_bytes()
    return point_of(case["point"], given["label"], case["values"], files, plan)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
