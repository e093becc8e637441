"""Entry point of an experiment's `:report`."""

import sys

from tools.launcher.cli.process_boundary import run_as_process
from tools.launcher.cli.report_command import run

if __name__ == "__main__":
    sys.exit(run_as_process(lambda: run(sys.argv[1:])))
