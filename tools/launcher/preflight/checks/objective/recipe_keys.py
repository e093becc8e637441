"""The recipe against the tree of the base configuration: names, types, and settings without effect."""

import difflib
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.catalog.runtime_manifest import RecipeKey, RuntimeManifest
from tools.launcher.preflight.check import check
from tools.launcher.preflight.declared import declaration
from tools.launcher.preflight.findings import Finding, Severity
from tools.launcher.preflight.subject import MAX_COUNT, PreflightSubject
from tools.launcher.preflight.wording import also, below, counted, delete, listed, set_to, shown

_MERGED = ("trainer", "generator", "data", "environment", "trajectory_runner")
"""Sections whose every key the launcher looks up in the base configuration."""
_LAUNCHER_ONLY = frozenset({"data.kind"})
"""Keys below these sections that the launcher takes out before it merges (launch-document.md §4.9)."""
_REPORTED_AS_SECTIONS = frozenset({"trainer", "trainer.placement", "generator"})
"""GEO-19 says what is wrong where one of these is no mapping."""
_RECORDS = frozenset({"data.train_data", "data.val_data"})
"""Lists of paths in the base configuration; the launcher writes the records of `inputs` there (launch-document.md §2)."""
_SETS_A_MAPPING = frozenset(
    {
        *("data", "config_groups", "trainer.policy", "trainer.policy.model"),
        *("generator.sampling_params", "generator.engine_init_kwargs"),
        *("generator.trajectory_reward_shaping", "generator.trajectory_retention"),
    }
)
"""The launcher reads or writes entries of these, so null stops it as well (rl_config_translation.py@00ee4e42)."""
_MODEL_INFO = "terminal_bench.model_info"
_AGENTIC_MAPPINGS = ("terminal_bench.harbor", "terminal_bench.harbor.llm_call_kwargs", _MODEL_INFO)
_REPORTED_BY_OTHERS = frozenset({"role-plan", "context-budget", "launcher", "refused-by-marin"})
"""Owners whose keys GEO-01 and GEO-18, CTX-03, OBJ-13 or CTX-16 judge in a recipe."""
_FILLED_BY_LAUNCHER = frozenset({"launcher", "launcher-if-unset", "context-budget"})
_SETTABLE = frozenset({"recipe", "launcher-if-unset", "role-plan"})
_NOT_READ = ("dropped", "computed")
_QUOTED_WORDS = "trainer.debug_mode"
"""OBJ-19 explains its boolean: YAML reads `off` as false."""

_ACCEPTS: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "list": (list,),
    "map": (dict,),
    "str|list": (str, list),
    "bool|int": (bool, int),
    "any": (bool, int, float, str, list, dict),
}
_WANTED = {
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "list": "a list",
    "map": "a mapping",
    "str|list": "text or a list",
    "bool|int": "true, false or an integer",
    "any": "a value",
}
_KINDS = {
    bool: "a boolean",
    int: "an integer",
    float: "a float",
    str: "text",
    list: "a list",
    dict: "a mapping",
}
_NUMBER = re.compile(r"[-+]?(\d{1,30}|\d{0,30}\.\d{1,30}|\d{1,30}\.)([eE][-+]?\d{1,3})?", re.ASCII)
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9_./:+-]{1,80}")
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

_MOST_FINDINGS = 50
_MOST_SUGGESTIONS = 20
_LONGEST_NAME = 100
"""Bounds of what is said about one document, and of the search for near names."""


class _Setting(NamedTuple):
    """A value of the recipe and what the tree has at its place."""

    path: str
    known: RecipeKey | dict[str, Any]
    """The key, or the section with what is below it."""
    value: Any


