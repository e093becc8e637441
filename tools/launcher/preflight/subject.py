"""What is judged: a launch document, the cards beside it, and what is known of its origin."""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.catalog.cards import ClusterCard, DatasetCard, MissingFact, ModelCard, fact
from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.documents.two_readings import Reading
from tools.launcher.graph.artifact_graph import ArtifactGraph
from tools.launcher.graph.ledger import VersionLedger
from tools.launcher.preflight.wording import shown
from tools.launcher.rl.recipe import SkyRLRecipe

MAX_COUNT = 10**9
"""Largest count that arithmetic takes: no cluster and no batch comes near it (GEO-01)."""

_MAX_DIGITS = len(str(MAX_COUNT))
_ABSENT: Any = object()
_COMPOSED = ("skyrl.trainer.ckpt_path", "skyrl.trainer.export_path", "skyrl.trainer.policy.model.path")
"""Paths that composition writes; a recipe has no reason for one of them, and no author writes all."""
_INTERPOLATION = re.compile(r"\$\{([a-z][a-z0-9_.]*)\}")
"""A default which is the value of another path below `skyrl` (OmegaConf)."""


class UnreadableValue(LookupError):
    """The document has no usable value at a path; another check says why. `str()` is the path and the wish."""


def is_count(value: Any) -> bool:
    """Whether `value` is an integer that arithmetic takes."""
    return type(value) is int and 0 < value <= MAX_COUNT


def readable_count(value: Any) -> int | None:
    """Return the count that a number or its text writes, None where it writes none."""
    digits = isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _MAX_DIGITS
    if digits or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    return value if is_count(value) else None


class PlannedFrom(BaseModel):
    """The typed origin of a document that was rendered here."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    graph: ArtifactGraph
    prefix: str
    """`MARIN_PREFIX` of the target cluster."""
    recipe: SkyRLRecipe
    overrides: dict[str, str] = {}
    """Artifact name -> version asked for with --override."""
    required_fixes: tuple[str, ...] = ()
    """Ids of the back end's fixes that the experiment relies on."""
    stage: str | None = None
    """Where a launch ends that asks for no stage; None: not known."""
    launch: str | None = None
    """Digest of the document that the graph renders to. A proposal's document is another one, and the graph is not its."""


