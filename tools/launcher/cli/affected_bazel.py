"""Calls of Bazel from a command that Bazel started: in the user's workspace, or in another checkout of it."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

# `bazel run` sets these for the program it starts; the programs of another build are not to see them.
_OF_THIS_RUN = (
    "RUNFILES_DIR",
    "RUNFILES_MANIFEST_FILE",
    "BUILD_WORKSPACE_DIRECTORY",
    "BUILD_WORKING_DIRECTORY",
)

# Bazel's exit statuses: built; some target failed; of a query with --keep_going, some package failed.
BUILT, FAILED, PARTLY = 0, 1, 3

ANY_VISIBILITY = "--nocheck_visibility"
"""Flag of a build: an experiment may be asked about whoever may use it."""

# Only progress is of interest: what fails is told in a sentence of ours.
_QUIET = "--ui_event_filters=-info,-warning,-error,-stdout,-stderr"


class BazelProblem(Exception):
    """Bazel could not be asked. The message has its first error and what to do."""


class Answer(NamedTuple):
    """What a call of Bazel said."""

    status: int
    stdout: str
    stderr: str


class Workspace(NamedTuple):
    """A checkout in which Bazel is called.

    Attributes:
        folder: its root, with `tools/bazel` in it.
        startup: startup options, such as an output base of its own.
        flags: options of each build.
    """

    folder: Path
    startup: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def ask(self, command: str, *arguments: str) -> Answer:
        """Run a command that answers on standard output."""
        done = self._call(command, ["--noshow_progress", "--color=no", *arguments], stderr=subprocess.PIPE)
        return Answer(done.returncode, done.stdout, done.stderr)

    def build(self, *arguments: str) -> Answer:
        """Run a build; on a terminal its progress is shown. `stderr` is empty: read its events."""
        progress = ["--curses=auto"] if sys.stderr.isatty() else ["--noshow_progress"]
        done = self._call("build", [_QUIET, *progress, *self.flags, *arguments], stderr=None)
        return Answer(done.returncode, done.stdout, "")

    def _call(
        self, command: str, arguments: Sequence[str], *, stderr: int | None
    ) -> subprocess.CompletedProcess[str]:
        environ = {name: value for name, value in os.environ.items() if name not in _OF_THIS_RUN}
        program = self.folder / "tools" / "bazel"
        try:
            return subprocess.run(
                [str(program), *self.startup, command, *arguments],
                cwd=self.folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                errors="replace",
                check=False,
            )
        except OSError as error:
            raise BazelProblem(
                f"{program}: {error.strerror}. The revision must have this file, which runs Bazel"
            ) from None


def first_error(stderr: str) -> str:
    """Return the first error that Bazel wrote, without its place in this machine."""
    errors = [line.removeprefix("ERROR: ") for line in stderr.splitlines() if line.startswith("ERROR: ")]
    return (errors or stderr.strip().splitlines() or ["it said nothing"])[0]
