"""Reading the files a run left, so that a missing or torn one becomes words instead of an exception."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.store.locations import ObjectRoot

_RANK_FILE = re.compile(r"(\d+)\.json")


class Unreadable(Exception):
    """A file is missing or no JSON object. The text says which and how, in a few words."""


class Metrics(BaseModel):
    """metrics.jsonl as far as it is whole.

    Attributes:
        lines: the JSON objects in file order.
        problem: what is wrong with the file, "" if nothing. A last line without its end is a write under way.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    lines: tuple[dict[str, Any], ...]
    problem: str


def read_object(object_root: ObjectRoot, uri: str) -> dict[str, Any]:
    """Return the JSON object at `uri`.

    Raises:
        Unreadable: it is missing, cut short, or something else.
    """
    name = uri.rsplit("/", 1)[-1]
    try:
        value = json.loads(object_root.path(uri).read_bytes())
    except FileNotFoundError:
        raise Unreadable(f"{name} is missing") from None
    except OSError as error:
        raise Unreadable(f"{name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise Unreadable(f"{name} is torn: {error}") from None
    if not isinstance(value, dict):
        raise Unreadable(f"{name} is a JSON {type(value).__name__}, not an object")
    return value


def ranks_in(folder: Path) -> tuple[int, ...]:
    """Return the ranks that left a `<rank>.json` in `folder`, sorted."""
    if not folder.is_dir():
        return ()
    matches = (_RANK_FILE.fullmatch(entry.name) for entry in folder.iterdir())
    return tuple(sorted(int(match[1]) for match in matches if match))


def read_metrics(object_root: ObjectRoot, uri: str) -> Metrics:
    """Return the lines of the metrics file at `uri`; none if it is missing."""
    try:
        data = object_root.path(uri).read_bytes()
    except FileNotFoundError:
        return Metrics(lines=(), problem="metrics.jsonl is missing")
    except OSError as error:
        return Metrics(lines=(), problem=f"metrics.jsonl cannot be read: {error.strerror}")
    lines: list[dict[str, Any]] = []
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict) or type(value.get("step")) is not int:
            return Metrics(lines=tuple(lines), problem=f"metrics.jsonl line {number} is not a step's report")
        lines.append(value)
    return Metrics(lines=tuple(lines), problem="")


def list_ranks(ranks: Sequence[int]) -> str:
    """Write ranks for people: `0 to 15`, `0, 3`, `none`."""
    if not ranks:
        return "none"
    if len(ranks) > 2 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"{ranks[0]} to {ranks[-1]}"
    return ", ".join(str(rank) for rank in ranks)
