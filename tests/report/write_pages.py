"""Writes the report of each plan into a folder: `tools/bazel run //tests/report:write_pages -- FOLDER`."""

import sys
from pathlib import Path

from tests.report.plans_testlib import PLANS
from tools.launcher.render.report import report_html


def main(folder: Path) -> None:
    """Write `<name>.html` of every plan.

    Args:
        folder: exists, absolute.
    """
    for name, make in PLANS.items():
        (folder / f"{name}.html").write_bytes(report_html(make()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
