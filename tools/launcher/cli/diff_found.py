"""One side of a `diff`, as it was found."""

import json
from typing import Any, NamedTuple


class NoSuchSide(Exception):
    """What was named is not there. The message says what was looked for and what to do."""


class Found(NamedTuple):
    """The files of one side; a document that came alone has only itself.

    Attributes:
        name: as it was asked for.
        origin: where it was found.
        launch: the launch document.
        graph, plan: of the same build, if they came along.
        recipe: fingerprint of its RL step, if that is known.
    """

    name: str
    origin: str
    launch: bytes
    graph: dict[str, Any] | None = None
    plan: dict[str, Any] | None = None
    recipe: str | None = None


def json_mapping(data: bytes, what: str) -> dict[str, Any]:
    """Read a graph or a plan.

    Args:
        data: of the file.
        what: how messages call it.

    Raises:
        ValueError, RecursionError: it is none.
    """
    content = json.loads(data)
    if not isinstance(content, dict):
        raise ValueError(f"the {what} is a {type(content).__name__}, not a mapping")
    return content
