"""One case of the catalogue: a document with one cause of failure, and what preflight says of it."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.documents.yaml_writer import dump_yaml
from tools.launcher.preflight.testing.subjects import DELETED, changed, document

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "catalogue" / "cases"
CARDS = ROOT / "tests" / "catalogue" / "cards"

Verdict = Literal["accept", "reject", "doubtful"]
Facts = dict[str, Any]

_STRICT = ConfigDict(frozen=True, extra="forbid")
_EXAMPLES = {"smoke": "smoke-fsdp.yaml", "moe": "moe-megatron.yaml"}


class Cards(BaseModel):
    """Facts beside the document.

    Each is a name in `cards/`, a path such as `third_party/models/qwen3_0_6b`, or the fields themselves.
    """

    model_config = _STRICT

    model: str | Facts | None = None
    dataset: str | Facts | None = None
    cluster: str | Facts | None = None

    def files(self) -> dict[str, bytes]:
        """Return kind -> content of the card's file, for those that are given."""
        given = {"model": self.model, "dataset": self.dataset, "cluster": self.cluster}
        return {kind: _card(kind, facts) for kind, facts in given.items() if facts is not None}


class Edit(BaseModel):
    """Other text at every place where `find` stands."""

    model_config = _STRICT

    find: str = Field(min_length=1)
    write: str


class CatalogueCase(BaseModel):
    """A case as its file holds it. README.md explains the fields to people who add one."""

    model_config = _STRICT

    source: str = Field(min_length=1)
    """Where the failure was seen."""
    what: str = Field(min_length=1)
    """What is wrong, or why nothing is, with the arithmetic."""

    base: Literal["smoke", "moe"] = "smoke"
    changes: dict[str, Any] = {}
    """Path -> new value in the base."""
    delete: tuple[str, ...] = ()
    """Paths that the base loses."""
    edits: tuple[Edit, ...] = ()
    """Changes of the base's text, for faults of the text itself."""
    text: str | None = None
    """The whole document, instead of a base."""
    encoding: Literal["utf-8", "utf-16"] = "utf-8"
    """How the text is stored."""

    cards: Cards = Cards()
    runtime: dict[str, Any] = {}
    """Field of the runtime manifest -> other value than the pinned one."""
    ledger: dict[str, dict[str, Facts]] = {}
    """Artifact name -> version -> what the version ledger has of it; a digest that is left out is some other one."""

    expect: Verdict
    """`doubtful`: either verdict is right, but something must be said."""
    silent: str | None = None
    """Why nothing need be said of a doubtful document."""
    without_cards: Verdict | None = None
    """The verdict when the same document comes without its cards; `doubtful`: either is right."""
    errors: tuple[str, ...] = ()
    """Ids that must be among the errors."""
    warnings: tuple[str, ...] = ()
    """Ids that must be among the warnings."""
    finds: tuple[str, ...] = ()
    """Ids that must be found, as error or as warning."""
    absent: tuple[str, ...] = ()
    """Ids that must not be found."""
    not_checked: tuple[str, ...] = ()
    """Ids that cannot be decided with what is given, and must say so."""
    checklist: tuple[str, ...] = ()
    """Ids that must leave a line in the checklist."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.text is not None and (self.changes or self.delete or self.edits):
            raise ValueError("`text` is the whole document: it takes no changes, delete or edits")
        if self.edits and (self.changes or self.delete):
            raise ValueError("`edits` change the base's text, `changes` its values: give one of them")
        if self.expect == "reject" and not self.errors:
            raise ValueError("a rejected document needs `errors`")
        if self.expect == "accept" and self.errors:
            raise ValueError("an accepted document has no `errors`")
        if (self.silent is not None) and (self.expect != "doubtful" or self.finds or self.warnings):
            raise ValueError("`silent` is for a doubtful document of which nothing is said")
        if self.expect == "doubtful" and not (self.finds or self.warnings or self.silent):
            raise ValueError(
                "a doubtful document needs `finds` or `warnings`, or says why it may be `silent`"
            )
        if self.without_cards is not None and self.cards == Cards():
            raise ValueError("`without_cards` needs cards")
        return self

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id that the case names."""
        return (
            *self.errors,
            *self.warnings,
            *self.finds,
            *self.absent,
            *self.not_checked,
            *self.checklist,
        )

    @property
    def hits(self) -> tuple[str, ...]:
        """The ids that the case sees at work."""
        return (*self.errors, *self.warnings, *self.finds, *self.checklist)

    def data(self) -> bytes:
        """Return the document's bytes, as a file would hold them."""
        if self.text is not None:
            return self.text.encode(self.encoding)
        if self.changes or self.delete:
            changes = self.changes | dict.fromkeys(self.delete, DELETED)
            return dump_yaml(changed(document(self.base), changes)).decode().encode(self.encoding)
        text = _base_text(self.base)
        for edit in self.edits:
            assert edit.find in text, f"the base has no text {edit.find!r}"
            text = text.replace(edit.find, edit.write)
        return text.encode(self.encoding)

    def given_files(self) -> dict[str, bytes]:
        """Return flag of `lint` -> content of the file that it names."""
        files = {f"{kind}_card": content for kind, content in self.cards.files().items()}
        if self.runtime:
            files["runtime_manifest"] = dump_yaml({**_pinned_manifest(), **self.runtime})
        if self.ledger:
            files["ledger"] = dump_yaml({"schema": 1, "versions": _pins(self.ledger)})
        return files


def case_files() -> list[Path]:
    """Every case, in the order of their names."""
    return sorted(CASES.rglob("*.yaml"))


@functools.cache
def load_case(path: Path) -> CatalogueCase:
    """Read one case.

    Raises:
        DocumentError: for bad YAML.
        ValueError: for unknown fields and contradictions; the message names the file.
    """
    content = load_yaml_mapping(path.read_bytes(), source=path.name)
    try:
        return CatalogueCase.model_validate(content)
    except ValidationError as error:
        raise ValueError(f"{path.name}: {error}") from None


def all_cases() -> Iterator[tuple[str, CatalogueCase]]:
    """Yield (name, case) of every file."""
    for path in case_files():
        yield path.stem, load_case(path)


def _pins(ledger: dict[str, dict[str, Facts]]) -> dict[str, dict[str, Facts]]:
    others = dict.fromkeys(("recipe", "apart_from_runtime", "document", "launch"), "0" * 64)
    return {
        name: {version: {**others, **facts} for version, facts in pins.items()}
        for name, pins in ledger.items()
    }


def _card(kind: str, facts: str | Facts) -> bytes:
    if isinstance(facts, str):
        return (ROOT / f"{facts}.yaml" if "/" in facts else CARDS / f"{kind}.{facts}.yaml").read_bytes()
    return dump_yaml({"kind": kind, "name": f"lab-{kind}", **facts})


def _base_text(base: str) -> str:
    return (ROOT / "tests" / "contract" / "examples" / _EXAMPLES[base]).read_text(encoding="utf-8")


@functools.cache
def _pinned_manifest() -> dict[str, Any]:
    path = ROOT / "third_party" / "marinskyrl" / "81ae0ef7.yaml"
    return load_yaml_mapping(path.read_bytes(), source=path.name)
