"""What an author wrote down, in a recipe or in a document."""

from typing import Any, NamedTuple

from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import delete
from tools.launcher.rl.recipe import leaves


class Declaration(NamedTuple):
    """A setting that somebody wrote."""

    value: Any
    where: str
    """Start of a sentence that ends with `path=value`: the recipe part, or nothing for a document."""
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
        return Declaration(subject.get(below_skyrl), "", delete(below_skyrl))
    recipe = subject.planned.recipe
    for leaf, value in leaves(recipe.settings):
        if leaf == path or leaf.startswith(f"{path}."):
            return Declaration(
                value if leaf == path else {},
                f"recipe part '{recipe.origins.get(leaf, '?')}' sets ",
                f"delete {path} from the recipe",
            )
    return None
