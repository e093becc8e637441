"""What is judged: a launch document, the cards beside it, and what is known of its origin."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tools.launcher.catalog.cards import ClusterCard, DatasetCard, MissingFact, ModelCard, fact
from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.documents.two_readings import Reading
from tools.launcher.graph.ledger import VersionLedger
from tools.launcher.preflight.wording import shown

if TYPE_CHECKING:  # `lint` judges documents without it, and starts faster.
    from tools.launcher.preflight.planned import PlannedFrom

MAX_COUNT = 10**9
"""Largest count that arithmetic takes: no cluster and no batch comes near it (GEO-01)."""

_MAX_DIGITS = len(str(MAX_COUNT))
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
    """Return the count that a number or its text writes, None where it writes none: what an author meant."""
    digits = isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _MAX_DIGITS
    if digits or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    return value if is_count(value) else None


def launcher_reads(value: Any) -> int | None:
    """Return the count that the launcher reads where its schema has an integer, None where it refuses.

    It takes text of digits, and no float, however whole (OmegaConf).
    """
    return None if isinstance(value, float) else readable_count(value)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PreflightSubject:
    """Input of every check. A missing card is None, never a guess.

    No pydantic model: whoever makes one has its parts from a boundary that validated them. A model would build the
    schemas of all of them, which is more than `lint` does with a document.
    """

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
    planned: "PlannedFrom | None" = None
    two_readings: tuple[Reading, ...] = ()
    """Values of the document's text that YAML 1.2 reads otherwise; a document without text has none."""

    def has(self, path: str) -> bool:
        """Whether the document holds a value other than null at `path`."""
        return self._values.get(path) is not None

    def declares(self, path: str) -> bool:
        """Whether the document holds `path` at all, be it null."""
        return path in self._values

    def get(self, path: str) -> Any:
        """Return the value at the dotted `path`, None where it is absent or null."""
        return self._values.get(path)

    def value(self, path: str, *types: type) -> Any:
        """Return the value at `path`, which must have exactly one of `types`.

        A path below `skyrl` which the document leaves out has the value of the runtime's base
        configuration, if the manifest names it.

        Raises:
            UnreadableValue: absent without default, or of another type (True is no int).
            MissingFact: absent, and there is no runtime manifest to ask.
        """
        value = self._values.get(path)
        if value is None:
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

        It takes text of digits for the integer it writes (OmegaConf); GEO-01 warns of that. Below
        `skyrl` nothing is converted. Raises like `positive`.
        """
        count = launcher_reads(self.get(path))
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

    def origin(self) -> "PlannedFrom":
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

        What was computed from the old document is not carried over. Its text is gone.
        """
        return replace(self, document=document, two_readings=())

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
    def texts(self) -> frozenset[str]:
        """Every text among the document's values, once, wherever it stands."""
        texts: set[str] = set()
        waiting: list[Any] = [self.document]
        while waiting:
            value = waiting.pop()
            if isinstance(value, str):
                texts.add(value)
            elif isinstance(value, dict):
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value
        return frozenset(texts)

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What was computed from this subject once for all checks, under the name of who computes it."""
        return {}

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
        value = self.get(f"skyrl.{interpolated[1]}")
        return self._default(f"skyrl.{interpolated[1]}") if value is None else value


def _index(mapping: dict[str, Any], prefix: str, values: dict[str, Any]) -> None:
    for key, value in mapping.items():
        if "." in key:
            continue  # no path leads there
        path = prefix + key
        values[path] = value
        if isinstance(value, dict):
            _index(value, path + ".", values)
