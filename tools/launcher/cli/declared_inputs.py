"""A folder in which an action finds what it declared and nothing else, as in Bazel's sandbox.

Bazel can make one for each request to a worker, and then lists, links and removes the tool's own files with it,
hundreds of them. These are a handful.
"""

# ruff: noqa: PTH103, PTH109, PTH118, PTH119, PTH120, PTH211
# Paths are text: pathlib's objects take a child of the worker half a millisecond, and there is one for each experiment.

import os
from collections.abc import Iterable
from pathlib import Path

_INPUTS = frozenset(("--cluster", "--dataset", "--ledger", "--main", "--model", "--runtime", "--src"))
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
    here = os.getcwd()
    adapted = []
    for argument in arguments:
        flag, _, path = argument.partition("=")
        adapted.append(f"{flag}={os.path.join(here, path)}" if flag.endswith(_OUTPUT) else argument)
    os.chdir(folder_of_inputs(adapted, folder))
    return adapted


def folder_of_inputs(arguments: Iterable[str], folder: Path) -> str:
    """Make the folder with links to the inputs, each where it is now.

    Args:
        arguments: of a preflight, `--flag=path`; inputs are below the working directory.
        folder: does not exist yet.

    Returns:
        What is to be the working directory of the experiment.

    Raises:
        OSError: the folder or a link cannot be made.
    """
    here = os.getcwd()
    # Experiments should not see by its name which folder they are in.
    place = os.path.join(folder, os.path.basename(here))
    os.makedirs(place)
    links, folders = set(), {""}
    for argument in arguments:
        flag, _, path = argument.partition("=")
        if flag in _INPUTS and path not in links:
            links.add(path)
            parent = os.path.dirname(path)
            if parent not in folders:
                folders.add(parent)
                os.makedirs(os.path.join(place, parent), exist_ok=True)
            os.symlink(os.path.join(here, path), os.path.join(place, path))
    return place
