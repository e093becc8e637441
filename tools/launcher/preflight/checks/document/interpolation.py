"""Text that OmegaConf parses: `${...}` anywhere in the document."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import below, shown

_OPEN = "${"
_TOKEN = re.compile(r"\$\{|[{}]")
_QUOTES = frozenset("'\"\\")
"""With one of these in it, only OmegaConf's grammar can tell which brace closes what."""
_NAMED = re.compile(r"\$\{\s*([^${}:]*?)\s*\}")
"""An interpolation of a name, not of a resolver such as oc.env."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*", re.ASCII)
_MISSING = "???"
"""OmegaConf's word for a value that is still to be set."""
_COMPOSED = (
    *("trainer", "generator", "data", "environment", "trajectory_runner"),
    *("terminal_bench", "teachers", "teacher_routing"),
)
"""Sections of a recipe that the launcher puts into the composed tree and resolves there again."""
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
    if not _has_interpolation(subject):
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


@check(
    "DOC-14",
    "no value is still to be set",
    area="document",
    rule="no text is ???, the word of OmegaConf for a value that is missing",
    prevents="The launcher reads the whole document and refuses it, wherever the word stands.",
    inputs=("spec", "runtime"),
    source="MarinSkyRL cloud/iris/launch_config.py@00ee4e42, tried out with OmegaConf; the launcher",
    implied_by=("DOC-01",),
)
def doc_14(subject: PreflightSubject) -> Iterator[Finding]:
    fields = subject.manifest().document_fields or {}
    if _MISSING not in subject.texts:
        return
    mandatory = {path for path, field in fields.items() if field.required}  # DOC-03 says it of these
    unset = (path for path, text in _texts(subject.document, "") if text == _MISSING)
    for path in islice((path for path in unset if path not in mandatory), _MOST_FINDINGS):
        yield Finding(
            path=path,
            message=f"{path} is ???, a value that is still to be set",
            repair=f"write the value of {path}, or delete it",
        )


@check(
    "DOC-15",
    "an interpolation names what is there",
    area="document",
    rule="${name} begins with a section of the launch document, and is in no part of a recipe that is composed: it is "
    "looked up in the document first and in the composed tree then, which share no name; ${.name}, ${resolver:...} "
    "and the tree of a resolved document are not judged",
    prevents="The launcher finds no such key and refuses the document.",
    inputs=("spec", "runtime"),
    source="MarinSkyRL cloud/iris/launch_config.py@00ee4e42, tried out with OmegaConf; the launcher",
    implied_by=("DOC-01", "DOC-11"),
)
def doc_15(subject: PreflightSubject) -> Iterator[Finding]:
    if not _has_interpolation(subject):
        return
    known = subject.manifest().document_mappings.get("", [])
    source_form = subject.source_form
    found = ((path, text, name) for path, text in _texts(subject.document, "") for name in _names(text))
    wrong = (
        (path, text, name)
        for path, text, name in found
        if (source_form or not path.startswith("skyrl."))
        and (name.partition(".")[0] not in known or _is_composed(path))
    )
    for path, text, name in islice(wrong, _MOST_FINDINGS):
        in_document = name.partition(".")[0] in known
        where = "in the composed tree" if in_document else "at the top of the launch document"
        yield Finding(
            path=path,
            message=f"{path} is {shown(text)}: the launcher looks for {name} {where}, and it is not there",
            repair=f"write the value of {path} out"
            + ("" if "." in name else f"; for an environment variable, ${{oc.env:{name}}}"),
        )


def _names(text: str) -> Iterator[str]:
    """Yield the names of simple interpolations; of text that only OmegaConf's grammar can read, none."""
    if _OPEN not in text or len(text) > _LONGEST or not _QUOTES.isdisjoint(text):
        return
    yield from (name for name in _NAMED.findall(text) if _PLAIN_NAME.fullmatch(name))


def _is_composed(path: str) -> bool:
    parts = path.split(".")
    return parts[0] == "skyrl" and parts[1:2] != [] and parts[1] in _COMPOSED


def _has_interpolation(subject: PreflightSubject) -> bool:
    """Whether any text opens one; few documents do, and this is quicker than to name every place."""
    return any(_OPEN in text for text in subject.texts)


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


CHECKS = (doc_11, doc_14, doc_15)
