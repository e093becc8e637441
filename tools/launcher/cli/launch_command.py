"""`launch`: submit the pinned document, follow the run, verify it."""

import os
from typing import Any

from tools.launcher.cli.errors import reporting
from tools.launcher.cli.experiment_files import add_file_arguments, read_experiment_files
from tools.launcher.cli.launch_arguments import add_launch_arguments
from tools.launcher.cli.launch_flow import launch, prepared
from tools.launcher.cli.launch_place import launch_place
from tools.launcher.submit.facts import declared_credentials

DESCRIPTION = """Submits an experiment's pinned launch document, and nothing recomputed, to its cluster.

Run it twice and there is still one job. The local Iris is started when the cluster card names it. On a
terminal it asks before it submits to another cluster; elsewhere it needs --yes.

examples:
  tools/bazel run //experiments/cat_count:launch
  tools/bazel run //experiments/cat_count:launch -- --dry-run
  tools/bazel run //experiments/cat_count:launch -- --detach
  tools/bazel run //experiments/cat_count:launch -- --relaunch --authorize="ann: node fault, agreed with ops"
  tools/bazel run //experiments/gsm8k_grpo:launch -- --store=gs://team/slipway --yes
  tools/bazel run //experiments/gsm8k_grpo:launch -- --allow-dirty --override budget="ann: agreed"
"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `launch`."""
    add_file_arguments(parser)
    add_launch_arguments(parser)


@reporting
def run(flags: Any) -> int:
    """Launch; see DESCRIPTION."""
    files = read_experiment_files(flags)
    place = launch_place(files.cluster, files.launch["iris"], flags, os.environ)
    credentials = declared_credentials(files.bundle)
    return launch(prepared(files, place, flags, credentials=credentials), flags)
