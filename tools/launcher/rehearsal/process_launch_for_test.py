"""For tests: the rehearsal's command line with tasks as plain processes instead of Iris jobs."""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from tools.launcher.iris.task_bootstrap import CODE_ARCHIVE
from tools.launcher.rehearsal import __main__ as command_line
from tools.launcher.rehearsal.process_gateway_for_test import ProcessGateway, code_archive


def main(argv: Sequence[str], environ: dict[str, str]) -> int:
    """Run one command of the rehearsal; `environ` is added to the environment."""
    os.environ.update(environ)
    if argv[0] != "iris":
        return command_line.main(argv)
    work = Path(os.environ["SLIPWAY_TEST_WORK"])
    work.mkdir(parents=True, exist_ok=True)
    (work / CODE_ARCHIVE).write_bytes(code_archive())
    os.environ["IRIS_WORKDIR"] = str(work)
    # Iris ends the children of a job that is terminated; here the gateway does, on its way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with ProcessGateway() as gateway, mock.patch.object(command_line, "_iris", lambda: gateway):
        return command_line.main(argv)
