"""From a checkout to a runtime manifest."""

from typing import Any, NamedTuple

from tools.launcher.catalog.load import load_runtime_manifest
from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.runtime_import.base_config import BaseConfig, read_base_config, recipe_keys
from tools.launcher.runtime_import.checkout import Checkout
from tools.launcher.runtime_import.manifest_text import blocks, taken_over, written
from tools.launcher.runtime_import.registries import Fact, Facts, read_registries

_IDENTITY = ("kind", "name", "commit", "marin_core")
_MARIN_CORE = "--marin_core gives it"
_HEADER = """# yaml-language-server: $schema=../../docs/schemas/runtime_manifest.schema.json
# What MarinSkyRL {commit} accepts. Facts only.
#
# Written by `launcher import-runtime` from a checkout. high: the files named were read at this commit.
# What they do not say plainly was taken over, and is marked.
"""


class ImportedManifest(NamedTuple):
    """A manifest that was made from a checkout."""

    text: bytes
    manifest: RuntimeManifest
    read: dict[str, tuple[str, ...]]
    """Field -> files that it was read from."""
    taken_over: dict[str, str]
    """Field that stayed as it was -> why it could not be read, "" where no file of a checkout says it."""
    notes: tuple[str, ...]
    """What a person has to decide or enter."""


def import_manifest(
    checkout: Checkout,
    commit: str,
    pinned: RuntimeManifest,
    pinned_text: bytes,
    *,
    marin_core: str | None = None,
) -> ImportedManifest:
    """Read a checkout as data and write the manifest of its commit.

    Args:
        checkout: a checkout of MarinSkyRL.
        commit: its commit, 40 hexadecimal digits.
        pinned: the manifest from which everything is taken over that the checkout does not say.
        pinned_text: the file of `pinned`.
        marin_core: the release of marin-core that pins `commit`; None: not known, the old one stays.

    Raises:
        ImportProblem: this is no checkout, or its base configuration cannot be read.
        DocumentError: a YAML file of the checkout cannot be read.
    """
    base = read_base_config(checkout)
    facts = read_registries(checkout)
    values, places, notes = _values(base, facts, pinned)
    reasons = dict(facts.unread)
    if marin_core is None:
        reasons["marin_core"] = _MARIN_CORE
    identity = {
        "kind": "runtime_manifest",
        "name": f"marinskyrl-{commit[:8]}",
        "commit": commit,
        "marin_core": marin_core or pinned.marin_core,
    }
    release = f"marin_core: {identity['marin_core']}"
    if marin_core is None:
        release += f"  # taken over from the manifest of {pinned.commit[:8]}, not read"
    text = [
        _HEADER.format(commit=commit[:8]),
        *(f"{field}: {value}\n" for field, value in identity.items() if field != "marin_core"),
        f"{release}\n",
    ]
    kept: dict[str, str] = {}
    for block in blocks(pinned_text.decode("utf-8")):
        if block.field in _IDENTITY:
            continue
        if block.field == "sources":
            text.append(_sources(commit, places))
        elif block.field in values:
            comment = f"{', '.join(places[block.field])}@{commit[:8]}; high"
            text.append(written(block.field, values[block.field], comment))
        else:
            kept[block.field] = reasons.get(block.field, "")
            text.append(taken_over(block, pinned.commit))
    known = {block.field for block in blocks(pinned_text.decode("utf-8"))}
    text += [
        written(field, value, f"{', '.join(places[field])}@{commit[:8]}; high")
        for field, value in values.items()
        if field not in known
    ]
    if marin_core is None:
        kept["marin_core"] = _MARIN_CORE
    data = "".join(text).encode("utf-8")
    manifest = load_runtime_manifest(data, source=f"the manifest of {commit[:8]}")
    return ImportedManifest(data, manifest, places, kept, tuple(notes))


def _values(
    base: BaseConfig, facts: Facts, pinned: RuntimeManifest
) -> tuple[dict[str, Any], dict[str, tuple[str, ...]], list[str]]:
    """The fields that were read, the files of each, and what a person has to look at."""
    values: dict[str, Any] = {}
    places: dict[str, tuple[str, ...]] = {}
    notes: list[str] = []
    for field, fact in facts.read.items():
        if field == "entrypoints":
            values[field] = _entrypoints(fact, pinned, notes)
        else:
            values[field] = _in_known_order(fact.value, getattr(pinned, field) or ())
        places[field] = fact.places
    notes += [
        f"enter '{name}' in recipe_top_level if it is a key of the recipe: the launcher looks it up"
        for name in facts.sections
        if name not in pinned.recipe_top_level
    ]
    if "env_classes" in values:
        values["env_classes_complete"] = True
        places["env_classes_complete"] = places["env_classes"]
    estimators = values.get("advantage_estimators")
    if estimators is not None:
        gone = [name for name in pinned.group_relative_estimators if name not in estimators]
        new = [name for name in estimators if name not in pinned.advantage_estimators]
        if gone:
            values["group_relative_estimators"] = [
                name for name in pinned.group_relative_estimators if name in estimators
            ]
            places["group_relative_estimators"] = places["advantage_estimators"]
        notes += [
            f"enter '{name}' in group_relative_estimators if it compares answers inside a group"
            for name in new
        ]
    if "entrypoints" in values and pinned.default_entrypoint not in values["entrypoints"]:
        notes.append(
            f"default_entrypoint '{pinned.default_entrypoint}' is no entry point any more: correct it"
        )
    strategy = base.leaves().get("trainer.strategy")
    if isinstance(strategy, str) and "${" not in strategy:
        values["default_strategy"] = strategy
        places["default_strategy"] = base.places[:1]
        if strategy not in pinned.strategies:
            notes.append(f"enter '{strategy}' in strategies: it is the default of the base configuration")
    values["recipe_keys"] = recipe_keys(base, pinned)
    places["recipe_keys"] = base.places
    notes += [
        f"the type of {path} is not known: its default is {'null' if key.default is None else key.default}"
        for path, key in values["recipe_keys"].items()
        if key.type == "any"
    ]
    enumerated = [
        path
        for path in pinned.recipe_enums
        if path in pinned.recipe_keys and path not in values["recipe_keys"]
    ]
    notes += [f"recipe_enums still has {path}, which is gone: delete it" for path in enumerated]
    return values, places, notes


def _entrypoints(fact: Fact, pinned: RuntimeManifest, notes: list[str]) -> dict[str, dict[str, Any]]:
    """Entry points with the training type that is on record; a new one is left to a person."""
    known = pinned.entrypoints
    found: dict[str, dict[str, Any]] = {}
    for name, module in sorted(fact.value.items(), key=lambda item: (_place(item[0], list(known)), item[0])):
        if name not in known:
            notes.append(
                f"enter the entry point '{name}' (module {module}) by hand: its training type is code, not data"
            )
            continue
        found[name] = {"module": module, "training_type": known[name].training_type}
        if known[name].async_unless_colocated:
            found[name]["async_unless_colocated"] = True
    return found


def _in_known_order(found: list[str], known: tuple[str, ...]) -> list[str]:
    return sorted(found, key=lambda name: _place(name, list(known)))


def _place(name: str, known: list[str]) -> int:
    return known.index(name) if name in known else len(known)


def _sources(commit: str, places: dict[str, tuple[str, ...]]) -> str:
    files = sorted({place for files in places.values() for place in files})
    return "\nsources:\n" + "".join(f'  - "MarinSkyRL {file}@{commit}"\n' for file in files)
