"""What a user's shell may do to the program at any moment: close its output, interrupt it, end it."""

import io
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType, ModuleType

from tools.launcher.cli import exit_codes


def run_as_process(command: Callable[[], int]) -> int:
    """Run a command line to its end and return its exit status; none of the above becomes a traceback.

    Args:
        command: does the work and returns an exit status.
    """
    _open_missing_streams()
    _look_into_the_standard_library_first()
    _leave_out_plugins_of_pydantic()
    # An exception, so that what must be put back (a lock, the terminal's cursor) is put back.
    signal.signal(signal.SIGTERM, _raise_terminated)
    try:
        status = _status_of(command)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # `launcher ... | head`: nobody reads any more.
        _print_no_more()
        return exit_codes.OUTPUT_CLOSED
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except OSError as error:
        if error.filename is not None:
            raise
        # Of files and connections commands speak themselves; this is what they print, as in `> /dev/full`.
        reason = f"error: what this prints cannot be written: {error.strerror}. Free some space, or print elsewhere\n"
        _print_no_more()
        sys.stderr.write(reason)
        return exit_codes.UNKNOWN


def _print_no_more() -> None:
    """Give up what was not written: the exit of the interpreter flushes once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def leave(status: int) -> None:
    """End the process with `status`, at once.

    Python would first take every module apart. That is of no use to a program whose files, connections and threads
    end with the command, and Ctrl-C meanwhile prints a traceback.
    """
    # What is done is done. Only who interrupted it may do so once more: a reader of the rest may never read on.
    signal.signal(signal.SIGINT, signal.SIG_DFL if status == exit_codes.INTERRUPTED else signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # Nobody reads it.
            continue
    os._exit(status)


def _status_of(command: Callable[[], int]) -> int:
    """Run it; an exit by exception, such as that of `--help`, is a status like any other."""
    try:
        return command()
    except SystemExit as ended:
        if isinstance(ended.code, int):
            return ended.code
        raise


def _open_missing_streams() -> None:
    """Give a program that was started with `>&-` or `2>&-` somewhere to write to.

    The number of a closed descriptor would go to the next file that is opened, a lock for example, and
    what is printed into that.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # A path may hold what the user's locale can't show.
            stream.reconfigure(errors="backslashreplace")


def _leave_out_plugins_of_pydantic() -> None:
    """No installed package may change our models.

    With the variable alone, pydantic would still import importlib.metadata, and with it the email and zipfile
    packages: a tenth of a start. Should another version look for plugins elsewhere, the variable still holds.
    """
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    if "pydantic" not in sys.modules:
        loader = ModuleType("pydantic.plugin._loader")
        vars(loader)["get_plugins"] = tuple
        sys.modules[loader.__name__] = loader


def _look_into_the_standard_library_first() -> None:
    """Move Python's own modules, which are most of what is imported, before the wheels.

    PYTHONPATH, by which a built program finds its wheels, goes before them, and each import of one asks every wheel.
    """
    library = os.path.dirname(os.__file__)  # noqa: PTH120
    own = (library, os.path.join(library, "lib-dynload"))  # noqa: PTH118
    sys.path.sort(key=lambda entry: entry not in own)


def _raise_terminated(_: int, __: FrameType | None) -> None:
    raise SystemExit(exit_codes.TERMINATED)
