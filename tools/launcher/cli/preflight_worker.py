"""The preflight binary as Bazel's persistent worker."""

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.cli import digests_action, experiment_boundary, preflight_action
from tools.launcher.cli.card_reader import CardReader
from tools.launcher.cli.declared_inputs import enter_folder_of_inputs
from tools.launcher.cli.preflight_request import are_for_digests, read_ahead, request_parser
from tools.launcher.cli.preflight_warm_up import warm_up
from tools.launcher.worker.protocol import ProtocolError, WorkRequest
from tools.launcher.worker.server import serve

_MEMORY = Path("/dev/shm")
"""Linux: a file system in memory that every process may use (shm_overview(7))."""

_USES = "preflight_worker: experiments so far"
_MANY = 2
"""Experiments of one manifest after which more of them are expected."""

_WITHOUT = "build with --strategy=RlPreflight=sandboxed, which needs no worker"


def serve_preflights() -> int:
    """Run preflights as Bazel asks for them until it has no more, and return the worker's exit status."""
    try:
        folders = tempfile.mkdtemp(prefix="slipway-preflight-", dir=quick_place())
    except OSError as error:
        sys.stderr.write(
            f"error: no folder for the inputs of experiments: {error}. Free some, or {_WITHOUT}\n"
        )
        return 1
    try:
        _serve_in(Path(folders))
    except ProtocolError as error:
        sys.stderr.write(f"error: {error}. Report it; until then {_WITHOUT}\n")
        return 1
    finally:
        # A process that an experiment left behind may still write there.
        shutil.rmtree(folders, ignore_errors=True)
    return 0


def quick_place() -> Path | None:
    """Where a link takes microseconds; None for the usual place, on whose disk it may take a millisecond.

    Each experiment has some twenty links and folders of its own, and nothing in them but links.
    """
    # Bazel says /tmp to every action. Another folder was meant by somebody.
    chosen = os.environ.get("TMPDIR", "/tmp") != "/tmp"
    return _MEMORY if not chosen and os.access(_MEMORY, os.W_OK | os.X_OK) else None


def _serve_in(folders: Path) -> None:
    cards = CardReader()
    preflight_action.command_line()
    request_parser()

    def prepare(request: WorkRequest) -> None:
        cards.forget_files()
        for card in read_ahead(request.arguments, cards, request.folder):
            if isinstance(card, RuntimeManifest):
                card.derived[_USES] = uses = card.derived.get(_USES, 0) + 1
                # Not at the first: who plans one experiment should not wait for it.
                if uses == _MANY:
                    warm_up(card)

    def act(request: WorkRequest) -> int:
        arguments: Sequence[str] = request.arguments
        folder = folders / str(request.id)
        try:
            if are_for_digests(arguments):
                return digests_action.main(arguments, cards, folder)
            # Else Bazel has made a folder for it.
            if not request.folder:
                arguments = enter_folder_of_inputs(arguments, folder)
        except OSError as error:
            sys.stderr.write(f"error: the inputs cannot be linked: {error}. Free space in {folders}\n")
            return 1
        return preflight_action.main(arguments, cards, enclose=experiment_boundary.enforce)

    def finish(request: WorkRequest) -> None:
        shutil.rmtree(folders / str(request.id), ignore_errors=True)

    serve(act, prepare, finish)