@check(
    "OBJ-04",
    "every recipe key exists",
    area="objective",
    rule=f"each key below {', '.join(_MERGED)} is one of the base configuration's, except below open mappings. A "
    "warning where it cannot stop the launcher: a null or {}, a configuration group that may add the key, a "
    "resolved document, which is not merged again and holds the tree of its own commit, which may be wider than what is "
    "known of it",
    prevents="The launcher refuses the key after the coordinator started, or a typo changes nothing.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-04 (#93), contract runtime-facts.md §6; the launcher",
)
def obj_04(subject: PreflightSubject) -> Iterator[Finding]:
    manifest = subject.manifest()
    if manifest.open_roots is None or manifest.open_path_patterns is None:
        raise MissingFact("a runtime manifest with open_roots and open_path_patterns")
    severity: Severity = "error"
    doubt = ""
    groups = subject.get("skyrl.config_groups")
    if not subject.source_form:
        severity, doubt = "warning", "The trainer reads no such key"
    elif isinstance(groups, dict) and groups:
        severity, doubt = (
            "warning",
            f"Only the configuration group {listed(sorted(map(str, groups)))} could add it",
        )
    unknown = sorted(_unknown(subject), key=lambda item: item[0])
    for place, (path, value) in enumerate(unknown[:_MOST_FINDINGS]):
        near = _nearest(path, manifest) if place < _MOST_SUGGESTIONS else None
        parent = path.rpartition(".")[0]
        hint = f"did you mean {near}?" if near else f"{parent or 'skyrl'} has {_children(parent, manifest)}"
        empty = _is_empty(value)
        written = "" if isinstance(value, dict | list) else f"={shown(value)}"
        where, remove = _origin(subject, path)
        yield Finding(
            path=f"skyrl.{path}",
            message=f"{where}{path}{written}: the runtime has no such key; {hint}"
            + _after(hint, "The launcher skips null and {}" if empty else doubt),
            repair=remove if near is None else _moved(subject, path, value, near, remove),
            severity="warning" if empty else severity,
        )
    if len(unknown) > _MOST_FINDINGS:
        yield Finding(
            path="skyrl",
            message=f"{counted(len(unknown) - _MOST_FINDINGS, 'more key')} that the runtime does not have",
            repair="delete the keys that the runtime does not have",
            severity=severity,
        )


