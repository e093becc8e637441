"""`sweep-plan`: the points of a sweep as one table, with what is on record of each."""

import os
import sys
from typing import Any

from tools.launcher.catalog.cards import ClusterCard
from tools.launcher.catalog.load import load_cluster_card
from tools.launcher.cli import exit_codes
from tools.launcher.cli.command_output import write_json
from tools.launcher.cli.errors import reporting
from tools.launcher.cli.launch_place import STORE_VARIABLE
from tools.launcher.cli.local_environment import local_environment
from tools.launcher.cli.runfiles_paths import read_located
from tools.launcher.cli.sweep_files import add_sweep_argument, read_sweep
from tools.launcher.cli.sweep_records import Standing, standings
from tools.launcher.cli.sweep_table import SweepTable, show_sweep, sweep_json, sweep_markdown
from tools.launcher.iris.local.state import LocalClusterError
from tools.launcher.render.sweep import Sweep
from tools.launcher.store.object_store import StoreUnavailable
from tools.launcher.store.open_store import open_store

DESCRIPTION = f"""Prints the points of a sweep as one table: nodes, steps, tokens, GPU-hours, recipe, and what is on
record of each. Numbers are from the built plans; a narrow terminal
shows fewer columns, and the table says which are missing. The store is asked if --store or ${STORE_VARIABLE} names it, or if
it is that of the local Iris; no other, so that a look at a plan waits for no network.

Exit status: 0 printed, 2 wrong usage, 4 the store that was named did not answer (the table is printed without it).

examples:
  tools/bazel run //experiments/gsm8k_sweep:plan
  tools/bazel run //experiments/gsm8k_sweep:plan -- --format=markdown
  tools/bazel run //experiments/gsm8k_sweep:plan -- --store=gs://team/slipway --format=json"""


def add_arguments(parser: Any) -> None:
    """Add the flags of `sweep-plan`."""
    parser.add_argument(
        "--format", choices=("text", "json", "markdown"), default="text", help="form of the table"
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        help="store of the records, gs://bucket/prefix or file:///folder; else "
        f"${STORE_VARIABLE}, else, of a sweep for the local Iris, its own",
    )
    files = add_sweep_argument(parser)
    files.add_argument("--cluster", required=True, metavar="FILE", help="cluster card")


@reporting
def run(flags: Any) -> int:
    """Print the table; see DESCRIPTION."""
    sweep = read_sweep(flags.sweep)
    card = load_cluster_card(read_located(flags.cluster), source=flags.cluster)
    found, records, status = _looked_up(sweep, card, flags.store or os.environ.get(STORE_VARIABLE))
    table = SweepTable(sweep=sweep, cluster=card.name, standings=found, records=records)
    if flags.format == "json":
        write_json(sweep_json(table))
    elif flags.format == "markdown":
        sys.stdout.write(sweep_markdown(table))
    else:
        show_sweep(table, sys.stdout)
    return status


def _looked_up(
    sweep: Sweep, card: ClusterCard, address: str | None
) -> tuple[tuple[Standing, ...] | None, str, int]:
    """Return the standings, where they are from or why there are none, and the exit status."""
    if address is None and card.scheduler != "embedded":
        known = f" ({card.store} would be used by a launch)" if card.store else ""
        return None, f"not looked up, no store was named with --store{known}", exit_codes.OK
    try:
        store = open_store(address or local_environment(os.environ).store_url)
        runtime = "rehearsal" if card.scheduler == "embedded" else "marinskyrl"
        return standings(store, sweep.points, runtime=runtime), store.url, exit_codes.OK
    except (StoreUnavailable, LocalClusterError) as error:
        if address is None:
            return None, "not looked up, the local Iris has no store here", exit_codes.OK
        sys.stderr.write(f"error: {error}\n")
        return None, f"not known, {address} did not answer", exit_codes.UNKNOWN
