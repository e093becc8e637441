"""docs/adding-a-check.md shows a check, its row and its case as they are."""

import re
import sys
from pathlib import Path

import pytest

PREFLIGHT = Path("tools/launcher/preflight")
BLOCKS = re.compile(r"^```(python|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("language", "start", "file"),
    [
        ("python", "@check(", PREFLIGHT / "checks/geometry/engines.py"),
        ("python", "Fails(", PREFLIGHT / "testing/cases/geometry.py"),
        ("yaml", "source:", Path("tests/catalogue/cases/failures/row40_tensor_parallel_above_node.yaml")),
    ],
)
@pytest.mark.parametrize("document", ["docs/adding-a-check.md", "tests/catalogue/README.md"])
def test_what_is_shown_is_there(document, language, start, file):
    shown = [
        text
        for found, text in BLOCKS.findall(Path(document).read_text(encoding="utf-8"))
        if found == language and text.startswith(start)
    ]
    assert len(shown) == 1 or document.startswith("tests/")
    for text in shown:
        assert text in file.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
