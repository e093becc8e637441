"""The packages that a coordinator on a real cluster gets: those of the launcher's own lock."""

from pathlib import Path

from tools.launcher.submit.code_archive import CodeIncomplete
from tools.launcher.submit.remote_setup import requirements

_LOCK = Path(__file__).parents[3] / "third_party" / "python" / "requirements_lock.txt"
"""The same place in a checkout and in the runfiles of a program."""


def coordinator_requirements() -> bytes:
    """Return the part of the lock that a coordinator needs.

    Raises:
        CodeIncomplete: this program does not carry its lock.
        LockUnreadable: the lock lacks a package that is needed.
    """
    try:
        lock = _LOCK.read_text(encoding="utf-8")
    except OSError as error:
        raise CodeIncomplete(
            f"this program does not carry {_LOCK.name} ({error.strerror}), of which a coordinator on a real "
            "cluster gets its packages. Add //third_party/python:sources to the program's data, or run it "
            "from a complete checkout"
        ) from None
    return requirements(lock)
