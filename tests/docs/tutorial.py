"""Tutorials: `console` blocks of a document, taken as one session from the first command to the last.

A line that starts with `$` is a command; `# exit status N` behind it says how it ends, else with 0. The lines below it
stand in its output, in this order; `…` stands for lines that are left out. What the session makes in the checkout
is taken away at its end.
"""

import contextlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.launcher.cli.new_scaffold import LIST_FILES

PACKAGE = "experiments/my_first"
"""What a tutorial makes and works on."""

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ENDS = re.compile(r"# exit status (\d+)")
_LEFT_OUT = "…"
_SECONDS = 900


class Step(NamedTuple):
    """A command of a session."""

    command: str
    status: int
    shown: tuple[str, ...]
    """Lines of its output."""


def steps(document: Path) -> list[Step]:
    """Return the session of a document; it is empty for most."""
    found: list[Step] = []
    for block in _BLOCK.findall(document.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                command, _, comment = line.removeprefix("$ ").partition(" #")
                ends = _ENDS.fullmatch(f"#{comment}")
                found.append(Step(command.strip(), int(ends[1]) if ends else 0, ()))
            elif line.strip() not in ("", _LEFT_OUT):
                found[-1] = found[-1]._replace(shown=(*found[-1].shown, line.rstrip()))
    return found


def missing(shown: Sequence[str], output: str) -> str | None:
    """Return the first line that is not in the output below those before it, None if all are there."""
    lines = iter(line.rstrip() for line in output.splitlines())
    return next((wanted for wanted in shown if wanted not in lines), None)


def take(session: Sequence[Step], root: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """Yield each command with what went wrong, or None; the first that goes wrong is the last.

    Args:
        session: of `steps`.
        root: of the checkout.
        environ: of the commands.
    """
    if not session:
        return
    with _put_back(root):
        for step in session:
            done = subprocess.run(
                shlex.split(step.command),
                cwd=root,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
            problem = None
            if done.returncode != step.status:
                problem = f"exit status {done.returncode}, the document says {step.status}"
            elif (line := missing(step.shown, done.stdout)) is not None:
                problem = f"the document shows a line that is not there: {line}"
            yield step.command, problem and f"{problem}\n{done.stdout[-3000:]}"
            if problem:
                return


@contextlib.contextmanager
def _put_back(root: Path) -> Iterator[None]:
    """Take away what a session made. A package that is there already is somebody's, and stays."""
    package = root / PACKAGE
    if package.exists():
        raise SystemExit(f"{PACKAGE} exists, and the tutorial makes it. Remove it, or give it another name")
    kept = {root / file: (root / file).read_bytes() for file in LIST_FILES}
    try:
        yield
    finally:
        shutil.rmtree(package, ignore_errors=True)
        for file, data in kept.items():
            file.write_bytes(data)
