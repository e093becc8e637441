"""Writing lines to a terminal or a file, and JSON for programs."""

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # who writes JSON compares nothing
    from tools.launcher.compare.render_text import Line


def write_lines(lines: "Iterable[Line]") -> None:
    """Write lines, in colour on a terminal."""
    write = _coloured if sys.stdout.isatty() else _plain
    for line in lines:
        write(line)


def write_json(value: Any) -> None:
    """Write JSON; it is UTF-8 whatever the user's locale."""
    sys.stdout.flush()
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=str)
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")


def _plain(line: "Line") -> None:
    sys.stdout.write(f"{line.text}\n")


def _coloured(line: "Line") -> None:
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False).print(Text(line.text, style=line.style), soft_wrap=True)
