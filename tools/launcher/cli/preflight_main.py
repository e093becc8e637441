"""Entry point of the preflight binary: one action, or with --persistent_worker many, one after Bazel's request."""

import signal
import sys
import tempfile
from pathlib import Path

from tools.launcher.cli import experiment_boundary, preflight_action
from tools.launcher.cli.preflight_request import are_for_digests, expanded


def main() -> int:
    """Run the command line of this process and return its exit status."""
    arguments = sys.argv[1:]
    if "--persistent_worker" in arguments:
        from tools.launcher.cli import preflight_worker

        return preflight_worker.serve_preflights()
    arguments = expanded(arguments)
    if are_for_digests(arguments):
        from tools.launcher.cli import digests_action
        from tools.launcher.cli.card_reader import CardReader

        # Else a build that is interrupted would leave the folder behind.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        with tempfile.TemporaryDirectory(prefix="slipway-digests-") as scratch:
            return digests_action.main(arguments, CardReader(), Path(scratch, "inputs"))
    return preflight_action.main(arguments, enclose=experiment_boundary.enforce)


if __name__ == "__main__":
    sys.exit(main())
