"""One preflight: an experiment in, its pinned outputs or every violation out.

Exit status: 0 planned, 1 refused (nothing written), 2 wrong usage.
"""

import argparse
import functools
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from absl.flags import argparse_flags

from tools.launcher.cli.card_reader import CardReader
from tools.launcher.cli.plan_experiment import PlannedExperiment, plan_experiment
from tools.launcher.cli.preflight_request import add_request, expanded, run_experiment
from tools.launcher.cli.refusal_text import REFUSALS, refusal_json, refusal_text

OUTPUTS = ("launch", "graph", "plan", "digest")


def _stay_open(_outputs: Collection[Path]) -> None:
    """What a caller does that goes on with other work in this process."""


def main(
    arguments: Sequence[str],
    cards: CardReader | None = None,
    *,
    enclose: Callable[[Collection[Path]], object] = _stay_open,
) -> int:
    """Run one preflight; see --help.

    Args:
        arguments: of the action; `@FILE` stands for the lines of that file.
        cards: reads the cards and the manifest; None for a reader of its own.
        enclose: called with the output files just before the experiment's code runs.

    Returns:
        The exit status.
    """
    flags = command_line().parse_args(expanded(arguments))
    # Absolute before the experiment runs, which may change the working directory.
    places = {name: Path(getattr(flags, f"{name}_out")).absolute() for name in OUTPUTS}
    try:
        planned = _plan(flags, cards or CardReader(), lambda: enclose(places.values()))
    except REFUSALS as refusal:
        said = refusal_json if flags.format == "json" else refusal_text
        sys.stderr.write(said(refusal, flags.label))
        return 1
    for name, place in places.items():
        place.write_bytes(getattr(planned, name))
    sys.stdout.write(planned.summary)
    return 0


def _plan(flags: argparse.Namespace, cards: CardReader, enclose: Callable[[], object]) -> PlannedExperiment:
    graph = run_experiment(flags, cards, enclose)
    return plan_experiment(
        graph.terminals,
        graph.inputs,
        label=flags.label,
        options=graph.options,
        stage=flags.stage,
        smoke=flags.smoke,
        ledger=graph.ledger,
    )


@functools.cache
def command_line() -> argparse.ArgumentParser:
    """Return the parser of a preflight's command line. Made once: a worker makes it before it forks."""
    parser = argparse_flags.ArgumentParser(prog="preflight", description=__doc__, inherited_absl_flags=None)
    add_request(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of a refusal")
    for name in OUTPUTS:
        parser.add_argument(f"--{name}_out", required=True, help=f"where to write the {name}")
    return parser
