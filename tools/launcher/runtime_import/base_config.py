"""The base configuration of a checkout, composed from its defaults list like Hydra does, and its keys."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from tools.launcher.catalog.runtime_manifest import RecipeKey, RuntimeManifest
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.runtime_import.checkout import Checkout, ImportProblem

BASE_CONFIG = "skyrl_train/config/ppo_base_config.yaml"

_PACKAGE = re.compile(r"#\s*@package\s+(\S+)")
_ENTRY = re.compile(r"(?:optional\s+|override\s+)*(?P<group>[^@\s]+)(?:@(?P<package>\S+))?")
_REFERENCE = re.compile(r"\$\{([a-z_][\w.]*)\}")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_TYPES = {bool: "bool", int: "int", float: "float", str: "str", list: "list", dict: "map"}
_WIDER = {"bool": {"bool|int"}, "int": {"float", "bool|int"}, "str": {"str|list"}, "list": {"str|list"}}
"""Type of a default -> types that take it and more."""
_MAX_REFERENCES = 10


class BaseConfig:
    """The composed configuration.

    Attributes:
        tree: nested mappings as the files write them, interpolations unresolved.
        places: the files that were read, relative to the checkout.
    """

    def __init__(self, tree: dict[str, Any], places: tuple[str, ...]) -> None:
        """Hold what `read_base_config` read."""
        self.tree = tree
        self.places = places

    def leaves(self) -> dict[str, Any]:
        """Return dotted path -> value of every key; an empty mapping is a value."""
        return dict(_leaves(self.tree, ""))


def read_base_config(checkout: Checkout) -> BaseConfig:
    """Read the base configuration and the group files that its defaults list names.

    Raises:
        ImportProblem: the checkout has no such file, or a defaults list that is not understood.
        DocumentError: a file is not plain YAML.
    """
    place = checkout.find(BASE_CONFIG)
    if place is None:
        raise ImportProblem(
            f"{checkout.root}: there is no {BASE_CONFIG}, here or in skyrl-train. Give the folder of a MarinSkyRL "
            "checkout"
        )
    content = load_yaml_mapping(checkout.read(place).encode(), source=place)
    defaults = content.pop("defaults", [])
    if not isinstance(defaults, list):
        raise ImportProblem(f"{place}: `defaults` is no list. Restore the file of the commit")
    if "_self_" not in defaults:
        defaults = ["_self_", *defaults]
    tree: dict[str, Any] = {}
    places = [place]
    for entry in defaults:
        if entry == "_self_":
            _merge(tree, content)
        else:
            file, package, group = _group_file(entry, place, checkout)
            _merge(tree, _packed(group, package))
            places.append(file)
    return BaseConfig(tree, tuple(places))


def recipe_keys(base: BaseConfig, pinned: RuntimeManifest) -> dict[str, RecipeKey]:
    """Return what the base configuration says of each key, in the form of a manifest.

    The file tells type, default and whether null is allowed. What it cannot tell - who owns a key,
    the type where the default is null, a type that is wider than the default - stays as `pinned`
    has it; a key that is new there belongs to the recipe, or to nobody where the launcher does not
    read its section.
    """
    leaves = base.leaves()
    return {path: _key(path, leaves, pinned) for path in sorted(leaves)}


def _key(path: str, leaves: dict[str, Any], pinned: RuntimeManifest) -> RecipeKey:
    known = pinned.recipe_keys.get(path)
    value = leaves[path]
    facts: dict[str, Any] = {}
    target = _target(path, leaves)
    inferred = value is None or (isinstance(value, str) and "${" in value) or value_has_interpolation(value)
    if isinstance(value, str) and "${" in value and target is None:
        found = "str" if not _REFERENCE.fullmatch(value) else "any"
    else:
        found = "any" if target is None else _TYPES[type(target)]
    if known is not None and (found == "any" or known.type in _WIDER.get(found, ())):
        found = known.type
    facts["type"] = found
    if target is None and (value is None or _REFERENCE.fullmatch(str(value)) is not None):
        facts["nullable"] = value is None or (known is not None and known.nullable) or _is_null(path, leaves)
    if known is None or "default" in known.model_fields_set:
        facts["default"] = _frozen(value)
    read = path.partition(".")[0] in pinned.recipe_top_level
    facts["owner"] = known.owner if known is not None else "recipe" if read else "dropped"
    if found == "map" and any(pattern in f".{path}" for pattern in pinned.open_path_patterns or ()):
        facts["open"] = True
    facts["inferred"] = inferred
    return RecipeKey(**{name: fact for name, fact in facts.items() if fact is not False or name == "default"})


def value_has_interpolation(value: Any) -> bool:
    """Whether a list holds an interpolation, so that its type is only what its use shows."""
    return isinstance(value, list) and any(isinstance(item, str) and "${" in item for item in value)


def _target(path: str, leaves: dict[str, Any]) -> Any:
    """The value at `path` with references followed; a mapping for a section, None where it is not known."""
    for _ in range(_MAX_REFERENCES):
        value = leaves.get(path)
        reference = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
        if reference is None:
            if value is None and any(leaf.startswith(f"{path}.") for leaf in leaves):
                return {}
            return None if isinstance(value, str) and "${" in value else value
        path = reference[1]
    return None


def _is_null(path: str, leaves: dict[str, Any]) -> bool:
    for _ in range(_MAX_REFERENCES):
        value = leaves.get(path)
        reference = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
        if reference is None:
            return value is None and path in leaves
        path = reference[1]
    return False


def _group_file(entry: Any, place: str, checkout: Checkout) -> tuple[str, str, dict[str, Any]]:
    """File, package and content of one entry of the defaults list."""
    parts = list(entry.items()) if isinstance(entry, dict) else []
    match = _ENTRY.fullmatch(parts[0][0]) if len(parts) == 1 else None
    if match is None or not isinstance(parts[0][1], str):
        raise ImportProblem(
            f"{place}: the entry {entry!r} of `defaults` is not `group: file` or `group@package: file`. "
            "Enter its keys in the manifest by hand, and leave the entry out"
        )
    group, name = match["group"].strip("/"), parts[0][1]
    file = (PurePosixPath(place).parent / group / f"{name.removesuffix('.yaml')}.yaml").as_posix()
    if not (checkout.root / file).exists():
        raise ImportProblem(
            f"{file}: {place} names this file, and there is none. Restore the file of the commit"
        )
    text = checkout.read(file)
    content = load_yaml_mapping(text.encode(), source=file) if _has_content(text) else {}
    if "defaults" in content:
        raise ImportProblem(
            f"{file}: a group with a `defaults` list of its own is not read. Write its keys out"
        )
    header = _PACKAGE.search(text.split("\n\n")[0])
    package = match["package"] or (header[1] if header else "_group_")
    names = {"_group_": group.replace("/", "."), "_global_": ""}
    return file, names.get(package, package), content


def _has_content(text: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


def _packed(content: dict[str, Any], package: str) -> dict[str, Any]:
    for name in reversed(package.split(".") if package else []):
        content = {name: content}
    return content


def _merge(into: dict[str, Any], new: dict[str, Any]) -> None:
    for name, value in new.items():
        old = into.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            _merge(old, value)
        else:
            into[name] = value


def _leaves(tree: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if not _PLAIN_KEY.fullmatch(name):
            raise ImportProblem(
                f"{BASE_CONFIG}: the key {name[:80]!r} is no plain word. Enter it in the manifest by hand"
            )
        path = f"{prefix}{name}"
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{path}.")
        else:
            yield path, value


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
