"""Turning the errors a command may meet into one sentence and an exit status."""

import functools
import sys
from collections.abc import Callable
from typing import Any

from tools.launcher.cli import exit_codes
from tools.launcher.cli.launch_problems import (
    ControllerAddressError,
    NoSuchStage,
    NotAgreed,
    PlaceRefused,
    StageRefused,
)
from tools.launcher.cli.run_selection import NoSuchRun
from tools.launcher.cli.runfiles_paths import WrongFile
from tools.launcher.coordinator.artifact_record import ArtifactMismatch
from tools.launcher.coordinator.graph_file import GraphProblem
from tools.launcher.documents.printable import printable_lines
from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.iris.jobs import IrisError
from tools.launcher.iris.local.shapes import ShapeNotOffered
from tools.launcher.iris.local.state import LocalClusterError, StateFolderUnusable
from tools.launcher.store.bundles import BundleError
from tools.launcher.store.object_store import StoreError
from tools.launcher.store.open_store import StoreAddressError
from tools.launcher.store.version_claims import ClaimRefused
from tools.launcher.submit.authorization import AuthorizationInvalid
from tools.launcher.submit.code_archive import CodeIncomplete
from tools.launcher.submit.gates.overrides import OverrideError
from tools.launcher.submit.relaunch import RelaunchRefused
from tools.launcher.submit.remote_setup import LockUnreadable
from tools.launcher.submit.request import LaunchMismatch
from tools.launcher.submit.turns import TurnRefused

_STATUS_OF: tuple[tuple[type[Exception], int], ...] = (
    (WrongFile, exit_codes.USAGE),
    (DocumentError, exit_codes.USAGE),
    (NoSuchRun, exit_codes.USAGE),
    (BundleError, exit_codes.USAGE),
    (LaunchMismatch, exit_codes.USAGE),
    (GraphProblem, exit_codes.USAGE),
    (CodeIncomplete, exit_codes.USAGE),
    (LockUnreadable, exit_codes.USAGE),
    (NoSuchStage, exit_codes.USAGE),
    (AuthorizationInvalid, exit_codes.USAGE),
    (OverrideError, exit_codes.USAGE),
    (StoreAddressError, exit_codes.USAGE),
    (ControllerAddressError, exit_codes.USAGE),
    (PlaceRefused, exit_codes.REFUSED),
    (StageRefused, exit_codes.REFUSED),
    (NotAgreed, exit_codes.REFUSED),
    (TurnRefused, exit_codes.REFUSED),
    (ShapeNotOffered, exit_codes.REFUSED),
    (RelaunchRefused, exit_codes.REFUSED),
    (ArtifactMismatch, exit_codes.REFUSED),
    (StateFolderUnusable, exit_codes.USAGE),
    (LocalClusterError, exit_codes.UNKNOWN),
    (ClaimRefused, exit_codes.REFUSED),
    (StoreError, exit_codes.UNKNOWN),
    (IrisError, exit_codes.UNKNOWN),
    (OSError, exit_codes.UNKNOWN),
)
"""First match counts: a subclass stands before its base."""

REPORTED: tuple[type[Exception], ...] = tuple(kind for kind, _ in _STATUS_OF)
"""Every error of the launcher's own world."""

_WORD = {exit_codes.REFUSED: "refused"}


def reporting(command: Callable[[Any], int]) -> Callable[[Any], int]:
    """Wrap a command so that every error of its own world ends in a sentence on stderr."""

    @functools.wraps(command)
    def run(flags: Any) -> int:
        try:
            return command(flags)
        except BrokenPipeError:
            raise  # Of the command's own output; see process_boundary.
        except REPORTED as error:
            status = status_of(error)
            sys.stderr.write(f"{_WORD.get(status, 'error')}: {sentence_of(error)}\n")
            return status
        except KeyboardInterrupt:
            sys.stderr.write("\ninterrupted: what was submitted goes on; look at it with `launcher status`\n")
            return exit_codes.INTERRUPTED

    return run


def status_of(error: Exception) -> int:
    """Return the exit status of one of the errors REPORTED."""
    return next(status for kind, status in _STATUS_OF if isinstance(error, kind))


def sentence_of(error: Exception) -> str:
    """Return what to tell the user of one of the errors REPORTED."""
    if not isinstance(error, OSError):
        return printable_lines(str(error))  # It may quote a record or a file.
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}. Free the disk or correct the file, then run the command again"
