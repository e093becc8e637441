"""`completion`: real zsh and fish, where they are installed, complete commands, flags and values."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.launcher.cli.commands import COMMANDS
from tools.launcher.cli.completion_scripts import SCRIPTS
from tools.launcher.cli.completion_words import command_words

WORDS = command_words()
ZSH, FISH = shutil.which("zsh"), shutil.which("fish")
zsh_is_here = pytest.mark.skipif(ZSH is None, reason="zsh is not installed: its completion is not tried")
fish_is_here = pytest.mark.skipif(FISH is None, reason="fish is not installed: its completion is not tried")

# What a user's file has, and then: each offer goes into a file, ^X^P tells what the line is.
ZSHRC = r"""
autoload -Uz compinit && compinit -u -d "$LAUNCHER_SCRIPT.dump"
. "$LAUNCHER_SCRIPT"
compadd() {
  if (( ! ${@[(I)-[OAD]]} )); then
    local -a offered
    builtin compadd -O offered "$@"
    (( $#offered )) && print -rl -- $offered >> "$OFFERED"
  fi
  builtin compadd "$@"
}
tell() { print -r -- "LINE<$BUFFER>" }
zle -N tell
bindkey '^X^P' tell
PS1='READY> '
"""
TAB_AND_TELL = b"\t\x18\x10"
# A hang is a failure, and not for ever.
PATIENCE_SECONDS = 120.0

TELLS = """#!/bin/sh
printf '%s|' "$PWD" "$@"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """Shell -> its script, in a file."""
    folder = tmp_path_factory.mktemp("completion")
    for shell, script in SCRIPTS.items():
        (folder / f"launcher.{shell}").write_text(script(WORDS))
    return {shell: folder / f"launcher.{shell}" for shell in SCRIPTS}


@pytest.fixture
def folder(tmp_path):
    """Where the shell stands: one file, one folder."""
    here = tmp_path / "here"
    (here / "cards").mkdir(parents=True)
    (here / "some.yaml").touch()
    return here


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose tools/bazel tells where and with what it was called."""
    root = tmp_path / "a checkout"
    (root / "tools").mkdir(parents=True)
    (root / "tools/bazel").write_text(TELLS)
    (root / "tools/bazel").chmod(0o755)
    (root / "experiments/x").mkdir(parents=True)
    return root


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "xterm", **more}


def in_zsh(script: Path, folder: Path, line: str) -> tuple[str, list[str]]:
    """The line after Tab was pressed at its end, and what was offered, in an interactive zsh."""
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    (home / ".zshrc").write_text(ZSHRC)
    offered = home / "offered"
    offered.write_text("")
    environ = environment(home, ZDOTDIR=str(home), LAUNCHER_SCRIPT=str(script), OFFERED=str(offered))
    assert ZSH is not None
    child, terminal = pty.fork()
    if child == 0:  # Only calls of the system from here: this process is a copy of the test's.
        try:
            os.chdir(folder)
            os.execve(ZSH, ["zsh", "-i"], environ)
        finally:
            os._exit(127)
    try:
        read_until(terminal, rb"READY> ")
        os.write(terminal, line.encode() + TAB_AND_TELL)
        told = read_until(terminal, rb"LINE<([^>]*)>")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
    return told, offered.read_text().split("\n")[:-1]


def read_until(terminal: int, pattern: bytes) -> str:
    """Read what a terminal shows until it fits; return its last group."""
    seen, end = b"", time.monotonic() + PATIENCE_SECONDS
    while (found := re.search(pattern, seen)) is None:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"the shell does not answer; it showed {seen!r}"
        seen += os.read(terminal, 65536)
    return found[found.re.groups].decode()


def in_fish(script: Path, folder: Path, line: str) -> list[str]:
    """What fish offers for the end of a line, without descriptions."""
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
        cwd=folder,
        env=environment(folder.parent),
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.stderr == ""
    return [offer.partition("\t")[0] for offer in done.stdout.splitlines()]


@zsh_is_here
@pytest.mark.parametrize(
    ("typed", "line", "offered"),
    [
        ("launcher sta", "launcher status ", ["status"]),
        ("launcher ", "launcher ", list(COMMANDS)),
        ("launcher affected --fa", "launcher affected --fail-on ", ["--fail-on"]),
        ("launcher lint --format s", "launcher lint --format sarif ", ["sarif"]),
        ("launcher lint --format=", "launcher lint --format=", ["text", "json", "sarif"]),
        ("launcher lint --format=s", "launcher lint --format=sarif ", ["sarif"]),
        ("launcher local ", "launcher local st", ["start", "status", "stop"]),
        ("launcher completion f", "launcher completion fish ", ["fish"]),
        ("launcher lint so", "launcher lint some.yaml ", ["some.yaml"]),
        ("launcher lint --model_card=so", "launcher lint --model_card=some.yaml ", ["some.yaml"]),
        ("launcher diff some.yaml so", "launcher diff some.yaml some.yaml ", ["some.yaml"]),
        ("launcher status --record so", "launcher status --record some.yaml ", ["some.yaml"]),
        ("launcher status --store so", "launcher status --store so", []),
    ],
)
def test_zsh_completes(scripts, folder, typed, line, offered):
    assert in_zsh(scripts["zsh"], folder, typed) == (line, offered)


@zsh_is_here
def test_zsh_shows_the_flags_of_a_command_that_takes_no_file(scripts, folder):
    _, offered = in_zsh(scripts["zsh"], folder, "launcher local status --")
    assert offered == ["--help"]
    _, offered = in_zsh(scripts["zsh"], folder, "launcher runs ")
    assert "--experiment" in offered and "some.yaml" not in offered


@fish_is_here
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("launcher sta", ["status"]),
        ("launcher ", sorted(COMMANDS)),
        ("launcher affected --fa", ["--fail-on"]),
        ("launcher lint --format s", ["sarif"]),
        ("launcher lint --format=", ["--format=json", "--format=sarif", "--format=text"]),
        ("launcher local ", ["start", "status", "stop"]),
        ("launcher completion f", ["fish"]),
        ("launcher lint so", ["some.yaml"]),
        ("launcher lint --model_card so", ["some.yaml"]),
        ("launcher diff some.yaml so", ["some.yaml"]),
        ("launcher status --record so", ["some.yaml"]),
        ("launcher status --store so", []),
        ("launcher runs so", []),
        # The command is `local`, though `status` is the name of another one.
        ("launcher local status --", ["--help"]),
    ],
)
def test_fish_completes(scripts, folder, typed, offered):
    assert in_fish(scripts["fish"], folder, typed) == offered


def called(shell: str, script: Path, folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Call the function that a script defines."""
    quiet = {"zsh": ["-f"], "fish": ["--no-config"]}[shell]
    before = {"zsh": "compdef() { : }; ", "fish": ""}[shell]
    return subprocess.run(
        [shell, *quiet, "-c", f"{before}. {script}; launcher runs '--limit=1 2'"],
        cwd=folder,
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )


@pytest.mark.parametrize(
    "shell", [pytest.param("zsh", marks=zsh_is_here), pytest.param("fish", marks=fish_is_here)]
)
def test_the_function_finds_the_checkout_from_a_folder_below_it(scripts, checkout, tmp_path, shell):
    below = checkout / "experiments/x"
    done = called(shell, scripts[shell], below, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{below}|run|")
    assert done.stdout.endswith("//tools/launcher|--|runs|--limit=1 2|")
    done = called(shell, scripts[shell], tmp_path, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"launcher: {tmp_path} is in no checkout of Slipway, which would have tools/bazel. Go into one\n"
    )


@fish_is_here
def test_fish_has_the_function_before_anything_was_completed(scripts, checkout, tmp_path):
    # Where the help of `completion` says that the file goes.
    place = tmp_path / ".config/fish/conf.d/launcher.fish"
    place.parent.mkdir(parents=True)
    shutil.copyfile(scripts["fish"], place)
    done = subprocess.run(
        ["fish", "-c", "launcher status"],
        cwd=checkout,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("//tools/launcher|--|status|")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-rs", *sys.argv[1:]]))
