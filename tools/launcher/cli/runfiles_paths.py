"""Files that a target's fixed arguments name."""

from pathlib import Path


class WrongFile(Exception):
    """A file named on the command line cannot be used. The message says which and why."""


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
