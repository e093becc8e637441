"""Files that a target's fixed arguments name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

_TARGET_FILES = {
    "launch": "pinned launch document",
    "digest": "digest file",
    "graph": "graph document",
    "plan": "plan",
    "report": "report",
    "cluster": "cluster card",
}


class WrongFile(Exception):
    """A file named on the command line cannot be used. The message says which and why."""


def add_target_files(parser: Any, names: Sequence[str]) -> Any:
    """Add the flags through which a verb's target names its files, and return their group.

    Args:
        parser: of the verb.
        names: of `launch`, `digest`, `graph`, `plan`, `report` and `cluster`, those that the verb reads.
    """
    group = parser.add_argument_group(
        "files", "set by the experiment's target; paths, or paths in its runfiles"
    )
    for name in names:
        group.add_argument(f"--{name}", required=True, metavar="FILE", help=_TARGET_FILES[name])
    return group


def read_located(path: str, *, fix: str = "Name a file that the experiment's build made") -> bytes:
    """Return the bytes of the file a flag names; see `located`.

    Args:
        path: as the flag has it.
        fix: what to do about a file that is there and cannot be read.

    Raises:
        WrongFile: there is none, or it cannot be read.
    """
    try:
        return located(path).read_bytes()
    except OSError as error:
        raise WrongFile(f"{path}: {error.strerror}. {fix}") from None


def located(path: str) -> Path:
    """Return the file a flag names: a path, or one in the runfiles of this program.

    Raises:
        WrongFile: there is neither.
    """
    if Path(path).exists():
        return Path(path)
    found = _in_runfiles(path)
    if found is None or not Path(found).exists():
        raise WrongFile(
            f"{path}: there is no such file, and none in the runfiles. Build the experiment first"
        )
    return Path(found)


def _in_runfiles(path: str) -> str | None:
    try:
        from python.runfiles import runfiles
    except ModuleNotFoundError:  # Only a program that Bazel started has it; every other names plain paths.
        return None
    manifest = runfiles.Create()
    found: str | None = manifest.Rlocation(path) if manifest is not None else None
    return found
