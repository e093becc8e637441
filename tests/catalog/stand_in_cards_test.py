"""The cards of what Slipway makes itself agree with the code that makes it."""

import sys
from pathlib import Path

import pytest

from tools.launcher.catalog.load import load_cluster_card, load_dataset_card
from tools.launcher.iris.local.shapes import GANG_SIZES, GIB, NODE_KINDS
from tools.launcher.rehearsal.environments import TRAIN_ROWS, VALIDATION_ROWS, environment_for, make_rows

THIRD_PARTY = Path(__file__).parents[2] / "third_party"


def test_the_local_cluster_offers_what_its_card_says():
    card = load_cluster_card((THIRD_PARTY / "clusters" / "local.yaml").read_bytes(), source="local.yaml")
    kind = next(kind for kind in NODE_KINDS if kind.gpu_variant == card.gpu_variant)
    assert (kind.gpus, kind.cpu) == (card.gpus_per_node, card.cpu_per_node)
    assert (kind.memory_bytes, kind.disk_bytes) == (
        card.memory_per_node_gb * GIB,
        card.disk_per_node_gb * GIB,
    )
    assert set(range(1, card.max_nodes + 1)) <= set(GANG_SIZES)
    # A class without a toy of its own gets the toy of another name.
    assert card.env_classes
    assert len({environment_for(name).stand_in for name in (*card.env_classes, "any other")}) == 1 + len(
        card.env_classes
    )


def test_the_toy_data_has_the_rows_of_its_card():
    card = load_dataset_card(
        (THIRD_PARTY / "datasets" / "cat_count.yaml").read_bytes(), source="cat_count.yaml"
    )
    assert (card.rows, card.validation_rows) == (TRAIN_ROWS, VALIDATION_ROWS)
    rows = make_rows(environment_for(card.env_class), "train", card.rows, seed=0)
    # Twice the words leaves room for the punctuation and the chat template.
    assert 2 * max(len(row.prompt.split()) for row in rows) <= card.max_prompt_tokens


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
