"""What differs between two runtime manifests, and which experiments it touches."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from tools.launcher.catalog.runtime_manifest import RecipeKey, RuntimeManifest
from tools.launcher.rl.recipe import leaves

_IDENTITY = frozenset({"kind", "name", "commit", "marin_core", "sources", "recipe_keys"})
_RENDERED = frozenset({"role-plan", "context-budget", "launcher", "computed", "dropped"})
"""Owners of keys whose default no experiment runs with: something else writes the value, or nobody reads it."""
_USES = {
    "strategies": "trainer.strategy",
    "generator_backends": "generator.backend",
    "advantage_estimators": "trainer.algorithm.advantage_estimator",
    "policy_losses": "trainer.algorithm.policy_loss_type",
    "loss_reductions": "trainer.algorithm.loss_reduction",
    "env_classes": "environment.env_class",
    "entrypoints": "entrypoint",
}
"""Registry -> path below `skyrl` that names one of its entries."""
_ENGINE_OPTIONS = "generator.engine_init_kwargs"


class Moved(NamedTuple):
    """A fact with another value."""

    name: str
    old: Any
    new: Any


class Changes(NamedTuple):
    """Differences between the pinned manifest and another, each sorted by name."""

    added: tuple[tuple[str, RecipeKey], ...]
    removed: tuple[tuple[str, RecipeKey], ...]
    defaults: tuple[Moved, ...]
    types: tuple[Moved, ...]
    entries_added: dict[str, tuple[str, ...]]
    """Registry -> entries that are new."""
    entries_removed: dict[str, tuple[str, ...]]
    values: tuple[Moved, ...]
    """Other facts, and entries of a mapping, with another value."""

    @property
    def any(self) -> bool:
        """Whether anything differs."""
        return any(bool(part) for part in self)


def compare(old: RuntimeManifest, new: RuntimeManifest) -> Changes:
    """Return what differs; commit, name, sources and the release of marin-core are not compared."""
    both = sorted(old.recipe_keys.keys() & new.recipe_keys.keys())
    pairs = [(path, old.recipe_keys[path], new.recipe_keys[path]) for path in both]
    entries_added: dict[str, tuple[str, ...]] = {}
    entries_removed: dict[str, tuple[str, ...]] = {}
    values: list[Moved] = []
    for field in RuntimeManifest.model_fields:
        before, after = getattr(old, field), getattr(new, field)
        if field in _IDENTITY or _same(before, after):
            continue
        if not (_is_collection(before) and _is_collection(after)):
            values.append(Moved(field, before, after))
            continue
        gone, came = _without(before, after), _without(after, before)
        if gone:
            entries_removed[field] = gone
        if came:
            entries_added[field] = came
        if isinstance(before, Mapping):
            values += [
                Moved(f"{field}.{name}", before[name], after[name])
                for name in before
                if name in after and not _same(before[name], after[name])
            ]
    return Changes(
        added=_only(new, old),
        removed=_only(old, new),
        defaults=tuple(
            Moved(path, _default(one), _default(other))
            for path, one, other in pairs
            if not _same(_default(one), _default(other))
        ),
        types=tuple(
            Moved(path, one.type, other.type) for path, one, other in pairs if one.type != other.type
        ),
        entries_added=entries_added,
        entries_removed=entries_removed,
        values=tuple(values),
    )


def touches(document: Mapping[str, Any], changes: Changes) -> tuple[str, ...]:
    """Say how the changes touch the experiment of a launch document, nothing where they do not.

    It is touched where it sets a key that is gone or has another type, names a registry's entry
    that is gone or an engine option that is now forbidden, or relies on a default that moved. A
    resolved document has written all of its defaults out.
    """
    skyrl = document.get("skyrl")
    settings = dict(leaves(skyrl)) if isinstance(skyrl, Mapping) else {}
    runtime = document.get("runtime")
    resolved = isinstance(runtime, Mapping) and bool(runtime.get("entrypoint"))
    found = [f"sets {path}, which is gone" for path, _ in changes.removed for _ in _at(path, settings)[:1]]
    found += [
        f"sets {name}={_shown(value)}, which has type {new} now, not {old}"
        for name, old, new in changes.types
        for value in _at(name, settings)[:1]
    ]
    found += [
        f"relies on the default of {name}, which moves from {_shown(old)} to {_shown(new)}"
        for name, old, new in changes.defaults
        if not resolved and not _at(name, settings)
    ]
    found += [
        f"uses {path}={settings[path]}, which {registry} has no more"
        for registry, path in _USES.items()
        if settings.get(path) in changes.entries_removed.get(registry, ()) and isinstance(settings[path], str)
    ]
    found += [
        f"sets {_ENGINE_OPTIONS}.{name}, which is forbidden now"
        for name in changes.entries_added.get("engine_init_kwargs_forbidden", ())
        for _ in _at(f"{_ENGINE_OPTIONS}.{name}", settings)[:1]
    ]
    return tuple(found)


def without_rendered_defaults(changes: Changes, new: RuntimeManifest) -> Changes:
    """Return the changes without moved defaults that no experiment runs with."""
    kept = tuple(move for move in changes.defaults if new.recipe_keys[move.name].owner not in _RENDERED)
    return changes._replace(defaults=kept)


def report(changes: Changes) -> list[str]:
    """Return the changes as lines, one for each, grouped under headings."""
    lines: list[str] = []
    for heading, group in (
        (
            "keys added",
            [f"{path}: {key.type}, default {_shown(_default(key))}" for path, key in changes.added],
        ),
        ("keys removed", [path for path, _ in changes.removed]),
        ("defaults moved", [_arrow(move) for move in changes.defaults]),
        ("types changed", [_arrow(move) for move in changes.types]),
        ("entries added", _entries(changes.entries_added)),
        ("entries removed", _entries(changes.entries_removed)),
        ("other facts changed", [_arrow(move) for move in changes.values]),
    ):
        if group:
            lines.append(f"{heading}: {len(group)}")
            lines += [f"  {line}" for line in group]
    return lines


def _entries(found: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [f"{field}: {name}" for field, names in found.items() for name in names]


def _arrow(move: Moved) -> str:
    return f"{move.name}: {_shown(move.old)} -> {_shown(move.new)}"


class _LeftOut:
    """Default of a key whose value the launcher fills."""

    def __repr__(self) -> str:
        return "filled by the launcher"


_LEFT_OUT = _LeftOut()


def _default(key: RecipeKey) -> Any:
    return key.default if "default" in key.model_fields_set else _LEFT_OUT


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, BaseModel):
        return ", ".join(
            f"{name} {_shown(fact)}" for name, fact in value.model_dump(exclude_unset=True).items()
        )
    return str(value) if isinstance(value, int | float | str | _LeftOut) else repr(value)


def _same(one: Any, other: Any) -> bool:
    """Equality that keeps 1, 1.0 and true apart."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)


def _is_collection(value: Any) -> bool:
    return isinstance(value, tuple | Mapping)


def _without(these: Any, those: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in these if item not in those)


def _only(these: RuntimeManifest, those: RuntimeManifest) -> tuple[tuple[str, RecipeKey], ...]:
    paths = sorted(these.recipe_keys.keys() - those.recipe_keys.keys())
    return tuple((path, these.recipe_keys[path]) for path in paths)


def _at(path: str, settings: Mapping[str, Any]) -> list[Any]:
    """What a document sets at `path` or below it; null and {} set nothing."""
    return [
        value
        for leaf, value in settings.items()
        if (leaf == path or leaf.startswith(f"{path}.")) and value is not None and value != {}
    ]
