"""`rehearse`: run the pinned document of any cluster on the local Iris."""

import os
from typing import Any

from tools.launcher.cli.errors import reporting
from tools.launcher.cli.experiment_files import add_file_arguments, read_experiment_files
from tools.launcher.cli.launch_arguments import add_rehearse_arguments
from tools.launcher.cli.launch_flow import launch, prepared
from tools.launcher.cli.launch_place import rehearsal_place

DESCRIPTION = """Runs an experiment's exact launch document on the local Iris, on this machine's CPU.

Every task of the gang joins, loads the staged stand-in model through the declared path, trains a
small policy on the experiment's toy environment, checkpoints and exports. It is a rehearsal of the
plan, never training: what it leaves says so.

examples:
  tools/bazel run //experiments/gsm8k_grpo:rehearse
  tools/bazel run //experiments/gsm8k_grpo:rehearse -- --dry-run
  tools/bazel run //experiments/gsm8k_grpo:rehearse -- --relaunch --authorize="ann: my laptop slept"
  tools/bazel run //experiments/gsm8k_grpo:rehearse -- --store=gs://team/rehearsals"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `rehearse`."""
    add_file_arguments(parser)
    add_rehearse_arguments(parser)


@reporting
def run(flags: Any) -> int:
    """Rehearse; see DESCRIPTION."""
    # No credentials: a rehearsal contacts none of the services they are for.
    place = rehearsal_place(flags, os.environ)
    return launch(prepared(read_experiment_files(flags), place, flags, credentials=()), flags)
