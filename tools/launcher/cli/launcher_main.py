"""Entry point of the launcher: `tools/bazel run //tools/launcher -- COMMAND`."""

import sys

from tools.launcher.cli.commands import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
