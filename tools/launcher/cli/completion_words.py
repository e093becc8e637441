"""What may stand on the launcher's command line: every command, its flags, and what they take."""

import argparse
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from tools.launcher.cli.commands import COMMANDS

_PATHS = ("FILE", "FILE.md", "DIR", "PATH", "A", "B", "STATE")
"""Names of values that are files or folders, or may be."""


class Word(NamedTuple):
    """A flag, or the value of a positional argument."""

    name: str
    """Empty for a positional argument."""
    help: str
    choices: tuple[str, ...]
    """Values that it takes; empty: any, or none."""
    takes_value: bool
    takes_path: bool


class CommandWords(NamedTuple):
    """One command."""

    name: str
    help: str
    flags: tuple[Word, ...]
    positional: tuple[Word, ...]


def command_words() -> tuple[CommandWords, ...]:
    """Return what every command takes, asked of the commands themselves. Imports all of them."""
    found = []
    for name, (module, help_) in COMMANDS.items():
        listener = _Listener()
        importlib.import_module(f"tools.launcher.cli.{module}").add_arguments(listener)
        words = (*listener.words, Word("--help", "show the command's help", (), False, False))
        found.append(
            CommandWords(
                name,
                help_,
                tuple(word for word in words if word.name),
                tuple(word for word in words if not word.name),
            )
        )
    return tuple(found)


class _Listener:
    """Stands where a command expects its argument parser, and notes what it is told."""

    def __init__(self) -> None:
        self.words: list[Word] = []

    def add_argument(self, *names: str, **options: Any) -> None:
        """Note one argument that help shows; the longest spelling of a flag counts."""
        if options.get("help") == argparse.SUPPRESS:
            return
        name = max((name for name in names if name.startswith("-")), key=len, default="")
        self.words.append(
            Word(
                name,
                # As argparse writes it: `%%` is a percent sign.
                str(options.get("help") or "").replace("%%", "%"),
                tuple(str(choice) for choice in options.get("choices") or ()),
                takes_value="action" not in options or options["action"] == "append",
                takes_path=options.get("metavar") in _PATHS,
            )
        )

    def add_argument_group(self, *_: Any, **__: Any) -> "_Listener":
        """A group's arguments are the parser's."""
        return self

    add_mutually_exclusive_group: Callable[..., "_Listener"] = add_argument_group

    def set_defaults(self, **_: Any) -> None:
        """Nobody types a default."""
