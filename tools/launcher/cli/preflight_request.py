"""What a preflight is asked: the arguments of one experiment, and what its code returns for them."""

import argparse
import contextlib
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from absl.flags import argparse_flags

from tools.launcher.catalog.cards import DatasetCard, ModelCard
from tools.launcher.catalog.load import (
    load_cluster_card,
    load_dataset_card,
    load_model_card,
    load_runtime_manifest,
)
from tools.launcher.cli.card_reader import CardReader, Parse
from tools.launcher.cli.experiment_module import ExperimentError, explained, load_experiment
from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.graph.ledger import VersionLedger, load_ledger
from tools.launcher.graph.step import ArtifactStep
from tools.launcher.rl.build_options import BuildOptionError
from tools.launcher.rl.inputs import BuildInputs

DIGESTS_OUT = "--digests_out="
"""Begins the first argument of an action that wants digests of many experiments (digests_action.py)."""


class ExperimentGraph(NamedTuple):
    """What an experiment's code returned.

    Attributes:
        terminals: the last steps of its graph.
        inputs: what its main was given.
        options: name -> text.
        ledger: what was published before.
    """

    terminals: tuple[ArtifactStep, ...]
    inputs: BuildInputs
    options: dict[str, str]
    ledger: VersionLedger


_SHARED: Mapping[str, Parse[Any]] = {
    "--cluster": load_cluster_card,
    "--dataset": load_dataset_card,
    "--model": load_model_card,
    "--runtime": load_runtime_manifest,
}
"""Flag -> how its file is read. Many experiments have these files in common."""


def read_ahead(arguments: Iterable[str], cards: CardReader, folder: str = "") -> Iterator[object]:
    """Read the cards and manifests that requests name, and yield each.

    One that cannot be read is left out: who asks for it meets the same error, and says so with its own path.
    """
    for argument in arguments:
        flag, _, path = argument.partition("=")
        if parse := _SHARED.get(flag):
            with contextlib.suppress(DocumentError, ExperimentError):
                yield cards.read(parse, str(Path(folder, path)))


def find_sources_here() -> None:
    """Let Python import from the working directory: what a target lists, by its path from the root."""
    if "." not in sys.path:
        sys.path.append(".")


def run_experiment(
    flags: argparse.Namespace, cards: CardReader, enclose: Callable[[], object] = lambda: None
) -> ExperimentGraph:
    """Run an experiment's code.

    Args:
        flags: as `add_request` has them; paths are from the working directory.
        cards: reads the cards and the manifest.
        enclose: called just before the experiment's code runs.

    Raises:
        ExperimentError: its source or its declaration is wrong.
        BuildOptionError: its options are.
        DocumentError: a card, manifest or ledger is.
    """
    models = [cards.read(load_model_card, path) for path in flags.model]
    datasets = [cards.read(load_dataset_card, path) for path in flags.dataset]
    inputs = BuildInputs(
        version=flags.version,
        runtime=cards.read(load_runtime_manifest, flags.runtime),
        cluster=cards.read(load_cluster_card, flags.cluster),
        models=_by_name(models, "model", "models"),
        datasets=_by_name(datasets, "dataset", "datasets"),
    )
    find_sources_here()
    # Not where "." was when this process began.
    sys.path_importer_cache.pop(".", None)
    main_file = Path(flags.main)
    ledger = cards.read(load_ledger, flags.ledger) if flags.ledger else VersionLedger()
    enclose()
    experiment = load_experiment(main_file)
    options = _options(flags.option)
    terminals = explained(lambda: experiment.build(inputs, options), main_file)
    return ExperimentGraph(terminals, inputs, options, ledger)


def _by_name[Card: (ModelCard, DatasetCard)](cards: list[Card], kind: str, attribute: str) -> dict[str, Card]:
    by_name: dict[str, Card] = {}
    for card in cards:
        if card.name in by_name:
            raise ExperimentError(
                f"two {kind} cards are named '{card.name}'. Keep one of them in `{attribute}`"
            )
        by_name[card.name] = card
    return by_name


def _options(texts: Sequence[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise BuildOptionError(f"option '{name}' has no value. Write {name}=VALUE")
        if name in options:
            raise BuildOptionError(f"option '{name}' is given twice. Keep one of the values")
        options[name] = value
    return options


def expanded(arguments: Sequence[str]) -> list[str]:
    """Put the lines of each `@file` in its place.

    Only a newline ends a line: argparse's own reader would also split at U+2028 and its like.
    """
    lines: list[str] = []
    for argument in arguments:
        if argument.startswith("@"):
            lines += Path(argument[1:]).read_bytes().decode("utf-8").removesuffix("\n").split("\n")
        else:
            lines.append(argument)
    return lines


def are_for_digests(arguments: Sequence[str]) -> bool:
    """Return whether expanded arguments ask for digests, and not for a preflight's outputs."""
    return bool(arguments) and arguments[0].startswith(DIGESTS_OUT)


def add_request(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say what one experiment is."""
    parser.add_argument("--label", required=True, help="label of the rl_experiment target")
    parser.add_argument("--main", required=True, help="the experiment's Python file")
    parser.add_argument("--src", action="append", default=[], help="Python file it may import; repeatable")
    parser.add_argument("--version", required=True, help="artifact version")
    parser.add_argument("--stage", required=True, help="default terminal stage")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=TEXT", help="option of main()")
    parser.add_argument("--smoke", help="label of the experiment whose success a large launch requires")
    parser.add_argument("--ledger", help="version ledger; without one, nothing is pinned yet")
    parser.add_argument("--runtime", required=True, help="runtime manifest")
    parser.add_argument("--cluster", required=True, help="cluster card")
    parser.add_argument("--model", action="append", default=[], help="model card; repeatable")
    parser.add_argument("--dataset", action="append", default=[], help="dataset card; repeatable")


@functools.cache
def request_parser() -> argparse.ArgumentParser:
    """Return a parser of a request alone. Made once: a worker makes it before it forks."""
    parser = argparse_flags.ArgumentParser(prog="preflight", inherited_absl_flags=None)
    add_request(parser)
    return parser
