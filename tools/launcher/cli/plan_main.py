"""Entry point of an experiment's `:plan`: prints the plan that the build wrote."""

import sys

from tools.launcher.cli.process_boundary import leave, run_as_process


def main() -> int:
    """Run the command line of this process and return its exit status."""
    # Imported inside the boundary, so that Ctrl-C while it loads is no traceback either.
    from tools.launcher.cli.plan_command import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    leave(run_as_process(main))
