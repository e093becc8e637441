"""A comparison for a pull request."""

from collections.abc import Iterator

from tools.launcher.compare.consequences import Comparison
from tools.launcher.compare.render_text import side_words
from tools.launcher.compare.wording import MARKS, change_lines
from tools.launcher.documents.printable import printable
from tools.launcher.preflight.wording import counted

_SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\|*_`<>[]"})


def markdown_lines(comparison: Comparison) -> Iterator[str]:
    """Yield a table of consequences, and one of fields that is folded away."""
    yield f"**A** {escaped(side_words(comparison.a))}  "
    yield f"**B** {escaped(side_words(comparison.b))}"
    yield ""
    if comparison.equal:
        yield "Equal: the same launch document."
        return
    yield "| what | A to B |"
    yield "|---|---|"
    for item in comparison.consequences:
        if item.shown:
            yield f"| {item.aspect} | {escaped(item.sentence)} |"
    yield ""
    yield f"<details><summary>{counted(len(comparison.changes), 'field')}</summary>"
    yield ""
    yield "| | field | value | recipe |"
    yield "|---|---|---|---|"
    identity = {change.path for change in comparison.identity.fields}
    for change in comparison.changes:
        recipe = "yes" if change.path in identity else ""
        for path, values in change_lines(change):
            yield f"| {MARKS[change.kind]} | {escaped(path)} | {escaped(values)} | {recipe} |"
    yield ""
    yield "</details>"


def escaped(text: str) -> str:
    """Return `text` so that a cell of a Markdown table shows it as it is."""
    return printable(text).translate(_SPECIAL)
