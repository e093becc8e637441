"""Text of documents and records inside Markdown."""

from tools.launcher.documents.printable import printable

# Of GitHub's dialect: emphasis, code, links, HTML, tables, headings, strikethrough, mathematics.
_MARKS = {mark: f"\\{mark}" for mark in "\\`*_{}[]<>|#~$"}
# An entity would be read as what it stands for, and `@name` tells somebody.
_SPECIAL = str.maketrans({**_MARKS, "&": "&amp;", "@": "&#64;"})


def in_markdown(text: str) -> str:
    """Return `text` on one line so that Markdown shows it as it is, also in a cell of a table."""
    return printable(text).translate(_SPECIAL)