class PreflightSubject(BaseModel):
    """Input of every check. A missing card is None, never a guess."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", ignored_types=(cached_property,))

    document: dict[str, Any]
    """The launch document in source form, as loaded."""
    model: ModelCard | None = None
    """Card of the policy's model."""
    train_dataset: DatasetCard | None = None
    validation_dataset: DatasetCard | None = None
    cluster: ClusterCard | None = None
    runtime: RuntimeManifest | None = None
    ledger: VersionLedger | None = None
    """What was published before under fixed versions; an empty one knows of nothing, None is not known."""
    planned: PlannedFrom | None = None
    two_readings: tuple[Reading, ...] = ()
    """Values of the document's text that YAML 1.2 reads otherwise; a document without text has none."""

    def has(self, path: str) -> bool:
        """Whether the document holds a value other than null at `path`."""
        return self._find(path) not in (_ABSENT, None)

    def declares(self, path: str) -> bool:
        """Whether the document holds `path` at all, be it null."""
        return self._find(path) is not _ABSENT

    def get(self, path: str) -> Any:
        """Return the value at the dotted `path`, None where it is absent or null."""
        value = self._find(path)
        return None if value is _ABSENT else value

    def value(self, path: str, *types: type) -> Any:
        """Return the value at `path`, which must have exactly one of `types`.

        A path below `skyrl` which the document leaves out has the value of the runtime's base
        configuration, if the manifest names it.

        Raises:
            UnreadableValue: absent without default, or of another type (True is no int).
            MissingFact: absent, and there is no runtime manifest to ask.
        """
        value = self._find(path)
        if value is _ABSENT or value is None:
            value = self._default(path)
        if type(value) not in types:
            wish = " or ".join(kind.__name__ for kind in types)
            raise UnreadableValue(f"{path} as {wish}, it is {shown(value)}")
        return value

    def positive(self, path: str) -> int:
        """Return the positive integer at `path`. Raises like `value`, and for zero, less, and more than MAX_COUNT."""
        value: int = self.value(path, int)
        if not 0 < value <= MAX_COUNT:
            raise UnreadableValue(f"{path} as a positive integer up to {MAX_COUNT}, it is {shown(value)}")
        return value

    def launcher_count(self, path: str) -> int:
        """Return the count at `path`, as the launcher reads a field which its schema types as int.

        It takes whole floats and text of digits for the integer they write (OmegaConf); GEO-01
        warns of that. Below `skyrl` nothing is converted. Raises like `positive`.
        """
        count = readable_count(self.get(path))
        return self.positive(path) if count is None else count

    def integer(self, path: str) -> int:
        """Return the integer at `path`. Raises like `value`, and beyond MAX_COUNT in either direction."""
        value: int = self.value(path, int)
        if abs(value) > MAX_COUNT:
            raise UnreadableValue(f"{path} as an integer up to {MAX_COUNT}, it is {shown(value)}")
        return value

    def flag(self, path: str) -> bool:
        """Return the boolean at `path`. Raises like `value`."""
        value: bool = self.value(path, bool)
        return value

    def text(self, path: str) -> str:
        """Return the text at `path`. Raises like `value`."""
        value: str = self.value(path, str)
        return value

    @cached_property
    def source_form(self) -> bool:
        """Whether this is what Marin hands to the launcher, not what the launcher makes of it.

        A resolved document rightly holds every derived and launcher-owned value
        (contract, launch-document.md §2). One without its entry point is known by those values.
        """
        skyrl = self.get("skyrl")
        marked = isinstance(skyrl, dict) and ("context_budget" in skyrl or "config_groups" in skyrl)
        if marked or self.get("runtime.entrypoint") not in (None, ""):
            return marked
        return not all(self.has(path) for path in _COMPOSED)

    @cached_property
    def entrypoint(self) -> str:
        """Registered name of the training program. Raises like `value`."""
        module = self.get("runtime.entrypoint")
        if isinstance(module, str) and module:  # resolved form
            names = [name for name, entry in self.manifest().entrypoints.items() if entry.module == module]
            if not names:
                raise UnreadableValue(f"runtime.entrypoint as a registered module, it is {shown(module)}")
            return names[0]
        if not self.has("skyrl.entrypoint"):
            return self.manifest().default_entrypoint
        return self.text("skyrl.entrypoint")

    @cached_property
    def agentic_section(self) -> str:
        """Where the settings of sandboxed agents are: composition renames the section of the recipe."""
        return "skyrl.terminal_bench" if self.source_form else "skyrl.terminal_bench_config"

    @cached_property
    def has_agentic_section(self) -> bool:
        """Whether the document has those settings; an empty section counts only where an author wrote it."""
        section = self.get(self.agentic_section)
        return bool(section) or (self.source_form and section is not None)

    def data_sources(self, *lists: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (path, record) of the data sources; ART-14 reports what is no record.

        Args:
            lists: `train_data`, `validation_data`; both if none is named.
        """
        for name in lists or ("train_data", "validation_data"):
            records = self.get(f"inputs.{name}")
            for index, record in enumerate(records if isinstance(records, list) else []):
                if isinstance(record, dict):
                    yield f"inputs.{name}[{index}]", record

    def origin(self) -> PlannedFrom:
        """Return the typed origin. Raises MissingFact for a document that was not built here."""
        if self.planned is None:
            raise MissingFact("the artifact graph, which a document alone does not carry")
        return self.planned

    def model_fact(self, name: str) -> Any:
        """Return a fact of the model card. Raises MissingFact."""
        return fact(self.model, name, "model")

    def train_fact(self, name: str) -> Any:
        """Return a fact of the training data's card. Raises MissingFact."""
        return fact(self.train_dataset, name, "dataset")

    def validation_fact(self, name: str) -> Any:
        """Return a fact of the validation data's card. Raises MissingFact."""
        return fact(self.validation_dataset, name, "dataset")

    def cluster_fact(self, name: str) -> Any:
        """Return a fact of the cluster card. Raises MissingFact."""
        return fact(self.cluster, name, "cluster")

    def manifest(self) -> RuntimeManifest:
        """Return the runtime manifest. Raises MissingFact if there is none."""
        if self.runtime is None:
            raise MissingFact("a runtime manifest")
        return self.runtime

    def with_document(self, document: dict[str, Any]) -> "PreflightSubject":
        """Return a subject with the same facts and another document.

        Not `model_copy`, which would carry over what was computed from the old document. Its text is gone.
        """
        of_the_old = ("document", "two_readings")
        facts = {name: getattr(self, name) for name in type(self).model_fields if name not in of_the_old}
        return PreflightSubject(document=document, **facts)

    def with_values(self, values: Mapping[str, Any]) -> "PreflightSubject":
        """Return a subject whose document has `values`, by path without list indices; what stays is shared."""
        result = dict(self.document)
        for path, value in values.items():
            *sections, leaf = path.split(".")
            node = result
            for section in sections:
                inner = node.get(section)
                node[section] = dict(inner) if isinstance(inner, dict) else {}
                node = node[section]
            node[leaf] = value
        return self.with_document(result)

    @cached_property
    def _values(self) -> dict[str, Any]:
        """Dotted path -> value, for every mapping and leaf: checks ask some thousand times."""
        values: dict[str, Any] = {}
        _index(self.document, "", values)
        return values

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What was computed from this subject once for all checks, under the name of who computes it."""
        return {}

    def _find(self, path: str) -> Any:
        return self._values.get(path, _ABSENT)

    def _default(self, path: str) -> Any:
        section, _, rest = path.partition(".")
        if section != "skyrl":
            raise UnreadableValue(f"{path}, which is missing")
        key = self.manifest().recipe_keys.get(rest)
        if key is None or "default" not in key.model_fields_set:
            raise UnreadableValue(f"{path}, which is missing and has no default in the runtime manifest")
        interpolated = _INTERPOLATION.fullmatch(key.default) if isinstance(key.default, str) else None
        if interpolated is None:
            return list(key.default) if isinstance(key.default, tuple) else key.default
        value = self._find(f"skyrl.{interpolated[1]}")
        return value if value not in (_ABSENT, None) else self._default(f"skyrl.{interpolated[1]}")


def _index(mapping: dict[str, Any], prefix: str, values: dict[str, Any]) -> None:
    for key, value in mapping.items():
        if "." in key:
            continue  # no path leads there
        path = prefix + key
        values[path] = value
        if isinstance(value, dict):
            _index(value, path + ".", values)
