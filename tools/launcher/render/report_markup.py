"""HTML and SVG as text that is escaped where it is made."""

import html
from collections.abc import Sequence

from tools.launcher.documents.printable import printable

_ATTRIBUTE_NAMES = {"class_": "class", "for_": "for"}


class Markup(str):
    """Text that is HTML already. Any other text is escaped when it becomes part of an element."""

    __slots__ = ()


Content = str | Markup | None
"""None is left out."""


def element(tag: str, *content: Content, **attributes: str | int | None) -> Markup:
    """Return an element with an end tag.

    Args:
        tag: name of the element.
        content: in order; what is no Markup is escaped.
        attributes: `class_` and `for_` for Python's keywords, `_` for `-`; None leaves one out.
    """
    return Markup(f"<{tag}{_attributes(attributes)}>{joined(*content)}</{tag}>")


def empty(tag: str, **attributes: str | int | None) -> Markup:
    """Return an element of SVG that has no content."""
    return Markup(f"<{tag}{_attributes(attributes)}/>")


def joined(*content: Content, between: str = "") -> Markup:
    """Return contents as one piece of markup, with plain text `between` them."""
    return Markup(escaped(between).join(escaped(part) for part in content if part is not None))


def escaped(text: str) -> Markup:
    """Return text as markup, free of control characters; Markup stays as it is."""
    return text if isinstance(text, Markup) else Markup(html.escape(printable(text)))


def _attributes(attributes: dict[str, str | int | None]) -> str:
    return "".join(
        f' {_ATTRIBUTE_NAMES.get(name, name.replace("_", "-"))}="{html.escape(printable(str(value)))}"'
        for name, value in attributes.items()
        if value is not None
    )


def shortened(text: str, most: int) -> str:
    """Return `text`, cut in its middle where it is longer than `most` characters."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


def plural(number: int, word: str, words: str | None = None) -> str:
    """Return `1 node` or `1,024 nodes`; `words` where the plural has no mere s."""
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def table(
    caption: str, columns: tuple[str, ...], rows: Sequence[tuple[Content, ...]], *, class_: str | None = None
) -> Markup:
    """Return a table whose first column heads its rows."""
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in cells))
        for first, *cells in rows
    ]
    head = element("tr", *(element("th", name, scope="col") for name in columns))
    return element(
        "table", element("caption", caption), element("thead", head), element("tbody", *body), class_=class_
    )
