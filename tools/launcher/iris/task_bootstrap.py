"""How a task of ours starts: the one place that knows where the shipped code lies.

A task gets the launcher's code as `slipway.zip` among its files, which Iris writes to
$IRIS_WORKDIR. The working directory is somebody else's (on the embedded cluster it is the
daemon's), so the archive is put on the import path by name and the directory taken off it.
"""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

CODE_ARCHIVE = "slipway.zip"

# No argument of a task may START with a container mount ("/tmp/", "/app"), Iris would rewrite
# it. The script below is one argument which starts with "import", so it passes unchanged.
_SCRIPT = """import os, runpy, sys
work = os.environ.get("IRIS_WORKDIR")
if not work:
    sys.exit("slipway: IRIS_WORKDIR is not set. This command only runs as a task of Iris")
archive = os.path.join(work, "slipway.zip")
if not os.path.isfile(archive):
    sys.exit("slipway: the task has no slipway.zip in IRIS_WORKDIR. Send it among the job's files")
sys.path[:] = [archive] + [entry for entry in sys.path if entry]
inherited = os.environ.get("PYTHONPATH")
os.environ["PYTHONPATH"] = archive + os.pathsep + inherited if inherited else archive
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def bootstrap_argv(module: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the argv of a task that runs `module` of the shipped code archive.

    Args:
        module: dotted name of a module with a `__main__` guard, or of a package with `__main__`.
        arguments: its arguments. Give paths only as `--flag=file:///...`.

    Raises:
        ValueError: if an argument starts with "/", which Iris may rewrite on its way.
    """
    for argument in arguments:
        if argument.startswith("/"):
            raise ValueError(
                f"the argument {argument!r} starts with '/', which Iris may rewrite. Pass it as --flag=file://{argument}"
            )
    return ("python", "-c", _SCRIPT, module, *arguments)


def leave(code: int) -> NoReturn:
    """End this process with an exit status, once what it printed is out.

    Taking down what it has imported costs a process a tenth of a second, and whoever started it waits for its end.
    Everything that must outlive it is written by then, and it has no thread that would be cut off.

    Args:
        code: the exit status.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
