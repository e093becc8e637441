"""The preflight binary as Bazel's persistent worker."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tools.launcher.catalog.load import (
    load_cluster_card,
    load_dataset_card,
    load_model_card,
    load_runtime_manifest,
)
from tools.launcher.cli import experiment_boundary, preflight_action
from tools.launcher.cli.card_reader import CardReader, Parse
from tools.launcher.cli.experiment_module import ExperimentError
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


def serve_preflights() -> int:
    """Run preflights as Bazel asks for them until it has no more, and return the worker's exit status."""
    cards = CardReader()

    def prepare(request: WorkRequest) -> None:
        for argument in request.arguments:
            flag, _, path = argument.partition("=")
            if parse := _SHARED.get(flag):
                _remember(cards, parse, str(Path(request.folder, path)))

    def preflight(arguments: Sequence[str]) -> int:
        return preflight_action.main(arguments, cards, enclose=experiment_boundary.enforce)

    try:
        serve(preflight, prepare)
    except ProtocolError as error:
        sys.stderr.write(
            f"error: {error}. Build with --strategy=RlPreflight=sandboxed, which needs no worker, and report it\n"
        )
        return 1
    return 0


def _remember(cards: CardReader, parse: Parse[object], path: str) -> None:
    try:
        cards.read(parse, path)
    except (DocumentError, ExperimentError):
        return  # The action meets the same error, and says so with its own path.
