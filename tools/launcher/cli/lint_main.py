"""Entry point of `//tools/launcher:lint`: the command `lint` of the launcher as a program of its own."""

import gc
import sys

from tools.launcher.cli.process_boundary import leave, run_as_process


def main() -> int:
    """Run the command line of this process and return its exit status."""
    # Nothing that is imported becomes garbage; looking for it takes a tenth of the start.
    gc.disable()
    # Imported inside the boundary, so that Ctrl-C while it loads is no traceback either.
    from tools.launcher.cli import lint_command
    from tools.launcher.cli.flag_parser import flag_parser

    gc.freeze()
    gc.enable()
    parser = flag_parser("lint", lint_command.DESCRIPTION)
    lint_command.add_arguments(parser)
    return lint_command.run(parser.parse_args(sys.argv[1:]))


if __name__ == "__main__":
    leave(run_as_process(main))
