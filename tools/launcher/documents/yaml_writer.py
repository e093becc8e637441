"""Writing YAML whose bytes depend on nothing but the value.

PyYAML's pure emitter says what the bytes are. It takes eight milliseconds for a launch document, most of them to
find out that a word needs no quotes; so mappings, lists, words and numbers are written directly, with the same
bytes, and the emitter is asked for every other value.
"""

import re
from typing import Any

import yaml

from tools.launcher.documents.strict_yaml import EXPONENT_WITHOUT_DOT, UnquotedKey


class _StableDumper(yaml.SafeDumper):
    """The pure Python emitter, always: libyaml breaks some lines elsewhere."""

    def ignore_aliases(self, data: Any) -> bool:
        # Anchors would depend on which objects happen to be shared in memory.
        return True


# YAML 1.1 folds these like line ends in every style but the double-quoted one.
_LINE_BREAKS_BESIDE_NEWLINE = frozenset("\r\x85\u2028\u2029\ufeff")


def _represent_str(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if not _LINE_BREAKS_BESIDE_NEWLINE.isdisjoint(text):
        style: str | None = '"'
    else:
        style = "|" if "\n" in text and not text.startswith((" ", "\n")) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_StableDumper.add_representer(str, _represent_str)
_StableDumper.add_representer(UnquotedKey, _represent_str)
_StableDumper.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT_WITHOUT_DOT, list("-+0123456789"))


_INDENT = "  "
_LONGEST_KEY = 100
_LONGEST_TEXT = 1000
"""Characters. Longer ones may be written in another form, which is the emitter's affair."""

_WORD = re.compile(r"[A-Za-z0-9_/](?:[A-Za-z0-9_/.,@+=-]|:(?=[A-Za-z0-9_/]))*")
"""Text that no YAML writer quotes unless it reads as a number, a switch or null."""
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+(?:e[-+][0-9]+)?")


class _NeedsEmitter(Exception):
    """A value that is not written directly."""


def dump_yaml(value: Any) -> bytes:
    """Write `value` as block-style YAML in the order of its keys.

    Args:
        value: dicts, lists, strings, numbers, booleans, None. A value that holds itself is refused.

    Returns:
        UTF-8 bytes ending with a newline. Reading them gives an equal value.

    Raises:
        yaml.YAMLError: for types the safe dumper does not know.
        RecursionError: for a value that holds itself.
    """
    if type(value) is dict and value:
        lines: list[str] = []
        try:
            _add_mapping(lines, value, "")
        except _NeedsEmitter:
            pass
        else:
            return "".join(lines).encode("utf-8")
    return emit_yaml(value)


def emit_yaml(value: Any) -> bytes:
    """Like `dump_yaml`, all of it by PyYAML's emitter."""
    data: bytes = yaml.dump(
        value,
        Dumper=_StableDumper,
        default_flow_style=False,
        sort_keys=False,
        allow_unicode=True,
        width=10_000,
        encoding="utf-8",
    )
    return data


def _add_mapping(lines: list[str], mapping: dict[Any, Any], indent: str) -> None:
    for key, value in mapping.items():
        if type(key) is not str or not 0 < len(key) <= _LONGEST_KEY:
            raise _NeedsEmitter
        kind = type(value)
        if kind is str:
            lines.append(f"{indent}{_text(key)}: {_text(value)}\n")
        elif kind is dict and value:
            lines.append(f"{indent}{_text(key)}:\n")
            _add_mapping(lines, value, indent + _INDENT)
        elif kind is list and value:
            lines.append(f"{indent}{_text(key)}:\n")
            _add_list(lines, value, indent)
        else:
            lines.append(f"{indent}{_text(key)}: {_scalar(value)}\n")


def _add_list(lines: list[str], items: list[Any], indent: str) -> None:
    for item in items:
        if type(item) is dict and item:
            # Its first line follows the dash, which has the width of the indentation.
            first = len(lines)
            _add_mapping(lines, item, indent + _INDENT)
            lines[first] = f"{indent}- {lines[first][len(indent) + len(_INDENT) :]}"
        elif type(item) is list and item:
            raise _NeedsEmitter
        else:
            lines.append(f"{indent}- {_scalar(item)}\n")


def _scalar(value: Any) -> str:
    """The one line of a value that holds no others."""
    kind = type(value)
    if kind is str:
        return _text(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if value is None:
        return "null"
    if kind is float:
        digits = repr(value)
        if "." not in digits:
            digits = digits.replace("e", ".0e", 1)  # A float of YAML 1.1 has a dot.
        return digits if _DECIMAL.fullmatch(digits) else _emitted(value)
    if kind is dict:  # An empty one: the others have lines of their own.
        return "{}"
    if kind is list:
        return "[]"
    raise _NeedsEmitter


def _text(text: str) -> str:
    if len(text) > _LONGEST_TEXT or not text.isprintable():
        raise _NeedsEmitter
    if not text:
        return "''"
    if not _WORD.fullmatch(text):
        return _emitted(text)
    for _, pattern in _StableDumper.yaml_implicit_resolvers.get(text[0], ()):
        if pattern.match(text):
            return f"'{text}'"
    return text


def _emitted(value: Any) -> str:
    return emit_yaml(value).decode().removesuffix("\n").removesuffix("\n...")
