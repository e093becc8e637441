"""`:plan`: print what a build planned. Imports neither Iris nor any cloud client."""

import sys
from collections.abc import Sequence

from absl.flags import argparse_flags

from tools.launcher.cli import exit_codes
from tools.launcher.cli.runfiles_paths import WrongFile, add_target_files, read_located
from tools.launcher.render.plan import LaunchPlan, plan_text


def run(arguments: Sequence[str]) -> int:
    """Print the plan as text, or with --format=json as JSON. Returns the exit status."""
    parser = argparse_flags.ArgumentParser(
        prog="plan",
        description="Prints an experiment's plan.\n\nexample: tools/bazel run //experiments/cat_count:plan",
        inherited_absl_flags=None,
    )
    add_target_files(parser, ("plan",))
    parser.add_argument("--format", choices=("text", "json"), default="text")
    flags = parser.parse_args(list(arguments))
    try:
        data = read_located(flags.plan)
    except WrongFile as error:
        sys.stderr.write(f"error: {error}\n")
        return exit_codes.USAGE
    sys.stdout.write(
        data.decode() if flags.format == "json" else plan_text(LaunchPlan.model_validate_json(data))
    )
    return exit_codes.OK
