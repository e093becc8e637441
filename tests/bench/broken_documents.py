"""Launch documents broken at random: in their values, their keys and their bytes, always the same for a seed."""

import copy
import random
from collections.abc import Callable, Sequence
from typing import Any

import yaml

from tools.launcher.documents.strict_yaml import DocumentError, UnquotedKey, load_yaml_mapping

_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

EDGES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 8, 16, 64, 2**31, 2**63, 10**9, 10**9 + 1, 10**30, 10**300,
    0.0, -0.0, 0.5, 1.0, 1e-300, 1e308, float("inf"), float("-inf"), float("nan"),
    "", " ", "0", "8", "1e-6", "true", "none", "auto", "???", "${run.id}", "${", "a/../b", "/", "s3://", "s3://b/k",
    "gs://b/tmp/ttl=14d/x", "x" * 2000, "é", "\u202e", "\x00", "700GB", "2.5TB", "-1GB", "2026.02.30",
    [], [[]], [None], [1, "a"], {}, {"": None}, {"a": {"b": []}}, {"kind": "directory"},
)  # fmt: skip
"""Values at the edges of every check, and of none."""

_MOST_CHANGES = 6
_LONGEST_REPEATED = 10
_BYTES = b"\x00\xff\t:-[]{}&*!|>'\"%@`#?,~\n 0"


class _Dumper(_Base):  # type: ignore[misc]  # which base depends on the machine
    """Writes a key that was read without quotes without quotes again."""


def _represent_unquoted(dumper: Any, key: UnquotedKey) -> yaml.ScalarNode:
    node: yaml.ScalarNode = dumper.represent_scalar(
        dumper.resolve(yaml.ScalarNode, key, (True, False)), str(key)
    )
    return node


_Dumper.add_representer(UnquotedKey, _represent_unquoted)


class BrokenDocuments:
    """Endless broken documents, made from correct and incorrect ones."""

    def __init__(self, originals: Sequence[bytes], *, seed: int) -> None:
        """Take the documents to break.

        Args:
            originals: bytes of launch documents, readable or not.
            seed: of all chance; two objects of one seed give the same documents.
        """
        self._originals = list(originals)
        self._trees = [tree for tree in map(_tree, originals) if tree is not None]
        self._seed = seed

    def make(self, number: int) -> bytes:
        """Return the document of this number, whatever was made before it."""
        chance = random.Random(f"{self._seed}:{number}")
        if chance.random() < 0.15:
            data = chance.choice(self._originals)
        else:
            tree = copy.deepcopy(chance.choice(self._trees))
            for _ in range(chance.randint(1, _MOST_CHANGES)):
                chance.choice(_TREE_CHANGES)(tree, chance, self._trees)
            data = yaml.dump(tree, Dumper=_Dumper, sort_keys=False).encode()
            if chance.random() < 0.8:
                return data
        for _ in range(chance.randint(1, _MOST_CHANGES)):
            data = chance.choice(_BYTE_CHANGES)(data, chance, self._originals)
        return data


