"""A comparison for a pull request."""

from collections.abc import Iterator, Sequence

from tools.launcher.compare.consequences import Comparison
from tools.launcher.compare.render_text import field_lines, side_words
from tools.launcher.documents.markdown import in_markdown
from tools.launcher.preflight.wording import counted

MOST_CHARACTERS = 50_000
"""Of the rows of a table: GitHub takes no comment of more than 65536 characters."""


def markdown_lines(comparison: Comparison) -> Iterator[str]:
    """Yield a table of consequences, and one of fields that is folded away."""
    yield f"**A** {in_markdown(side_words(comparison.a))}  "
    yield f"**B** {in_markdown(side_words(comparison.b))}"
    yield ""
    if comparison.equal:
        yield "Equal: the same launch document."
        return
    yield "| what | A to B |"
    yield "|---|---|"
    for item in comparison.consequences:
        if item.shown:
            yield f"| {item.aspect} | {in_markdown(item.sentence)} |"
    yield ""
    yield f"<details><summary>{counted(len(comparison.changes) + len(comparison.beside), 'field')}</summary>"
    yield ""
    yield "| | field | value | recipe |"
    yield "|---|---|---|---|"
    yield from as_far_as_fits(
        [
            f"| {line.mark} | {in_markdown(line.path)} | {in_markdown(line.values)} | {'yes' if line.recipe else ''} |"
            for line in field_lines(comparison)
        ],
        "| … | {more} | `--format=text` shows all | |",
    )
    yield ""
    yield "</details>"


def as_far_as_fits(rows: Sequence[str], last: str) -> Iterator[str]:
    """Yield rows of a table, and if they are too many for a comment, `last` with their number as `{more}`."""
    taken = 0
    for index, row in enumerate(rows):
        taken += len(row) + 1
        if taken > MOST_CHARACTERS:
            yield last.format(more=f"{len(rows) - index} more")
            return
        yield row
