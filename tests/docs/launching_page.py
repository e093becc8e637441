"""docs/launching.md: the template, and what refused launches say when they are made."""

import tempfile
from pathlib import Path

from tests.docs.refusals import REFUSALS, Desk, desk

PAGE = Path("docs/launching.md")
TEMPLATE = Path("docs/launching.template")


def page() -> str:
    """Return the text of docs/launching.md. The working directory is the checkout, or runfiles."""
    with tempfile.TemporaryDirectory(prefix="slipway-docs-") as folder, desk(Path(folder)) as here:
        return page_at(here)


def page_at(here: Desk) -> str:
    """Return the same, made at a desk where nothing was launched before."""
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, scene in REFUSALS.items():
        mark = f"@{name}@"
        if mark not in text:
            raise SystemExit(f"{TEMPLATE} does not show {mark}. Give it a section of its own")
        text = text.replace(mark, scene(here))
    return text
