"""For tests: the launcher's command line, in a process of its own or, which saves its start, in this one."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

from tools.launcher.cli.commands import run

SECONDS = 240


def started(state: Path, command: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Start one command line of the launcher in a process of its own.

    Args:
        state: state folder of the local Iris it would use.
        command, arguments: the command line.
        variables: of its environment, besides those it needs.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "tools.launcher.cli.launcher_main", command, *arguments],
        env=_needed(state) | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """Wait for what `started` gave; after SECONDS it is killed."""
    with process:
        try:
            out, err = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def here(state: Path, command: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one command line of the launcher in this process; arguments as for `started`."""
    from rigging.filesystem import conditional_object

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    # It keeps the client for good, and with it the address of a server that another test started.
    conditional_object._gcs_client.cache_clear()
    with (
        mock.patch.dict(os.environ, _needed(state) | variables, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            status: object = run([command, *arguments])
        except SystemExit as exit_:
            status = exit_.code
    conditional_object._gcs_client.cache_clear()
    assert isinstance(status, int), status
    said, complained = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess([command, *arguments], status, said, complained)


def _needed(state: Path) -> dict[str, str]:
    return {"HOME": str(state.parent), "PATH": os.environ["PATH"], "XDG_STATE_HOME": str(state.parent)}
