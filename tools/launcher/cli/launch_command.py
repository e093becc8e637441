"""`launch`: submit the pinned document, follow the run, verify it."""

import sys
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.experiment_files import add_file_arguments, read_experiment_files
from tools.launcher.cli.local_launch import add_launch_arguments, launch_locally

DESCRIPTION = """Submits an experiment's pinned launch document, and nothing recomputed, to its cluster.

Run it twice and there is still one job. The local Iris is started when the cluster card names it.

examples:
  tools/bazel run //experiments/cat_count:launch
  tools/bazel run //experiments/cat_count:launch -- --dry-run
  tools/bazel run //experiments/cat_count:launch -- --detach"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `launch`."""
    add_file_arguments(parser)
    add_launch_arguments(parser)


@reporting
def run(flags: Any) -> int:
    """Launch; see DESCRIPTION."""
    files = read_experiment_files(flags)
    if files.cluster.scheduler != "embedded":
        package = files.plan.experiment.partition(":")[0]
        sys.stderr.write(
            f"refused: {files.plan.experiment} runs on the cluster {files.cluster.name}, and this version submits to "
            "the local Iris only. Nothing was submitted. To run the same document there: "
            f"tools/bazel run {package}:rehearse\n"
        )
        return exit_codes.REFUSED
    return launch_locally(files, flags)
