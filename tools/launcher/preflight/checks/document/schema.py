"""The fields of a launch document outside `skyrl`: which there are, which must be there, and of what type.

The launcher merges a document into a structured schema (OmegaConf). Which fields that has is a fact of the
runtime commit, since the field set changed several times under one schema_version; so the table of
fields is `document_fields` of the runtime manifest, and these checks read it. What the schema would convert
is a warning at most.
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.catalog.runtime_manifest import DocumentField
from tools.launcher.documents.strict_yaml import UnquotedKey
from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.document.interpolation import is_unclosed
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.launcher_reading import WORDS, Reading, read_as
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import below, delete, listed, set_to, shown

_OF_OTHER_CHECKS = ("schema_version", "iris.allocation.num_nodes", "iris.allocation.gpus_per_node")
"""DOC-05 and GEO-01 say what is wrong with these values."""

_MOST_UNKNOWN = 20
"""Unknown keys that are named in one mapping; a document of some other kind has only such."""
_LONGEST_KEY = 64
"""Of a longer key no near one is looked for."""

_MISSING = "???"
"""OmegaConf's word for a value that is still to be set."""
_INTERPOLATION = "${"


class _Schema(NamedTuple):
    fields: Mapping[str, DocumentField]
    keys: dict[str, list[str]]
    """Path of a mapping ("" for the document) -> keys of it."""


def _schema(subject: PreflightSubject) -> _Schema:
    """Raises MissingFact where the manifest does not know the fields."""
    manifest = subject.manifest()
    if manifest.document_fields is None:
        raise MissingFact(f"document_fields in the runtime manifest '{manifest.name}'")
    return _Schema(manifest.document_fields, manifest.document_mappings)


