"""Writing YAML whose bytes depend on nothing but the value."""

from typing import Any

import yaml

from tools.launcher.documents.strict_yaml import EXPONENT_WITHOUT_DOT, UnquotedKey


class _StableDumper(yaml.SafeDumper):
    """The pure Python emitter, always: libyaml breaks some lines elsewhere, and a launch
    document costs it four milliseconds."""

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
