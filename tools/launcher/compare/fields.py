"""The difference of two documents, field by field.

The order of keys does not count, the order of a list does. Types count: `1`, `1.0` and `true` are three
values, as they are in a digest.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tools.launcher.preflight.wording import below

ChangeKind = Literal["added", "removed", "changed"]


class FieldChange(BaseModel):
    """One difference, at the topmost place where two documents part.

    Attributes:
        keys: where it is, keys of mappings and places in lists.
        kind: `added` in the second, `removed` from the first, or `changed`.
        before, after: the values; None where there is none, which `kind` tells from null.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    keys: tuple[str | int, ...]
    kind: ChangeKind
    before: Any
    after: Any

    @property
    def path(self) -> str:
        """The place as preflight writes it, such as `inputs.train_data[0].uri`."""
        path = ""
        for key in self.keys:
            path = f"{path}[{key}]" if isinstance(key, int) else below(path, key) if path else key
        return path


def field_changes(before: dict[str, Any], after: dict[str, Any]) -> tuple[FieldChange, ...]:
    """Return what differs, by path; what a list lost at its end stands last place first."""
    return tuple(_of_mapping((), before, after))


def with_changes(document: dict[str, Any], changes: Sequence[FieldChange]) -> dict[str, Any]:
    """Return `document` with `changes` made; what stays is shared.

    Args:
        document: has at every place what the change says was there before.
        changes: in the order of `field_changes`.
    """
    for change in changes:
        document = _replaced(document, change.keys, change)
    return document


def alone(change: FieldChange) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two documents with nothing but the path to a change, and the value before and after it."""
    *outer, last = change.keys
    documents: list[dict[str, Any]] = []
    for absent, value in ((change.kind == "added", change.before), (change.kind == "removed", change.after)):
        if isinstance(last, int):
            node: Any = [] if absent else [value]
        else:
            node = {} if absent else {last: value}
        for key in reversed(outer):
            node = [node] if isinstance(key, int) else {key: node}
        documents.append(node)
    return documents[0], documents[1]


def _of_mapping(
    keys: tuple[str | int, ...], before: dict[str, Any], after: dict[str, Any]
) -> Iterator[FieldChange]:
    for key in sorted(before.keys() | after.keys()):
        place = (*keys, str(key))
        if key not in before:
            yield FieldChange(keys=place, kind="added", before=None, after=after[key])
        elif key not in after:
            yield FieldChange(keys=place, kind="removed", before=before[key], after=None)
        else:
            yield from _of_value(place, before[key], after[key])


def _of_value(keys: tuple[str | int, ...], before: Any, after: Any) -> Iterator[FieldChange]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _of_mapping(keys, before, after)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_list(keys, before, after)
    elif type(before) is not type(after) or repr(before) != repr(after):  # not `!=`: NaN equals itself here
        yield FieldChange(keys=keys, kind="changed", before=before, after=after)


def _of_list(keys: tuple[str | int, ...], before: list[Any], after: list[Any]) -> Iterator[FieldChange]:
    common = min(len(before), len(after))
    for index in range(common):
        yield from _of_value((*keys, index), before[index], after[index])
    for index in range(common, len(after)):
        yield FieldChange(keys=(*keys, index), kind="added", before=None, after=after[index])
    for index in reversed(range(common, len(before))):
        yield FieldChange(keys=(*keys, index), kind="removed", before=before[index], after=None)


def _replaced(node: Any, keys: tuple[str | int, ...], change: FieldChange) -> Any:
    key, *rest = keys
    copy: Any = list(node) if isinstance(node, list) else dict(node)
    if rest:
        copy[key] = _replaced(copy[key], tuple(rest), change)
    elif change.kind == "removed":
        del copy[key]
    elif change.kind == "added" and isinstance(copy, list):
        copy.append(change.after)
    else:
        copy[key] = change.after
    return copy