def _mappings(subject: PreflightSubject, schema: _Schema) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (path, content) of the mappings that the schema knows and the document has."""
    for path in schema.keys:
        content = subject.get(path) if path else subject.document
        if isinstance(content, dict):
            yield path, content


def _path(mapping: str, key: Any) -> str:
    return below(mapping, key) if mapping else below("", key).removeprefix(".")


def _near(key: str, known: list[str]) -> str | None:
    """The known key that was meant, if one is near."""
    if len(key) > _LONGEST_KEY:
        return None
    plain = {each.replace("_", ""): each for each in known}
    close = difflib.get_close_matches(
        key.casefold().replace("_", "").replace("-", ""), plain, n=1, cutoff=0.75
    )
    return plain[close[0]] if close else None


def _meant_elsewhere(key: str, schema: _Schema, subject: PreflightSubject) -> str | None:
    """The path of another mapping that has `key`, or one near it."""
    top = subject.manifest().recipe_top_level
    if key in top:
        return f"skyrl.{key}"
    leaves = {path.rpartition(".")[2]: path for path in schema.fields}
    near = _near(key, list(leaves))
    return None if near is None else leaves[near]


@check(
    "DOC-02",
    "every key outside skyrl is known",
    area="document",
    rule="a key of the document and of its sections is one of the launcher's schema, in its spelling and case",
    prevents="The launcher refuses the document after the coordinator started.",
    inputs=("spec", "runtime"),
    source="contract launch-document.md §1, cases d03, d04, n245; the launcher",
)
def doc_02(subject: PreflightSubject) -> Iterator[Finding]:
    schema = _schema(subject)
    for mapping, content in _mappings(subject, schema):
        known = schema.keys[mapping]
        unknown = [key for key in content if key not in known]
        place = mapping or "the document"
        for key in unknown[:_MOST_UNKNOWN]:
            path = _path(mapping, key)
            near = _near(key, known)
            section = None
            meant = _path(mapping, near) if near is not None else _meant_elsewhere(key, schema, subject)
            if near is not None and near not in content:
                hint, repair = f". Did you mean {near}?", f"rename {path} to {meant}"
                section = meant if _is_section(meant, schema) else None
            elif meant is not None:
                written = ", which is there as well" if subject.declares(meant) else ""
                hint = f". Near: {meant}{written}"
                repair = delete(path) if written else f"move {path} to {meant}"
            else:
                hint, repair = f". Known: {listed(known)}", delete(path)
            yield Finding(
                path=path, message=f"{place} has no key {shown(key)}{hint}", repair=repair, section=section
            )
        if len(unknown) > _MOST_UNKNOWN:
            yield Finding(
                path=mapping,
                message=f"{place} has {len(unknown) - _MOST_UNKNOWN} more unknown keys. Known: {listed(known)}",
                repair="delete the unknown keys",
            )


@check(
    "DOC-03",
    "every mandatory field is there",
    area="document",
    rule="a mandatory field has a value: not null, not ???, and no empty text where that cannot work",
    prevents="The launcher refuses the document after the coordinator started, or an address is empty.",
    inputs=("spec", "runtime"),
    source="contract launch-document.md §1, cases d32, n196; the launcher",
    implied_by=("DOC-01",),
)
def doc_03(subject: PreflightSubject) -> Iterator[Finding]:
    schema = _schema(subject)
    required = [path for path, field in schema.fields.items() if field.required]
    reported: set[str] = set()
    for path in required:
        parts = path.split(".")
        above = [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        missing = next(
            (each for each in above if not subject.has(each) or subject.get(each) == _MISSING), None
        )
        if missing is None:
            value = subject.get(path)
            if schema.fields[path].not_empty and isinstance(value, str) and not value.strip():
                yield Finding(
                    path=path, message=f"{path} is {'blank' if value else 'empty'}", repair=f"write {path}"
                )
            continue
        mapping, _, key = missing.rpartition(".")
        if missing in reported or _is_misspelt(subject, schema, mapping, key):
            continue
        reported.add(missing)
        if mapping and not isinstance(subject.get(mapping), dict):
            continue  # DOC-04 says that the section is no mapping.
        inner = [each[len(missing) + 1 :] for each in required if each.startswith(f"{missing}.")]
        has = f". It has {listed(inner)}" if inner else ""
        why = f"is {shown(subject.get(missing))}" if subject.declares(missing) else "is missing"
        yield Finding(
            path=missing,
            message=f"{missing} {why}, it is mandatory{has}",
            repair=f"write {missing}",
            section=missing if _is_section(missing, schema) else None,
        )


def _is_section(path: str | None, schema: _Schema) -> bool:
    if path is None:
        return False
    return path in schema.keys or (path in schema.fields and schema.fields[path].type == "open")


def _is_misspelt(subject: PreflightSubject, schema: _Schema, mapping: str, key: str) -> bool:
    """Whether an unknown key of the mapping is this one, misspelt (DOC-02 says so)."""
    content = subject.get(mapping) if mapping else subject.document
    if not isinstance(content, dict) or key in content:
        return False
    known = schema.keys[mapping]
    unknown = [each for each in content if each not in known][:_MOST_UNKNOWN]
    return any(_near(each, known) == key for each in unknown)


@check(
    "DOC-04",
    "every field outside skyrl has its type",
    area="document",
    rule="a value has its field's type; what the launcher's schema converts (1 for text, '8' for a number) is a warning, "
    "but true and false for text",
    prevents="The launcher refuses the document after the coordinator started, or reads another value than is written.",
    inputs=("spec", "runtime"),
    source="contract launch-document.md §1, cases d33, n195; the launcher (OmegaConf)",
    implied_by=("DOC-01",),
)
def doc_04(subject: PreflightSubject) -> Iterator[Finding]:
    schema = _schema(subject)
    for mapping in schema.keys:
        if not mapping or not subject.declares(mapping):
            continue
        content = subject.get(mapping)
        if isinstance(content, dict):
            continue
        mandatory = any(
            field.required for path, field in schema.fields.items() if path.startswith(f"{mapping}.")
        )
        if not (mandatory and content in (None, _MISSING)):
            yield Finding(
                path=mapping,
                message=f"{mapping} is {shown(content)}, not a mapping with {listed(schema.keys[mapping])}",
                repair=f"write the keys of {mapping}" if mandatory else delete(mapping),
                section=mapping,
            )
    for path, field in schema.fields.items():
        if path not in _OF_OTHER_CHECKS and subject.declares(path):
            yield from _type_problems(subject, path, field)


def _type_problems(subject: PreflightSubject, path: str, field: DocumentField) -> Iterator[Finding]:
    value = subject.get(path)
    if value is None:
        if not field.nullable and not field.required:
            yield Finding(path=path, message=f"{path} is null, which is no value for it", repair=delete(path))
    elif field.type == "text_map":
        yield from _text_map_problems(path, value)
    elif field.type == "open":
        if not isinstance(value, dict):
            yield Finding(
                path=path,
                message=f"{path} is {shown(value)}, not a mapping",
                repair="write the recipe below it",
                section=path,
            )
    elif field.type != "records" and not (isinstance(value, str) and _is_unresolved(value)):
        reading = read_as(field.type, value)
        if reading.problem:
            yield Finding(
                path=path,
                message=f"{path} is {shown(value)}, {reading.problem}",
                repair=f"write {path} as {WORDS[field.type]}",
            )
        elif reading.converted:
            yield Finding(
                path=path,
                message=f"{path} is {shown(value)} where the schema has {WORDS[field.type]}; the launcher reads it as "
                f"{shown(reading.value)}",
                repair=set_to(path, reading.value)
                if field.type != "str"
                else _quoted(subject, path, reading),
                # Nothing is called 'True' or 'False': that is a yes, no, on or off without its quotes.
                severity="error" if field.type == "str" and isinstance(value, bool) else "warning",
            )


def _quoted(subject: PreflightSubject, path: str, reading: Reading) -> str:
    """The repair of a text without quotes; only of a plain integer it is known how it was written."""
    plain = type(subject.get(path)) is int and path not in {each.path for each in subject.two_readings}
    return f"write {path} in quotes" + (f": {shown(reading.value)}" if plain else ", as it was meant")


def _is_unresolved(text: str) -> bool:
    return text == _MISSING or _INTERPOLATION in text


def _text_map_problems(path: str, value: Any) -> Iterator[Finding]:
    if not isinstance(value, dict):
        yield Finding(
            path=path, message=f"{path} is {shown(value)}, not a mapping of text to text", repair=delete(path)
        )
        return
    for key in [each for each in value if isinstance(each, UnquotedKey)][:_MOST_UNKNOWN]:
        yield Finding(
            path=below(path, key),
            message=f"{path} has the key {key} without quotes, a number or boolean where the schema has text",
            repair=f"write the key in quotes: '{key}', or as it was meant",
        )
    bad = [(key, each) for key, each in value.items() if not isinstance(each, str | int | float)]
    for key, each in bad[:_MOST_UNKNOWN]:
        yield Finding(
            path=below(path, key),
            message=f"{below(path, key)} is {shown(each)}, not text",
            repair=delete(below(path, key)),
        )
    for key, each in list(value.items())[:_MOST_UNKNOWN]:
        if isinstance(each, bool):
            yield Finding(
                path=below(path, key),
                message=f"{below(path, key)} is a boolean; the launcher writes it as {str(each)!r}",
                repair=f"write {below(path, key)} in quotes, as the program expects it",
                severity="warning",
            )


@check(
    "DOC-05",
    "the document is of the launcher's schema version",
    area="document",
    rule="schema_version is the integer that the runtime's launcher has",
    prevents="The launcher refuses the document; true is no integer, although it counts as 1.",
    inputs=("spec", "runtime"),
    source="contract launch-document.md §4.1, case n195; the launcher",
    implied_by=("DOC-01",),
)
def doc_05(subject: PreflightSubject) -> Iterator[Finding]:
    wanted = subject.manifest().schema_version
    value = subject.get("schema_version")
    if value is None or (type(value) is int and value == wanted):
        return  # A missing one is DOC-03's.
    reading = read_as("int", value)
    converted = not reading.problem and reading.value == wanted
    yield Finding(
        path="schema_version",
        message=f"schema_version is {shown(value)}, the launcher knows {wanted}"
        + (" and converts it" if converted else ""),
        repair=set_to("schema_version", wanted),
        severity="warning" if converted else "error",
    )


@check(
    "DOC-06",
    "values outside skyrl are written out",
    area="document",
    rule="no text outside skyrl contains ${",
    prevents="The launcher resolves it on its own host: the reviewed bytes do not say what runs.",
    inputs=("spec", "runtime"),
    source="contract launch-document.md §1 (OmegaConf); nobody checks it",
    implied_by=("DOC-01",),
)
def doc_06(subject: PreflightSubject) -> Iterator[Finding]:
    schema = _schema(subject)
    for path, field in schema.fields.items():
        value = subject.get(path)
        texts = [(path, value)]
        if field.type == "text_map" and isinstance(value, dict):
            texts = [(below(path, key), each) for key, each in value.items()]
        for place, text in texts[:_MOST_UNKNOWN]:
            if isinstance(text, str) and _INTERPOLATION in text and not is_unclosed(text):
                yield Finding(
                    path=place,
                    message=f"{place} is {shown(text)}, which the launcher resolves on its host; nothing here knows its value",
                    repair=f"write the value of {place} out",
                    severity="warning",
                )


CHECKS = (doc_02, doc_03, doc_04, doc_05, doc_06)
