"""For tests: the launcher's command line in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

SECONDS = 240


def launcher(
    state: Path, command: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run one command line of the launcher in a process of its own.

    Args:
        state: state folder of the local Iris it would use.
        command, arguments: the command line.
        variables: of its environment, besides those it needs.
    """
    environment = {
        "HOME": str(state.parent),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(sys.path),
        "XDG_STATE_HOME": str(state.parent),
    }
    return subprocess.run(
        [sys.executable, "-m", "tools.launcher.cli.launcher_main", command, *arguments],
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
