"""The text of a runtime manifest: new blocks in the style of the project's, all others as they were."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from tools.launcher.catalog.runtime_manifest import RecipeKey
from tools.launcher.documents.strict_yaml import EXPONENT_WITHOUT_DOT

_FIELD = re.compile(r"([a-z_]+):(\s|$)")
_MAX_LINE = 110
_TAKEN_OVER = "# taken over from the manifest of "


class Block(NamedTuple):
    """One top-level field of a manifest's file."""

    field: str
    comments: tuple[str, ...]
    """Lines above it that start with #, and empty ones."""
    body: str
    """The field's lines, each with its line end."""


class _FlowDumper(yaml.SafeDumper):
    """Text that the launcher's reader takes for a number is quoted."""


_FlowDumper.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT_WITHOUT_DOT, list("-+0123456789"))


def blocks(text: str) -> list[Block]:
    """Split the text of a manifest into its fields, in order."""
    found: list[Block] = []
    waiting: list[str] = []
    for line in text.splitlines():
        start = _FIELD.match(line)
        if start is not None:
            found.append(Block(start[1], tuple(waiting), f"{line}\n"))
            waiting = []
        elif not line.strip() or line.startswith("#"):
            waiting.append(line)
        elif found:
            last = found[-1]
            inside = "".join(f"{each}\n" for each in waiting)
            found[-1] = last._replace(body=f"{last.body}{inside}{line}\n")
            waiting = []
    return found


def taken_over(block: Block, commit: str) -> str:
    """Return the block as it was, marked with the commit that its facts are from."""
    comments = [line for line in block.comments if line]
    empty = [""] if len(comments) < len(block.comments) else []
    marked = any(line.startswith(_TAKEN_OVER) for line in comments)
    mark = [] if marked else [f"{_TAKEN_OVER}{commit[:8]}, not read"]
    return "".join(f"{line}\n" for line in [*empty, *mark, *comments]) + block.body


def written(field: str, value: Any, comment: str) -> str:
    """Return the block of a field whose value was read.

    Args:
        field: name of the field.
        value: text, a list of text, a mapping of recipe keys, or a mapping of mappings.
        comment: where the value is from.
    """
    return f"\n# {comment}\n{_body(field, value)}"


def key_line(path: str, key: RecipeKey) -> str:
    """Return one line of `recipe_keys`."""
    facts = key.model_dump(exclude_unset=True)
    order = ("type", "nullable", "default", "owner", "open", "inferred")
    shown = {name: facts[name] for name in order if name in facts and _says_something(name, facts[name])}
    return f"  {path}: {_flow(shown)}\n"


def _says_something(name: str, value: Any) -> bool:
    return name in ("type", "default") or (value != "recipe" if name == "owner" else value is True)


def _body(field: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{field}:\n" + "".join(
            key_line(name, item) if isinstance(item, RecipeKey) else _nested(name, item)
            for name, item in value.items()
        )
    line = f"{field}: {_flow(value)}\n"
    if isinstance(value, list) and len(line) > _MAX_LINE:
        return f"{field}:\n" + "".join(f"  - {_flow(item)}\n" for item in value)
    return line


def _nested(name: str, item: Mapping[str, Any]) -> str:
    return f"  {name}:\n" + "".join(f"    {key}: {_flow(value)}\n" for key, value in item.items())


def _flow(value: Any) -> str:
    text: str = yaml.dump(
        _lists(value),
        Dumper=_FlowDumper,
        default_flow_style=True,
        sort_keys=False,
        allow_unicode=True,
        width=10**6,
    )
    return text.removesuffix("...\n").rstrip("\n")


def _lists(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _lists(item) for name, item in value.items()}
    return [_lists(item) for item in value] if isinstance(value, list | tuple) else value
