"""What an experiment may not do while it is built, said as a sentence where it tries.

One action process and a persistent worker have different sandboxes: the one has no network device, the other
is an ordinary process whose folder holds the declared inputs only. This makes both refuse the same: the
network, other processes, files that are no inputs, writing files that are no outputs, and what is another thing in
each build (experiment_calls.py). An input is a link, so
`Path(__file__).resolve()` leads out of that folder, to files whose changes Bazel would not see.

It is no security boundary. Python reports such calls to audit hooks (PEP 578), native code need not, and an
experiment that wants to can turn it off. It finds mistakes: an experiment whose plan would depend on where
and when it is built.
"""

import os
import reprlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tools.launcher.cli.experiment_calls import watch_calls

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_NETWORK = "A build action has no network. Declare what it needs as a card, or pass it as an option"
_PROCESS = "A build action is one process. Write the answer into the experiment, or pass it as an option"
_FILE = "A build action writes its own outputs only. Return the terminal step from main()"
INPUT_RULE = (
    "A build action reads the files that its target names. Write it into the experiment, a card or an option"
)

_REFUSED: dict[str, tuple[str, int, str]] = {
    "socket.bind": ("binds a socket to", 1, _NETWORK),
    "socket.connect": ("connects to", 1, _NETWORK),
    "socket.getaddrinfo": ("looks up the address of", 0, _NETWORK),
    "socket.gethostbyaddr": ("looks up the name of", 0, _NETWORK),
    "socket.gethostbyname": ("looks up the address of", 0, _NETWORK),
    "socket.getnameinfo": ("looks up the name of", 0, _NETWORK),
    "socket.sendmsg": ("sends to", 1, _NETWORK),
    "socket.sendto": ("sends to", 1, _NETWORK),
    "os.exec": ("becomes", 0, _PROCESS),
    "os.fork": ("forks", -1, _PROCESS),
    "os.forkpty": ("forks", -1, _PROCESS),
    "os.posix_spawn": ("starts", 0, _PROCESS),
    "os.system": ("starts", 0, _PROCESS),
    "subprocess.Popen": ("starts", 1, _PROCESS),
    "os.link": ("makes a link to", 0, _FILE),
    "os.mkdir": ("makes the folder", 0, _FILE),
    "os.remove": ("removes", 0, _FILE),
    "os.rename": ("renames", 0, _FILE),
    "os.rmdir": ("removes the folder", 0, _FILE),
    "os.symlink": ("makes a link to", 0, _FILE),
    "os.truncate": ("cuts", 0, _FILE),
}
"""Audit event -> what the experiment does, which argument says to what (-1: none), the rule and the repair."""

_LISTS = ("os.listdir", "os.scandir")
_TOOLS = (f"bazel-out{os.sep}", f"external{os.sep}")
"""Where in the folder of inputs programs lie, and their Python, for a preflight that is a process of its own."""

_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 200


class BoundaryError(PermissionError):
    """The experiment did what no build action can. An OSError, as the sandbox's own refusals are."""


def enforce(outputs: Iterable[Path]) -> Callable[[], None]:
    """From now on refuse in this process, for good, what a build action cannot do.

    What is read must lie in the working directory, which holds the inputs, or where Python finds its modules.

    Args:
        outputs: absolute paths of the only files that may be written.

    Returns:
        A function to call after another experiment's folder has become the working directory.
    """
    # An import would write beside the sources; and nobody should read how this process was started.
    sys.dont_write_bytecode = True
    del sys.argv[1:]
    writable = {os.devnull, *map(str, outputs)}
    watch = watch_calls(lambda sentence: BoundaryError(f"the experiment {sentence}"))
    inputs = ""
    readable: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()

    def enter() -> None:
        nonlocal inputs, readable, tools
        inputs = f"{_absolute('')}{os.sep}"
        readable = (inputs, *{f"{_absolute(folder)}{os.sep}" for folder in sys.path})
        tools = tuple(inputs + folder for folder in _TOOLS)

    enter()

    def undeclared(path: Any) -> bool:
        # A number is a file that is open already; what is not there says so itself. A pipe or a device is neither
        # a file nor a folder, and nobody reads one by mistake.
        if path is None or isinstance(path, int) or os.fsdecode(path) in writable:
            return False
        place = _absolute(os.fsdecode(path))
        if f"{place}{os.sep}".startswith(readable):
            return False
        return Path(place).is_file() or Path(place).is_dir()

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if flags & _WRITES:
                if not isinstance(path, int) and os.fsdecode(path) not in writable:
                    raise BoundaryError(f"the experiment opens {_SHOWN.repr(path)} for writing. {_FILE}")
            elif undeclared(path):
                raise BoundaryError(f"the experiment reads {_SHOWN.repr(path)}. {INPUT_RULE}")
        elif event in _LISTS:
            if undeclared(arguments[0]):
                raise BoundaryError(
                    f"the experiment lists the folder {_SHOWN.repr(arguments[0])}. {INPUT_RULE}"
                )
        elif event == "exec":
            (code,) = arguments
            if code.co_filename.startswith(inputs) and not code.co_filename.startswith(tools):
                watch(code)
        elif event in _REFUSED:
            deed, position, rule = _REFUSED[event]
            object_of_it = "" if position < 0 else f" {_SHOWN.repr(arguments[position])}"
            raise BoundaryError(f"the experiment {deed}{object_of_it}. {rule}")

    sys.addaudithook(refuse)
    return enter


def _absolute(path: str) -> str:
    """The path without `..`; links are not followed, since an input is one."""
    return os.path.abspath(path)  # noqa: PTH100


def boundary_error_behind(error: BaseException) -> BoundaryError | None:
    """Find the refusal that led to an error: libraries wrap it, as urllib does."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, BoundaryError):
        behind = behind.__cause__ or behind.__context__
    return behind