def _tree(data: bytes) -> dict[str, Any] | None:
    try:
        return load_yaml_mapping(data, source="original")  # Its limits leave out bombs of aliases.
    except DocumentError:
        return None


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Every (container, key or index) of a tree."""
    found: list[tuple[Any, Any]] = []
    waiting = [node]
    while waiting:
        container = waiting.pop()
        keys = list(container) if isinstance(container, dict) else range(len(container))
        for key in keys:
            found.append((container, key))
            if isinstance(container[key], dict | list):
                waiting.append(container[key])
    return found


def _any_place(tree: Any, chance: random.Random) -> tuple[Any, Any] | None:
    places = _places(tree)
    return chance.choice(places) if places else None


def _edge(tree: Any, chance: random.Random, _: Sequence[Any]) -> None:
    place = _any_place(tree, chance)
    if place is not None:
        place[0][place[1]] = copy.deepcopy(chance.choice(EDGES))


def _near_number(tree: Any, chance: random.Random, _: Sequence[Any]) -> None:
    numbers = [(container, key) for container, key in _places(tree) if type(container[key]) in (int, float)]
    if numbers:
        container, key = chance.choice(numbers)
        value = container[key]
        container[key] = chance.choice(
            (value + 1, value - 1, value * 2, -value, str(value), float(value), [value])
        )


def _retype(tree: Any, chance: random.Random, _: Sequence[Any]) -> None:
    place = _any_place(tree, chance)
    if place is not None:
        container, key = place
        value = container[key]
        container[key] = chance.choice(([value], {"value": value}, str(value), {str(value)[:40]: value}))


def _delete(tree: Any, chance: random.Random, _: Sequence[Any]) -> None:
    place = _any_place(tree, chance)
    if place is not None:
        del place[0][place[1]]


def _swap(tree: Any, chance: random.Random, _: Sequence[Any]) -> None:
    first, second = _any_place(tree, chance), _any_place(tree, chance)
    if first is not None and second is not None:
        (a, key_a), (b, key_b) = first, second
        a[key_a], b[key_b] = copy.deepcopy(b[key_b]), copy.deepcopy(a[key_a])


def _misspell(tree: Any, chance: random.Random, _: Sequence[Any]) -> None:
    places = [
        (container, key) for container, key in _places(tree) if isinstance(container, dict) and str(key)
    ]
    if places:
        container, key = chance.choice(places)
        text = str(key)
        at = chance.randrange(len(text))
        other = chance.choice(
            (
                text[:at] + text[at + 1 :],
                text[:at] + text[at] + text[at:],
                text.upper(),
                f"{text}s",
                text.replace("_", "-"),
            )
        )
        container[other] = container.pop(key)


def _graft(tree: Any, chance: random.Random, trees: Sequence[Any]) -> None:
    """Put a part of another document somewhere, most often where it belongs."""
    source = _any_place(chance.choice(trees), chance)
    target = _any_place(tree, chance)
    if source is None or target is None:
        return
    value = copy.deepcopy(source[0][source[1]])
    same = [(container, key) for container, key in _places(tree) if key == source[1]]
    container, key = chance.choice(same) if same and chance.random() < 0.7 else target
    container[key] = value


def _repeat(tree: Any, chance: random.Random, _: Sequence[Any]) -> None:
    lists = [container[key] for container, key in _places(tree) if isinstance(container[key], list)]
    if lists:
        chosen = chance.choice(lists)
        if len(chosen) < _LONGEST_REPEATED:
            chosen.extend(copy.deepcopy(chosen) * chance.choice((1, 2, 40)))


def _resolve(tree: Any, chance: random.Random, _: Sequence[Any]) -> None:
    """Make a source document look like a resolved one, or the other way round."""
    runtime, skyrl = tree.get("runtime"), tree.get("skyrl")
    if isinstance(runtime, dict) and isinstance(skyrl, dict):
        module = chance.choice(("main_base", "fully_async", "terminal_bench", "main_generate", "other"))
        runtime["entrypoint"] = chance.choice((f"skyrl_train.entrypoints.{module}", ""))
        runtime["training_type"] = chance.choice(("sync", "async", None))
        skyrl.pop("context_budget", None)


_TREE_CHANGES: tuple[Callable[[Any, random.Random, Sequence[Any]], None], ...] = (
    _edge, _edge, _edge, _near_number, _near_number, _retype, _delete, _swap, _misspell, _graft, _graft, _repeat, _resolve,
)  # fmt: skip


def _flip(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([chance.choice((chance.randrange(256), chance.choice(_BYTES)))]) + data[at + 1 :]


def _insert(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    at = chance.randint(0, len(data))
    return data[:at] + bytes([chance.choice(_BYTES)]) * chance.choice((1, 2, 50)) + data[at:]


def _truncate(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    return data[: chance.randint(0, len(data))]


def _cut(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    start, end = sorted((chance.randint(0, len(data)), chance.randint(0, len(data))))
    return data[:start] + data[min(end, start + 200) :]


def _splice(data: bytes, chance: random.Random, originals: Sequence[bytes]) -> bytes:
    other = chance.choice(originals)
    return data[: chance.randint(0, len(data))] + other[chance.randint(0, len(other)) :]


def _move_line(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    line = lines.pop(chance.randrange(len(lines)))
    lines.insert(
        chance.randint(0, len(lines)), chance.choice((line, b"  " + line, line.lstrip(), line + b"\n" + line))
    )
    return b"\n".join(lines)


def _encode(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(chance.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1")), "replace")


_BYTE_CHANGES: tuple[Callable[[bytes, random.Random, Sequence[bytes]], bytes], ...] = (
    _flip, _flip, _insert, _insert, _truncate, _cut, _splice, _move_line, _encode,
)  # fmt: skip
