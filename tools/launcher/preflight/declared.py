"""What an author wrote down, in a recipe or in a document."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import delete, shown
from tools.launcher.rl.recipe import SkyRLRecipe, leaves


class Declaration(NamedTuple):
    """A setting that somebody wrote."""

    value: Any
    where: str
    """Start of a sentence that ends with `path=value`: the recipe parts, or nothing for a document."""
    written: str
    """The value for a message; all of them where parts disagree."""
    repair: str
    """How to take it back."""


def declaration(subject: PreflightSubject, path: str) -> Declaration | None:
    """Return who set `path` below `skyrl`, None where nobody did.

    For a document that was built here only the recipe counts, because the document also holds
    what role plan and budget rendered into it.
    """
    if subject.planned is None:
        below_skyrl = f"skyrl.{path}"
        if not subject.declares(below_skyrl):
            return None
        value = subject.get(below_skyrl)
        return Declaration(value, "", shown(value), delete(below_skyrl))
    found = _set_by_parts(subject, subject.planned.recipe).get(path)
    if not found:
        return None
    names = [f"'{part}'" for part, _ in found]
    where = f"recipe part {names[0]} sets " if len(names) == 1 else f"recipe parts {' and '.join(names)} set "
    written = " and ".join(dict.fromkeys(shown(value) for _, value in found))
    return Declaration(found[0][1], where, written, f"delete {path} from the recipe")


def _set_by_parts(subject: PreflightSubject, recipe: SkyRLRecipe) -> dict[str, list[tuple[str, Any]]]:
    """Path -> (part, what it sets there): a leaf's value; a mapping where it sets something below."""
    found: dict[str, list[tuple[str, Any]]] | None = subject.derived.get(__name__)
    if found is None:
        found = {}
        for part, content in recipe.parts:
            for path, value in _values_of(content).items():
                found.setdefault(path, []).append((part, value))
        subject.derived[__name__] = found
    return found


def _values_of(content: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for leaf, value in leaves(content):
        values.setdefault(leaf, value)
        above = leaf.rpartition(".")[0]
        while above and above not in values:
            values[above] = {}
            above = above.rpartition(".")[0]
    return values
