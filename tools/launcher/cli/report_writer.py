"""The report's build action: a plan in, one page out.

Exit status: 0 written, 2 wrong usage or no plan of this launcher.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from absl.flags import argparse_flags
from pydantic import ValidationError

from tools.launcher.render.detail import NoDetail
from tools.launcher.render.plan import LaunchPlan
from tools.launcher.render.report import report_html


def main(arguments: Sequence[str]) -> int:
    """Write the report of one plan; see --help. Returns the exit status."""
    parser = argparse_flags.ArgumentParser(
        prog="report_writer", description="Writes a plan as one HTML page.", inherited_absl_flags=None
    )
    parser.add_argument("--plan", required=True, metavar="FILE", help="plan that a build wrote")
    parser.add_argument("--report_out", required=True, metavar="FILE", help="where to write the page")
    flags = parser.parse_args(list(arguments))
    try:
        page = report_html(LaunchPlan.model_validate_json(Path(flags.plan).read_bytes()))
    except OSError as error:
        problem = f"{error.strerror}. Name the plan.json of an experiment"
    except (ValidationError, NoDetail) as error:
        what = "it does not read as one" if isinstance(error, ValidationError) else str(error)
        problem = f"this is no plan of this launcher: {what}. Build the experiment again"
    else:
        Path(flags.report_out).write_bytes(page)
        return 0
    sys.stderr.write(f"error: {flags.plan}: {problem}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
