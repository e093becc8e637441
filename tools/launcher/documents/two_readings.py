"""Unquoted text that YAML 1.1 and YAML 1.2 read as different values.

The launcher reads YAML 1.1 (PyYAML), and so do we. Editors, linters and most other programs of today
read 1.2, in which `yes` is text and `021` is twenty-one: a person cannot know which one is meant.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from tools.launcher.documents.strict_yaml import compose_yaml, load_yaml

MOST = 50
"""Readings that are returned; a document with more of them has one habit, not fifty faults."""

_BOOLEAN = r"[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF"
_NUMBER = (
    r"[-+]?(?:0[0-9_]+|0b[01_]+|0x[0-9a-fA-F_]+|0o[0-7]+"  # 010 is eight or ten; 08 and 0o7 are text in 1.1
    r"|[0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|[0-9]+\.[0-9]*_[0-9_]*"
    r"|[1-9][0-9_]*(?::[0-5]?[0-9])+|[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*)"  # base sixty: 1:30 is ninety
)
_LONGEST = 64
"""Characters. No count, time or switch is longer."""

_TWO_READINGS = re.compile(f"{_BOOLEAN}|{_NUMBER}")
_CANDIDATE = re.compile(
    rb"(?:\A|[\s\[{,])"
    rb"(?:(?i:yes|no|on|off)(?=[\s,\]}]|\Z)|[-+]?(?:0[0-9_box]|[0-9]{1,64}(?:[_:]|\.[0-9]{0,64}_)))"
)
"""Finds every place that may hold one, and few others, without reading the YAML."""


@dataclass(frozen=True)
class Reading:
    """One unquoted value with two meanings."""

    path: str
    """Where it stands in the document."""
    text: str
    """As it is written."""
    value: Any
    """What the launcher reads."""


def two_readings(data: bytes) -> tuple[Reading, ...]:
    """Return the unquoted values of `data`, a document that `load_yaml` accepted, which have two meanings.

    Keys are left out. Of a value with aliases the first place is named.
    """
    if _CANDIDATE.search(data) is None:
        return ()
    root = compose_yaml(data)
    found: list[Reading] = []
    for reading in _of_node(root, "", set()):
        found.append(reading)
        if len(found) == MOST:
            break
    return tuple(found)


def _of_node(node: yaml.Node | None, path: str, seen: set[int]) -> Iterator[Reading]:
    if node is None or id(node) in seen:
        return
    if isinstance(node, yaml.ScalarNode):
        plain = not node.style and len(node.value) <= _LONGEST
        if plain and _TWO_READINGS.fullmatch(node.value):
            yield Reading(path, node.value, load_yaml(node.value.encode(), source=path))
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            merged = key.tag == "tag:yaml.org,2002:merge"
            yield from _of_node(
                value, path if merged else f"{path}.{key.value}" if path else str(key.value), seen
            )
    else:
        for index, item in enumerate(node.value):
            yield from _of_node(item, f"{path}[{index}]", seen)
