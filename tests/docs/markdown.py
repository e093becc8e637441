"""Reading commands and links out of the Markdown files of the repository."""

import re
from collections.abc import Iterator
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


def documents(root: Path) -> list[Path]:
    """All Markdown files that users read, in the order in which a newcomer meets them."""
    return [
        root / "README.md",
        *sorted(root.glob("docs/*.md")),
        *sorted(root.glob("experiments/*/README.md")),
    ]


def commands(document: Path) -> Iterator[str]:
    """Yield the commands of all `sh` blocks; a comment behind a command is not part of it."""
    for language, block in _FENCE.findall(document.read_text(encoding="utf-8")):
        if language == "sh":
            for line in block.splitlines():
                command = line.partition(" #")[0].strip()
                if command and not command.startswith("#"):
                    yield command


def links(document: Path) -> Iterator[str]:
    """Yield the targets of all links that stay in the repository."""
    for target in _LINK.findall(document.read_text(encoding="utf-8")):
        if "://" not in target:
            yield target