@check(
    "OBJ-11",
    "every recipe key is read",
    area="objective",
    rule="top-level keys are among those the launcher reads, and no key is one that it drops; a warning for a key "
    "that the trainer computes itself",
    prevents="A section or a mis-indented key is dropped without a message, and the default runs.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-11 (new), contract runtime-facts.md §6; nobody checks it",
)
def obj_11(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.source_form:
        return
    manifest, skyrl = subject.manifest(), _skyrl(subject)
    dropped = [name for name in skyrl if name not in manifest.recipe_top_level]
    for place, name in enumerate(dropped[:_MOST_FINDINGS]):
        path = below("skyrl", name).removeprefix("skyrl.")
        near = _nearest(path, manifest) if place < _MOST_SUGGESTIONS else None
        value = skyrl[name]
        hint = f"did you mean {near}?" if near else f"it reads {listed(manifest.recipe_top_level)}"
        where, remove = _origin(subject, path)
        yield Finding(
            path=f"skyrl.{path}",
            message=f"{where}{path}: the launcher drops it without a message; {hint}",
            repair=remove if near is None else _moved(subject, path, value, near, remove),
        )
    owned = [(path, owner) for owner in _NOT_READ for path in manifest.recipe_paths_of.get(owner, ())]
    for path, owner in owned:
        read = path.partition(".")[0] in manifest.recipe_top_level
        found = declaration(subject, path) if read else None
        if found is None or _is_empty(found.value):
            continue
        computed = owner == "computed"
        why = "the trainer computes it and overwrites this" if computed else "the launcher drops it"
        yield Finding(
            path=f"skyrl.{path}",
            message=f"{found.where}{path}={found.written}: {why}",
            repair=found.repair,
            severity="warning" if computed else "error",
        )


@check(
    "OBJ-12",
    "no null where a default is set",
    area="objective",
    rule="no null and no {} at a path whose value in the base configuration is neither",
    prevents="The launcher skips them: a default cannot be unset this way.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-12 (new), contract runtime-facts.md §6; nobody checks it",
)
def obj_12(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.source_form:
        return
    for path, known, value in _settings(subject):
        if not _is_empty(value) or path in _REPORTED_AS_SECTIONS | _SETS_A_MAPPING:
            continue
        if isinstance(known, RecipeKey):
            unset = "default" not in known.model_fields_set or _is_empty(known.default)
            if unset or known.owner in _FILLED_BY_LAUNCHER:
                continue
            stays = f"the default {_plain(known.default)} stays"
        elif isinstance(known, dict) and (
            value is None or path not in _MERGED
        ):  # Marin renders empty sections
            stays = "the defaults below it stay"
        else:
            continue
        where, remove = _origin(subject, path)
        if subject.planned is None:
            remove = delete(f"skyrl.{_left_empty_without(subject, path)}")
        yield Finding(
            path=f"skyrl.{path}",
            message=f"{where}{path}={'null' if value is None else '{}'}, which has no effect: {stays}",
            repair=remove,
            severity="warning",
        )


@check(
    "OBJ-20",
    "recipe values have the type of the base configuration",
    area="objective",
    rule="booleans, integers, text, lists and mappings are what the base configuration has there; a float may be "
    "written as an integer; text with ${ is not judged. Where the type is only inferred from use, a number or "
    "boolean in quotes is an error and everything else a warning",
    prevents="Nobody converts: '16' is compared with 16, 'false' counts as true, 1e-6 in quotes stops the optimizer.",
    inputs=("spec", "runtime"),
    source="contract skyrl-keys.tsv, cases n192 and n207; the trainer, late",
)
def obj_20(subject: PreflightSubject) -> Iterator[Finding]:
    source_form = subject.source_form
    wrong = 0
    for setting in _settings(subject):
        path, known, value = setting
        if _is_interpolation(value) or (source_form and _skipped_by_launcher(setting)):
            continue
        if isinstance(known, dict) or path in _SETS_A_MAPPING:
            found = None if path in _REPORTED_AS_SECTIONS else _no_mapping(subject, setting)
        elif (
            (source_form and known.owner in _REPORTED_BY_OTHERS)
            or known.owner == "role-plan"
            or value is None
        ):
            continue
        else:
            found = _wrong_type(subject, setting, known)
        if found is not None:
            wrong += 1
            yield found
            if wrong == _MOST_FINDINGS:
                return
    if source_form:
        yield from _wrong_launcher_keys(subject)


@check(
    "CTX-16",
    "the chat-transport switches are left alone",
    area="context",
    rule="no path is set that Marin refuses in a recipe",
    prevents="Refused at build: task sessions do not support them.",
    inputs=("spec", "runtime"),
    source="catalogue CTX-16 (#89), contract launch-document.md §7; Marin from 0.2.170 on",
)
def ctx_16(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.source_form:
        return
    for path in subject.manifest().recipe_paths_of.get("refused-by-marin", ()):
        found = declaration(subject, path)
        if found is not None and found.value is not None:
            yield Finding(
                path=f"skyrl.{path}",
                message=f"{found.where}{path}={found.written}: Marin refuses it, task sessions do not support it",
                repair=found.repair,
            )


def _after(sentence: str, more: str) -> str:
    return more and (f" {more}" if sentence.endswith("?") else f". {more}")


def _skyrl(subject: PreflightSubject) -> dict[str, Any]:
    skyrl = subject.get("skyrl")
    return skyrl if isinstance(skyrl, dict) else {}


def _settings(subject: PreflightSubject) -> list[_Setting]:
    """Return the sections and keys of the merged sections, without unknown names."""
    manifest, skyrl = subject.manifest(), _skyrl(subject)
    settings: list[_Setting] | None = subject.derived.get(__name__)
    if settings is None:
        settings = [
            _Setting(section, manifest.recipe_tree.get(section, {}), skyrl[section])
            for section in _MERGED
            if section in skyrl
        ]
        settings += (
            _Setting(f"{path}.{name}", names[name], content)
            for path, names, value in _mappings(subject)
            for name, content in value.items()
            if name in names
        )
        subject.derived[__name__] = settings
    return settings


def _unknown(subject: PreflightSubject) -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of the names that are not in the tree and not below an open mapping.

    What a recipe has at the top is OBJ-11's.
    """
    manifest = subject.manifest()
    if not subject.source_form:
        sections = {*manifest.recipe_tree, *manifest.recipe_top_level, *(manifest.open_roots or ())}
        yield from (
            (below("skyrl", name).removeprefix("skyrl."), value)
            for name, value in _skyrl(subject).items()
            if name not in sections
        )
    for path, names, value in _mappings(subject):
        if value.keys() <= names.keys():
            continue
        for name, content in value.items():
            place = below(path, name)
            if name not in names and place not in _LAUNCHER_ONLY and not _is_open(place, manifest):
                yield place, content


def _mappings(subject: PreflightSubject) -> Iterator[tuple[str, dict[str, Any], dict[Any, Any]]]:
    """Yield (path, what the tree has below it, value) of the closed mappings in the merged sections."""
    manifest, skyrl = subject.manifest(), _skyrl(subject)
    waiting = [(name, manifest.recipe_tree.get(name, {}), skyrl.get(name)) for name in _MERGED]
    while waiting:
        path, known, value = waiting.pop()
        names = known if isinstance(known, dict) else _names_below(known, manifest)
        if names is not None and isinstance(value, dict):
            yield path, names, value
            waiting += [
                (f"{path}.{name}", names[name], content)
                for name, content in value.items()
                if isinstance(content, dict) and name in names
            ]


def _names_below(key: RecipeKey, manifest: RuntimeManifest) -> dict[str, Any] | None:
    """The names a mapping takes: those of the section it stands for, none; None where it is open or no mapping."""
    if key.type != "map" or key.open:
        return None
    if not _is_interpolation(key.default):
        return {}
    node = _node(key.default.strip("${}"), manifest)
    return node if isinstance(node, dict) else None


def _is_open(path: str, manifest: RuntimeManifest) -> bool:
    return any(pattern in f".{path}" for pattern in manifest.open_path_patterns or ())


def _skipped_by_launcher(setting: _Setting) -> bool:
    """Null and {} in a recipe have no effect (OBJ-12), except where the launcher needs the mapping."""
    return _is_empty(setting.value) and not (setting.value is None and setting.path in _SETS_A_MAPPING)


def _no_mapping(subject: PreflightSubject, setting: _Setting) -> Finding | None:
    path, _, value = setting
    if isinstance(value, dict):
        return None
    where, remove = _origin(subject, path)
    return Finding(
        path=f"skyrl.{path}",
        message=f"{where}{path}={shown(value)}, which must be a mapping of settings",
        repair=remove,
    )


def _wrong_type(subject: PreflightSubject, setting: _Setting, key: RecipeKey) -> Finding | None:
    path, _, value = setting
    if key.type == "float" and isinstance(value, float) and math.isnan(value):
        where, remove = _origin(subject, path)
        return Finding(
            path=f"skyrl.{path}",
            message=f"{where}{path} is not a number (.nan); whatever is computed with it is none either",
            repair=remove,
        )
    other = None
    if type(value) in _ACCEPTS[key.type]:
        elements = isinstance(value, list) and path not in _RECORDS
        other = _other_element(value, key.default) if elements else None
        if other is None:
            return None
    elif path == _QUOTED_WORDS and isinstance(value, bool):
        return None
    seen, wanted = _is(value), _WANTED[key.type]
    if other is not None:
        seen, wanted = (
            f" holds {shown(other)}",
            f"a list of {'numbers' if _is_number(key.default[0]) else 'text'}",
        )
    words = _known_words(subject, path) if key.type == "str" else ()
    meant = _meant(value, key.type) if not words else None
    certain = not key.inferred or (isinstance(value, str) and meant is not None)
    where, remove = _origin(subject, path)
    quoting = isinstance(value, bool) and key.type == "str"
    return Finding(
        path=f"skyrl.{path}",
        message=f"{where}{path}{seen}; the trainer wants {wanted}"
        + (". YAML reads off, no, on and yes as booleans; quote the text" if quoting else "")
        + ("" if certain else ", as far as its use shows")
        + (f". Known: {listed(words)}" if words else ""),
        repair=remove
        if subject.planned is not None or (meant is None and not words)
        else set_to(f"skyrl.{path}", *(words or (meant,))),
        severity="error" if certain else "warning",
    )


def _known_words(subject: PreflightSubject, path: str) -> tuple[str, ...]:
    """The words of a setting that has few; quoting a number there would give no word."""
    manifest, profile = subject.manifest(), subject.get("runtime.profile")
    provided = manifest.strategy_of_profile.get(profile) if isinstance(profile, str) else None
    registries: dict[str, tuple[str | None, ...]] = {
        "trainer.strategy": manifest.strategies if provided is None else (provided,),
        "generator.backend": manifest.generator_backends,
        "trainer.algorithm.advantage_estimator": manifest.placeable_estimators,
        "trainer.algorithm.policy_loss_type": manifest.policy_losses,
        "trainer.algorithm.loss_reduction": manifest.loss_reductions,
        "environment.env_class": manifest.env_classes,
    }
    known = registries.get(path) or manifest.recipe_enums.get(path, ())
    return tuple(word for word in known if word is not None)


def _wrong_launcher_keys(subject: PreflightSubject) -> Iterator[Finding]:
    """Types of what the launcher itself reads at the top of the recipe, where no other check does."""
    skyrl = _skyrl(subject)
    for path in ("config_groups", "terminal_bench"):
        value = skyrl.get(path)
        if isinstance(value, dict) or path not in skyrl or (value is None and path not in _SETS_A_MAPPING):
            continue
        where, remove = _origin(subject, path)
        yield Finding(
            path=f"skyrl.{path}",
            message=f"{where}{path}={shown(value)}, which must be a mapping",
            repair=remove,
        )
    for path in _AGENTIC_MAPPINGS:
        value = subject.get(f"skyrl.{path}")
        # Lengths are written into these; only a null model_info is replaced.
        if (
            not subject.declares(f"skyrl.{path}")
            or isinstance(value, dict)
            or (not value and path == _MODEL_INFO)
        ):
            continue
        where, remove = _origin(subject, path)
        yield Finding(
            path=f"skyrl.{path}",
            message=f"{where}{path}={shown(value)}, which must be a mapping",
            repair=remove,
        )
    groups = skyrl.get("config_groups")
    for group, name in groups.items() if isinstance(groups, dict) else ():
        if not isinstance(name, str):
            path = below("config_groups", group)
            where, remove = _origin(subject, path)
            yield Finding(
                path=f"skyrl.{path}",
                message=f"{where}{path}{_is(name)}; the launcher wants the name of a file of the group",
                repair=remove,
            )
    path, value = "model_num_attention_heads", skyrl.get("model_num_attention_heads")
    if value is not None and type(value) is not int:
        where, remove = _origin(subject, path)
        meant = _meant(value, "int")
        yield Finding(
            path=f"skyrl.{path}",
            message=f"{where}{path}{_is(value)}; the launcher wants an integer",
            repair=remove if meant is None or subject.planned is not None else set_to(f"skyrl.{path}", meant),
        )


def _is(value: Any) -> str:
    """The value and its type, to be read after its path."""
    kind = _KINDS.get(type(value), f"a {type(value).__name__}")
    return f"={kind}" if isinstance(value, list | dict) else f"={shown(value)}, {kind}"


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _other_element(value: list[Any], default: Any) -> Any:
    """The first element that is no number, or no text, where those of the default are; None where there is none."""
    first = default[0] if isinstance(default, list | tuple) and default else None
    if not (_is_number(first) or isinstance(first, str)):
        return None
    for item in value:
        fits = _is_number(item) if _is_number(first) else isinstance(item, str)
        if not fits and not _is_interpolation(item):
            return "null" if item is None else item
    return None


def _meant(value: Any, wanted: str) -> Any:
    """The value of the wanted type that the author plainly wrote another way, None where it is not plain."""
    if wanted in ("bool", "bool|int") and isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if wanted in ("int", "float", "bool|int"):
        number = float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
        if isinstance(number, float) and not math.isfinite(number):
            return None
        if isinstance(number, float) and number.is_integer() and (wanted != "float" or abs(number) >= 1):
            return int(number)
        return number if isinstance(value, str) and wanted == "float" and isinstance(number, float) else None
    return f'"{value}"' if wanted == "str" and _is_number(value) and abs(value) <= MAX_COUNT else None


def _is_interpolation(value: Any) -> bool:
    return isinstance(value, str) and "${" in value


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and not value)


def _plain(default: Any) -> str:
    return "[" + listed(default) + "]" if isinstance(default, list | tuple) else shown(default)


def _left_empty_without(subject: PreflightSubject, path: str) -> str:
    """The outermost section, below the merged ones, that would be empty if `path` went; `path` where none would."""
    parent = path.rpartition(".")[0]
    around = subject.get(f"skyrl.{parent}")
    alone = isinstance(around, dict) and len(around) == 1 and parent not in _MERGED
    return _left_empty_without(subject, parent) if alone else path


def _origin(subject: PreflightSubject, path: str) -> tuple[str, str]:
    """Start of the sentence that names the recipe part, and how to take the setting back."""
    found = declaration(subject, path) if subject.planned is not None else None
    return ("", delete(f"skyrl.{path}")) if found is None else (found.where, found.repair)


def _moved(subject: PreflightSubject, path: str, value: Any, near: str, remove: str) -> str:
    """The repair that moves the value to the near key, or only removes it where that is set already."""
    place, target = f"skyrl.{path}", f"skyrl.{near}"
    if subject.declares(target) or _is_empty(value):
        return remove
    plain = isinstance(value, bool | int | float) or (isinstance(value, str) and _PLAIN_TEXT.fullmatch(value))
    key = subject.manifest().recipe_keys.get(near)
    if key is not None and key.owner not in _SETTABLE:
        return remove
    if subject.planned is not None:
        return f"rename {path} to {near} in the recipe"
    return also(set_to(target, value), delete(place)) if plain and key else f"rename {place} to {target}"


def _children(section: str, manifest: RuntimeManifest) -> str:
    node = _node(section, manifest)
    return listed(sorted(node)) if isinstance(node, dict) and node else "no keys"


def _node(path: str, manifest: RuntimeManifest) -> Any:
    """The key or section at `path`, the whole tree for "", None where there is neither."""
    node: Any = manifest.recipe_tree
    for name in path.split(".") if path else ():
        node = node.get(name) if isinstance(node, dict) else None
    return node


def _nearest(path: str, manifest: RuntimeManifest) -> str | None:
    """The known path that an unknown one most likely means, None where nothing is near.

    In this order: a sibling with nearly its name, a key of the same name elsewhere, a sibling that
    has all its words, a sibling or key of the same section with a similar name.
    """
    parent, _, name = path.rpartition(".")
    if len(name) > _LONGEST_NAME:
        return None
    wanted = _folded(name)
    siblings = _sibling_paths(parent, manifest)
    section = path.partition(".")[0] if parent else ""
    elsewhere = _paths_by_name(manifest, section)
    return (
        _closest(wanted, siblings, 0.8)
        or elsewhere.get(wanted)
        or (_paths_by_name(manifest, "").get(wanted) if section else None)
        or _longer(wanted, siblings)
        or _closest(wanted, siblings, 0.6)
        or _closest(wanted, elsewhere, 0.8)
    )


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")


def _closest(wanted: str, paths: dict[str, str], cutoff: float) -> str | None:
    near = difflib.get_close_matches(wanted, paths, n=1, cutoff=cutoff)
    return paths[near[0]] if near else None


def _longer(wanted: str, paths: dict[str, str]) -> str | None:
    """The path whose name has every word of the wanted one, and the fewest beside."""
    words = set(wanted.split("_"))
    longer = [name for name in paths if words <= set(name.split("_"))]
    return paths[min(longer, key=lambda name: (len(name), name))] if longer else None


def _sibling_paths(parent: str, manifest: RuntimeManifest) -> dict[str, str]:
    if not parent:
        return {name: name for name in manifest.recipe_top_level}
    node = _node(parent, manifest)
    return {_folded(name): f"{parent}.{name}" for name in node} if isinstance(node, dict) else {}


def _paths_by_name(manifest: RuntimeManifest, section: str) -> dict[str, str]:
    """Last name -> path of the keys and sections that a recipe may set; those of policy and training before others."""
    known = f"paths by name: {section}"
    if known not in manifest.derived:
        manifest.derived[known] = _by_name(manifest, section)
    paths: dict[str, str] = manifest.derived[known]
    return paths


def _by_name(manifest: RuntimeManifest, section: str) -> dict[str, str]:
    paths: dict[str, str] = {}
    for path in _with_sections(manifest):
        top = path.partition(".")[0]
        if top in _MERGED and "." in path and (not section or top == section):
            paths.setdefault(_folded(path.rpartition(".")[2]), path)
    return paths


def _with_sections(manifest: RuntimeManifest) -> list[str]:
    found: dict[str, None] = {}
    for path, key in manifest.recipe_keys.items():
        if key.owner in _SETTABLE:
            while path and path not in found:
                found[path] = None
                path = path.rpartition(".")[0]
    return sorted(
        found,
        key=lambda path: (any(word in path for word in (".critic", ".ref", ".eval_")), path.count("."), path),
    )


CHECKS = (obj_04, obj_11, obj_12, obj_20, ctx_16)
