"""Whether two launches learn the same, and which fields decide that."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tools.launcher.compare.fields import FieldChange, alone
from tools.launcher.compare.side import COMMIT, PROFILE, RESUME_MODE, Side, identity_content
from tools.launcher.documents.canonical import CanonicalEncodingError

_INPUTS = "inputs"


class IdentityChange(BaseModel):
    """What became of the recipe's identity.

    Attributes:
        changed: whether the two learn something else.
        basis: what was compared: the fingerprints of both RL steps, or what the documents say.
        fields: changes of the documents that decide what is learned.
        unsure: addresses of inputs that moved with the cluster or name other content, which the documents alone
            do not tell; empty where the fingerprints do.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    changed: bool
    basis: Literal["recipe digests", "documents"]
    fields: tuple[FieldChange, ...]
    unsure: tuple[FieldChange, ...] = ()

    @property
    def only_runtime(self) -> bool:
        """Whether another runtime is all that changed: the one change that a version can survive."""
        paths = {change.path for change in self.fields}
        return self.changed and COMMIT in paths and paths <= {COMMIT, PROFILE, RESUME_MODE}


def identity_change(a: Side, b: Side, changes: Sequence[FieldChange]) -> IdentityChange:
    """Compare the identities of `a` and `b`.

    Args:
        a, b: the launches.
        changes: of their documents.
    """
    fields = tuple(change for change in changes if _decides(change))
    moved = tuple(
        change
        for change in changes
        if change.keys[0] == _INPUTS and change not in fields and not _moved_along(a, b, change)
    )
    if a.recipe is not None and b.recipe is not None:
        changed = a.recipe != b.recipe
        # Where nothing else explains it, an address names another path of its artifact.
        return IdentityChange(
            changed=changed, basis="recipe digests", fields=fields or (moved if changed else ())
        )
    return IdentityChange(changed=bool(fields), basis="documents", fields=fields, unsure=moved)


def _decides(change: FieldChange) -> bool:
    """Whether a change makes another recipe, by the one definition and no list.

    That looks at names alone, so that the path to the value is document enough: with the whole one, a thousand
    changes would cost a thousand digests of it, and a value without a digest would hide all others.
    """
    before, after = alone(change)
    return bool(_content(before) != _content(after))


def _content(document: dict[str, Any]) -> Any:
    try:
        return identity_content(document)
    except CanonicalEncodingError as error:
        return str(error)  # Equal only to a document with the same value at the same place.


def _moved_along(a: Side, b: Side, change: FieldChange) -> bool:
    """Whether an address is the same place below the storage of another cluster."""
    if a.storage is None or b.storage is None:
        return False
    before, after = change.before, change.after
    return (
        isinstance(before, str)
        and isinstance(after, str)
        and before.startswith(a.storage)
        and after.startswith(b.storage)
        and before.removeprefix(a.storage) == after.removeprefix(b.storage)
    )
