"""Whether two launches learn the same, and which fields decide that."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tools.launcher.compare.fields import FieldChange, with_changes
from tools.launcher.compare.side import COMMIT, PROFILE, Side, identity_content
from tools.launcher.documents.canonical import CanonicalEncodingError


class IdentityChange(BaseModel):
    """What became of the recipe's identity.

    Attributes:
        changed: whether the two learn something else.
        basis: what was compared: the fingerprints of both RL steps, or what the documents say.
        fields: changes of the documents that decide what is learned.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    changed: bool
    basis: Literal["recipe digests", "documents"]
    fields: tuple[FieldChange, ...]

    @property
    def only_runtime(self) -> bool:
        """Whether another runtime is all that changed: the one change that a version can survive."""
        paths = {change.path for change in self.fields}
        return self.changed and COMMIT in paths and paths <= {COMMIT, PROFILE}


def identity_change(a: Side, b: Side, changes: Sequence[FieldChange]) -> IdentityChange:
    """Compare the identities of `a` and `b`.

    Args:
        a, b: the launches.
        changes: of their documents.
    """
    fields = _identity_fields(a.document, changes)
    if a.recipe is not None and b.recipe is not None:
        return IdentityChange(changed=a.recipe != b.recipe, basis="recipe digests", fields=fields)
    return IdentityChange(changed=bool(fields), basis="documents", fields=fields)


def _identity_fields(document: dict[str, Any], changes: Sequence[FieldChange]) -> tuple[FieldChange, ...]:
    """The changes that alone would make `document` another recipe, by the one definition and no list."""
    before = _content(document)
    return tuple(change for change in changes if _content(with_changes(document, [change])) != before)


def _content(document: dict[str, Any]) -> Any:
    try:
        return identity_content(document)
    except CanonicalEncodingError as error:
        return str(error)  # Equal only to a document with the same value at the same place.
