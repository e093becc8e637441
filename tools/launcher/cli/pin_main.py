"""Entry point of an experiment's `:pin`: the command `pin` of the launcher as a program of its own."""

import argparse
import sys

from absl.flags import argparse_flags

from tools.launcher.cli import pin_command
from tools.launcher.cli.process_boundary import run_as_process


def main() -> int:
    """Run the command line of this process and return its exit status."""
    parser = argparse_flags.ArgumentParser(
        prog="pin",
        description=pin_command.DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        inherited_absl_flags=None,
    )
    pin_command.add_arguments(parser)
    return pin_command.run(parser.parse_args(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(run_as_process(main))
