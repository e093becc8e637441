"""A folder in which an action finds what it declared and nothing else, as in Bazel's sandbox.

Bazel can make one for each request to a worker, and then lists, links and removes the tool's own files with it,
hundreds of them. These are a handful.
"""

import os
from collections.abc import Iterable
from pathlib import Path

_INPUTS = ("--cluster", "--dataset", "--ledger", "--main", "--model", "--runtime", "--src")
_OUTPUT = "_out"


def enter_folder_of_inputs(arguments: Iterable[str], folder: Path) -> list[str]:
    """Make the folder with links to the inputs, each where it is now, and go into it.

    Args:
        arguments: of a preflight, `--flag=path`; inputs are below the working directory.
        folder: does not exist yet.

    Returns:
        The arguments, with absolute paths of outputs.

    Raises:
        OSError: the folder or a link cannot be made.
    """
    here = Path.cwd()
    adapted = []
    made = set()
    # Experiments should not see by its name which folder they are in.
    place = folder / here.name
    place.mkdir(parents=True)
    for argument in arguments:
        flag, _, path = argument.partition("=")
        if flag.endswith(_OUTPUT):
            argument = f"{flag}={here / path}"
        elif flag in _INPUTS and path not in made:
            made.add(path)
            link = place / path
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(here / path)
        adapted.append(argument)
    os.chdir(place)
    return adapted
