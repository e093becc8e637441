"""docs/catalog.md describes exactly the fields that cards have, in their order."""

import re
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from tools.launcher.catalog.cards import ClusterCard, DatasetCard, HfExport, ModelCard

PAGE = Path(__file__).parents[2] / "docs" / "catalog.md"


@pytest.mark.parametrize(
    ("title", "model"),
    [
        ("Fields of a model card", ModelCard),
        ("Fields of a dataset card", DatasetCard),
        ("Fields of a cluster card", ClusterCard),
        ("Fields of `export`", HfExport),
    ],
)
def test_the_page_has_every_field(title: str, model: type[BaseModel]):
    section = PAGE.read_text("utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(model.model_fields)


def test_the_page_shows_the_label_of_a_real_card():
    """The example of the page is copied by its readers."""
    stems = set(re.findall(r"//third_party/models:(\w+)", PAGE.read_text("utf-8")))
    assert stems == {"qwen3_0_6b"}


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
