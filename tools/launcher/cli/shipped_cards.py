"""The project's own cluster cards and budget, for commands that no experiment's target hands its files to."""

from pathlib import Path

from tools.launcher.catalog.cards import ClusterCard
from tools.launcher.catalog.load import load_cluster_card
from tools.launcher.submit.gates.budget import BUDGET_FILE

_ROOT = Path(__file__).parents[3]
"""The same place in a checkout and in the runfiles of a program."""

CARDS_FOLDER = "third_party/clusters"


def shipped_cluster(name: str) -> ClusterCard | None:
    """Return the card of the cluster called `name`, None if the project has none.

    Raises:
        DocumentError: a card cannot be read.
    """
    for file in sorted((_ROOT / CARDS_FOLDER).glob("*.yaml")):
        card = load_cluster_card(file.read_bytes(), source=file.name)
        if card.name == name:
            return card
    return None


def shipped_budget() -> str | None:
    """Return the path of the project's budget file, None if it has none."""
    file = _ROOT / BUDGET_FILE
    return str(file) if file.is_file() else None
