"""Text that OmegaConf parses: `${...}` anywhere in the document."""

import re
from collections.abc import Iterator
from typing import Any

from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import below, shown

_OPEN = "${"
_TOKEN = re.compile(r"\$\{|[{}]")
_QUOTES = frozenset("'\"\\")
"""With one of these in it, only OmegaConf's grammar can tell which brace closes what."""
_LONGEST = 10_000
"""Characters. Of longer text only the last interpolation is looked at."""
_MOST_FINDINGS = 20


def is_unclosed(text: str) -> bool:
    """Whether the text certainly holds an interpolation without its end; false where that is unclear."""
    if _OPEN not in text:
        return False
    if len(text) <= _LONGEST and _QUOTES.isdisjoint(text):
        depth = 0
        for token in _TOKEN.findall(text):
            if token == "}":
                depth = max(0, depth - 1)
            elif token == _OPEN or depth:  # a brace alone is text, unless inside an interpolation
                depth += 1
        return depth > 0
    before, _, after = text.rpartition(_OPEN)
    escaped = (len(before) - len(before.rstrip("\\"))) % 2 == 1
    return not escaped and "}" not in after


@check(
    "DOC-11",
    "every interpolation has its end",
    area="document",
    rule="in any text, what ${ opens is closed by }; \\${ is text",
    prevents="OmegaConf parses every text when it reads the document, and refuses it.",
    inputs=("spec",),
    source="contract launch-document.md §1 (OmegaConf), tried out with its parser",
    implied_by=("DOC-01",),
)
def doc_11(subject: PreflightSubject) -> Iterator[Finding]:
    if not _has_interpolation(subject.document):
        return
    found = 0
    for path, text in _texts(subject.document, ""):
        if not is_unclosed(text):
            continue
        yield Finding(
            path=path,
            message=f"{path} is {shown(text)}: the interpolation that ${{ opens has no end",
            repair="close it with }, or write \\${ where the text itself is meant",
        )
        found += 1
        if found == _MOST_FINDINGS:
            return


def _has_interpolation(document: dict[str, Any]) -> bool:
    """Whether any text opens one; few documents do, and this is quicker than to name every place."""
    todo: list[Any] = [document]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            if _OPEN in value:
                return True
        elif isinstance(value, dict):
            todo += value.values()
        elif isinstance(value, list):
            todo += value
    return False


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of every text below `value`."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(each, below(path, key).removeprefix("."))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _texts(each, f"{path}[{index}]")


CHECKS = (doc_11,)
