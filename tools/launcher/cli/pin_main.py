"""Entry point of an experiment's `:pin`: the command `pin` of the launcher as a program of its own."""

import sys

from tools.launcher.cli.process_boundary import leave, run_as_process


def main() -> int:
    """Run the command line of this process and return its exit status."""
    # Imported inside the boundary, so that Ctrl-C while it loads is no traceback either.
    from tools.launcher.cli import pin_command
    from tools.launcher.cli.flag_parser import flag_parser

    parser = flag_parser("pin", pin_command.DESCRIPTION)
    pin_command.add_arguments(parser)
    return pin_command.run(parser.parse_args(sys.argv[1:]))


if __name__ == "__main__":
    leave(run_as_process(main))
