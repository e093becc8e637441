"""One preflight: an experiment in, its pinned outputs or every violation out.

Exit status: 0 planned, 1 refused (nothing written), 2 wrong usage.
"""

import argparse
import functools
import json
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from absl.flags import argparse_flags

from tools.launcher.catalog.cards import DatasetCard, ModelCard
from tools.launcher.catalog.load import (
    load_cluster_card,
    load_dataset_card,
    load_model_card,
    load_runtime_manifest,
)
from tools.launcher.cli.card_reader import CardReader
from tools.launcher.cli.experiment_module import ExperimentError, explained, load_experiment
from tools.launcher.cli.plan_experiment import PlannedExperiment, PreflightFailed, plan_experiment
from tools.launcher.documents.printable import printable
from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.graph.ledger import VersionLedger, load_ledger
from tools.launcher.preflight.render_text import report_json, report_text
from tools.launcher.rl.build_options import BuildOptionError
from tools.launcher.rl.inputs import BuildInputs

OUTPUTS = ("launch", "graph", "plan", "digest")


def _stay_open(_outputs: Collection[Path]) -> None:
    """What a caller does that goes on with other work in this process."""


def main(
    arguments: Sequence[str],
    cards: CardReader | None = None,
    *,
    enclose: Callable[[Collection[Path]], None] = _stay_open,
) -> int:
    """Run one preflight; see --help.

    Args:
        arguments: of the action; `@FILE` stands for the lines of that file.
        cards: reads the cards and the manifest; None for a reader of its own.
        enclose: called with the output files just before the experiment's code runs.

    Returns:
        The exit status.
    """
    flags = command_line().parse_args(_expanded(arguments))
    # Absolute before the experiment runs, which may change the working directory.
    places = {name: Path(getattr(flags, f"{name}_out")).absolute() for name in OUTPUTS}
    try:
        planned = _plan(flags, cards or CardReader(), lambda: enclose(places.values()))
    except PreflightFailed as failed:
        if flags.format == "json":
            text = json.dumps({"experiment": flags.label, **report_json(failed.report)}, indent=2) + "\n"
        else:
            text = report_text(failed.report, subject=flags.label)
        sys.stderr.write(text)
        return 1
    except (ExperimentError, BuildOptionError, DocumentError) as error:
        if flags.format == "json":
            refusal = {"experiment": flags.label, "verdict": "reject", "violations": [], "error": str(error)}
            sys.stderr.write(json.dumps(refusal, indent=2) + "\n")
        else:
            lines = f"error: {flags.label}: {error}".split("\n")  # line ends stay
            sys.stderr.write("".join(f"{printable(line)}\n" for line in lines))
        return 1
    for name, place in places.items():
        place.write_bytes(getattr(planned, name))
    sys.stdout.write(planned.summary)
    return 0


def _plan(flags: argparse.Namespace, cards: CardReader, enclose: Callable[[], None]) -> PlannedExperiment:
    models = [cards.read(load_model_card, path) for path in flags.model]
    datasets = [cards.read(load_dataset_card, path) for path in flags.dataset]
    inputs = BuildInputs(
        version=flags.version,
        runtime=cards.read(load_runtime_manifest, flags.runtime),
        cluster=cards.read(load_cluster_card, flags.cluster),
        models=_by_name(models, "model", "models"),
        datasets=_by_name(datasets, "dataset", "datasets"),
    )
    # Sources that the target lists beside main are imported by their path from the root.
    if "." not in sys.path:
        sys.path.append(".")
    # Not where "." was when this process began.
    sys.path_importer_cache.pop(".", None)
    main_file = Path(flags.main)
    ledger = cards.read(load_ledger, flags.ledger) if flags.ledger else VersionLedger()
    enclose()
    experiment = load_experiment(main_file)
    options = _options(flags.option)
    terminals = explained(lambda: experiment.build(inputs, options), main_file)
    return plan_experiment(
        terminals,
        inputs,
        label=flags.label,
        options=options,
        stage=flags.stage,
        smoke=flags.smoke,
        ledger=ledger,
    )


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


def _expanded(arguments: Sequence[str]) -> list[str]:
    """Put the lines of each `@file` in its place.

    Only a newline ends a line: argparse's own reader would also split at U+2028 and its like.
    """
    expanded: list[str] = []
    for argument in arguments:
        if argument.startswith("@"):
            expanded += Path(argument[1:]).read_bytes().decode("utf-8").removesuffix("\n").split("\n")
        else:
            expanded.append(argument)
    return expanded


@functools.cache
def command_line() -> argparse.ArgumentParser:
    """Return the parser of a preflight's command line. Made once: a worker makes it before it forks."""
    parser = argparse_flags.ArgumentParser(prog="preflight", description=__doc__, inherited_absl_flags=None)
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
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of a refusal")
    for name in OUTPUTS:
        parser.add_argument(f"--{name}_out", required=True, help=f"where to write the {name}")
    return parser
