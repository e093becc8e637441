"""The preflight binary as Bazel's persistent worker."""

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.launcher.catalog.load import (
    load_cluster_card,
    load_dataset_card,
    load_model_card,
    load_runtime_manifest,
)
from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.cli import experiment_boundary, preflight_action
from tools.launcher.cli.card_reader import CardReader, Parse
from tools.launcher.cli.declared_inputs import enter_folder_of_inputs
from tools.launcher.cli.experiment_module import ExperimentError
from tools.launcher.cli.preflight_warm_up import warm_up
from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.worker.protocol import ProtocolError, WorkRequest
from tools.launcher.worker.server import serve

_SHARED: dict[str, Parse[object]] = {
    "--cluster": load_cluster_card,
    "--dataset": load_dataset_card,
    "--model": load_model_card,
    "--runtime": load_runtime_manifest,
}
"""Flag -> how its file is read. Many experiments have these files in common."""

_USES = "preflight_worker: experiments so far"
_MANY = 2
"""Experiments of one manifest after which more of them are expected."""

_WITHOUT = "build with --strategy=RlPreflight=sandboxed, which needs no worker"


def serve_preflights() -> int:
    """Run preflights as Bazel asks for them until it has no more, and return the worker's exit status."""
    try:
        folders = tempfile.mkdtemp(prefix="slipway-preflight-")
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


def _serve_in(folders: Path) -> None:
    cards = CardReader()
    preflight_action.command_line()

    def prepare(request: WorkRequest) -> None:
        cards.forget_files()
        for argument in request.arguments:
            flag, _, path = argument.partition("=")
            if parse := _SHARED.get(flag):
                card = _remember(cards, parse, str(Path(request.folder, path)))
                if isinstance(card, RuntimeManifest):
                    card.derived[_USES] = uses = card.derived.get(_USES, 0) + 1
                    # Not at the first: who plans one experiment should not wait for it.
                    if uses == _MANY:
                        warm_up(card)

    def preflight(request: WorkRequest) -> int:
        arguments: Sequence[str] = request.arguments
        # Else Bazel has made a folder for it.
        if not request.folder:
            try:
                arguments = enter_folder_of_inputs(arguments, folders / str(request.id))
            except OSError as error:
                sys.stderr.write(f"error: the inputs cannot be linked: {error}. Free space in {folders}\n")
                return 1
        return preflight_action.main(arguments, cards, enclose=experiment_boundary.enforce)

    def finish(request: WorkRequest) -> None:
        shutil.rmtree(folders / str(request.id), ignore_errors=True)

    serve(preflight, prepare, finish)


def _remember(cards: CardReader, parse: Parse[object], path: str) -> object:
    try:
        return cards.read(parse, path)
    except (DocumentError, ExperimentError):
        return None  # The action meets the same error, and says so with its own path.
