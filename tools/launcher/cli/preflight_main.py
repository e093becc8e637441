"""Entry point of the preflight binary: one preflight, or with --persistent_worker many, one after Bazel's request."""

import sys

from tools.launcher.cli import experiment_boundary, preflight_action


def main() -> int:
    """Run the command line of this process and return its exit status."""
    arguments = sys.argv[1:]
    if "--persistent_worker" not in arguments:
        return preflight_action.main(arguments, enclose=experiment_boundary.enforce)
    from tools.launcher.cli import preflight_worker

    return preflight_worker.serve_preflights()


if __name__ == "__main__":
    sys.exit(main())
