"""`:plan`: print what a build planned. Imports neither Iris nor any cloud client."""

import sys
from collections.abc import Sequence

from tools.launcher.cli import exit_codes
from tools.launcher.cli.flag_parser import flag_parser
from tools.launcher.cli.runfiles_paths import WrongFile, add_target_files, read_located

_DESCRIPTION = """Prints an experiment's plan.

example: tools/bazel run //experiments/cat_count:plan"""


def run(arguments: Sequence[str]) -> int:
    """Print the plan as text, or with --format=json as JSON. Returns the exit status."""
    parser = flag_parser("plan", _DESCRIPTION)
    add_target_files(parser, ("plan",))
    parser.add_argument("--format", choices=("text", "json"), default="text")
    flags = parser.parse_args(list(arguments))
    try:
        data = read_located(flags.plan)
    except WrongFile as error:
        sys.stderr.write(f"error: {error}\n")
        return exit_codes.USAGE
    sys.stdout.write(data.decode() if flags.format == "json" else _text(data))
    return exit_codes.OK


def _text(data: bytes) -> str:
    # Neither for --help nor for JSON: the models of a plan take longer to import than all else here.
    from tools.launcher.render.plan import LaunchPlan, plan_text

    return plan_text(LaunchPlan.model_validate_json(data))
