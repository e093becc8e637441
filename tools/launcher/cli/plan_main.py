"""Entry point of an experiment's `:plan`: prints the plan that the build wrote."""

import sys

from tools.launcher.cli.plan_command import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
