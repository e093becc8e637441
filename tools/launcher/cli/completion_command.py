"""`completion`: what makes a shell complete the launcher's commands and flags."""

import sys
from typing import Any

from tools.launcher.cli import exit_codes

DESCRIPTION = """Prints a script that makes a shell complete the launcher's commands, flags and their values.

The script completes the word `launcher`, and defines a function of that name which runs the checkout that you
stand in, unless you have a program called so. Print it once into a file, and have your shell read that:

  bash   . ~/.launcher.bash in ~/.bashrc
  zsh    . ~/.launcher.zsh in ~/.zshrc, below compinit
  fish   ~/.config/fish/conf.d/launcher.fish, and it is read by itself

examples:
  tools/bazel run //tools/launcher -- completion bash > ~/.launcher.bash
  tools/bazel run //tools/launcher -- completion zsh > ~/.launcher.zsh"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `completion`."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="for which shell")


def run(flags: Any) -> int:
    """Print one script; see DESCRIPTION."""
    # They import every command.
    from tools.launcher.cli.completion_scripts import SCRIPTS
    from tools.launcher.cli.completion_words import command_words

    sys.stdout.write(SCRIPTS[flags.shell](command_words()))
    return exit_codes.OK
