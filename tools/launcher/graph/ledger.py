"""The version ledger: what was published under each fixed version of an experiment.

`versions.lock.yaml` stands beside the experiment and is reviewed with it. `:pin` writes it; people write only
`checkpoints` and `because`. The store holds the same claim for everybody (`store/version_claims.py`).
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from tools.launcher.documents.places import Places
from tools.launcher.documents.strict_yaml import DocumentError, load_yaml
from tools.launcher.documents.yaml_writer import dump_yaml
from tools.launcher.graph.names import artifact_name_problem
from tools.launcher.graph.versions import is_mutable, version_problem

LEDGER_FILE = "versions.lock.yaml"

_FROZEN = ConfigDict(frozen=True, strict=True, extra="forbid", defer_build=True)
_SHOWN_CHARACTERS = 80


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("write one line that says why")
    return text


def _is_name(text: str) -> str:
    if problem := artifact_name_problem(text):
        raise ValueError(f"this artifact name {problem}: write one such as team/experiment")
    return text


def _is_fixed(text: str) -> str:
    problem = version_problem(text)
    if problem or is_mutable(text):
        raise ValueError(
            f"this version {problem or 'is not fixed, and what changes is never pinned'}: write YYYY.MM.DD"
        )
    return text


Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Reason = Annotated[str, AfterValidator(_one_line)]
Name = Annotated[str, AfterValidator(_is_name)]
FixedVersion = Annotated[str, AfterValidator(_is_fixed)]


class EarlierPin(BaseModel):
    """What a version was before its runtime was repinned.

    Attributes:
        recipe, runtime, launch: as in `PinnedVersion`, at that time.
        because: why the next runtime may go on from this one's checkpoints.
    """

    model_config = _FROZEN

    recipe: Digest
    runtime: Commit
    launch: Digest
    because: Reason


class PinnedVersion(BaseModel):
    """What a fixed version is.

    Attributes:
        recipe: fingerprint of the RL step.
        apart_from_runtime: the same without runtime commit, profile and resume mode.
        document: SHA-256 of what the launch document says of the recipe (`document_recipe`), for documents that
            come without their graph.
        runtime: commit of the runtime.
        launch: launch digest. It moves with the placement, which is no part of the version.
        checkpoints: by hand: another runtime may go on from this one's checkpoints.
        because: by hand: why.
        earlier: what the version was before, oldest first.
    """

    model_config = _FROZEN

    recipe: Digest
    apart_from_runtime: Digest
    document: Digest
    runtime: Commit
    launch: Digest
    checkpoints: Literal["compatible"] | None = None
    because: Reason | None = None
    earlier: tuple[EarlierPin, ...] = ()

    @model_validator(mode="after")
    def _is_explained(self) -> Self:
        if (self.checkpoints is None) != (self.because is None):
            raise ValueError("`checkpoints: compatible` and `because` stand together: write both or neither")
        return self


class VersionLedger(BaseModel):
    """All pinned versions: artifact name -> version -> what it is."""

    model_config = _FROZEN

    schema_number: Literal[1] = Field(default=1, alias="schema")
    versions: dict[Name, dict[FixedVersion, PinnedVersion]] = {}

    def pinned(self, name: str, version: str) -> PinnedVersion | None:
        """Return what `name@version` was pinned as, None if it was not."""
        return self.versions.get(name, {}).get(version)

    def with_pin(self, name: str, version: str, pin: PinnedVersion) -> "VersionLedger":
        """Return a ledger in which `name@version` is `pin`."""
        versions = {**self.versions, name: {**self.versions.get(name, {}), version: pin}}
        return VersionLedger(schema=1, versions=versions)


class RunIdentity(BaseModel):
    """What a build is, as far as the ledger asks.

    Attributes:
        recipe, apart_from_runtime, document, runtime, launch: as in `PinnedVersion`.
        starts_fresh: the run never reads a checkpoint (`trainer.resume_mode: none`).
    """

    model_config = _FROZEN

    recipe: Digest
    apart_from_runtime: Digest
    document: Digest
    runtime: str
    launch: Digest
    starts_fresh: bool


def recipe_changed(pin: PinnedVersion, *, recipe: str, apart_from_runtime: str, runtime: str) -> bool:
    """Whether a build under a pinned version learns something else than what was pinned (ART-17).

    Under another runtime commit the fingerprint moves in any case, and only what is apart from the runtime
    is compared. Whether that commit may be used is the question of `foreign_checkpoints`.
    """
    if runtime == pin.runtime:
        return recipe != pin.recipe
    return apart_from_runtime != pin.apart_from_runtime


def foreign_checkpoints(pin: PinnedVersion, *, runtime: str, starts_fresh: bool) -> bool:
    """Whether a run would go on from checkpoints of another runtime without leave to do so (ART-06)."""
    return runtime != pin.runtime and pin.checkpoints is None and not starts_fresh


def compatible_recipes(pin: PinnedVersion | None, build: RunIdentity) -> tuple[str, ...]:
    """Return the fingerprints whose place `build` may take, oldest first: those of `earlier`, and the pinned one
    if the build is an allowed repin of it."""
    if pin is None:
        return ()
    recipes = [earlier.recipe for earlier in pin.earlier]
    changed = recipe_changed(
        pin, recipe=build.recipe, apart_from_runtime=build.apart_from_runtime, runtime=build.runtime
    )
    if not changed and not foreign_checkpoints(pin, runtime=build.runtime, starts_fresh=build.starts_fresh):
        recipes.append(pin.recipe)
    return tuple(dict.fromkeys(recipe for recipe in recipes if recipe != build.recipe))


def repinned(pin: PinnedVersion | None, build: RunIdentity) -> PinnedVersion:
    """Return the entry which pins `build`; the leave that an allowed repin used goes to `earlier`.

    Args:
        pin: the present entry, if there is one. Whether it allows the build is asked before.
        build: what is pinned.
    """
    new = PinnedVersion(
        recipe=build.recipe,
        apart_from_runtime=build.apart_from_runtime,
        document=build.document,
        runtime=build.runtime,
        launch=build.launch,
    )
    if pin is None:
        return new
    if pin.recipe == build.recipe:  # Only the placement moved: what stands by hand is about the next runtime.
        by_hand = {"checkpoints": pin.checkpoints, "because": pin.because, "earlier": pin.earlier}
        return new.model_copy(update=by_hand)
    because = pin.because or "nothing is taken over: trainer.resume_mode is none"
    before = EarlierPin(recipe=pin.recipe, runtime=pin.runtime, launch=pin.launch, because=because)
    # Also on the way back to an older runtime nothing is dropped: the number of repins only grows.
    return new.model_copy(update={"earlier": (*pin.earlier, before)})


def repins(pin: PinnedVersion | None, build: RunIdentity) -> int:
    """Return how often the version was repinned, an allowed repin that `build` is counted."""
    if pin is None:
        return 0
    return len(pin.earlier) + (pin.recipe != build.recipe)


def load_ledger(data: bytes, *, source: str) -> VersionLedger:
    """Read a ledger.

    Raises:
        DocumentError: bad YAML, an entry twice, an unknown field, a digest or version that is none; names
            line, field and rule.
    """
    content = load_yaml(data, source=source)
    if content is None or (isinstance(content, dict) and "schema" not in content):
        # A build reads the file before :pin can.
        raise DocumentError(
            source, "", "the ledger has no `schema`", "Write `schema: 1`, or delete the file, then run :pin"
        )
    if not isinstance(content, dict):
        raise DocumentError(
            source,
            "",
            f"the ledger is a {type(content).__name__}, not a mapping",
            "Take back the change and run the experiment's :pin",
        )
    try:
        return VersionLedger.model_validate(_tuples(content))
    except ValidationError as error:
        problems = error.errors()
        first = problems[0]
        path = _path(first["loc"])
        place = Places(data).find(path)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise DocumentError(
            source,
            f"{place[0]}:{place[1]}" if place else "",
            f"{path or 'the file'}: {first['msg'].removeprefix('Value error, ')}{_seen(first)}{more}",
            "Correct it by hand, or take back the change and run the experiment's :pin",
        ) from None


def merged_ledgers(ledgers: dict[str, VersionLedger]) -> VersionLedger:
    """Return one ledger with the entries of several.

    Args:
        ledgers: file name -> its content.

    Raises:
        DocumentError: two of them have one version; names both.
    """
    versions: dict[str, dict[str, PinnedVersion]] = {}
    origin: dict[tuple[str, str], str] = {}
    for source, ledger in ledgers.items():
        for name, pins in ledger.versions.items():
            for version, pin in pins.items():
                other = origin.setdefault((name, version), source)
                if other != source:
                    raise DocumentError(
                        source, "", f"{name}@{version} stands in {other} as well", "Give one of the two files"
                    )
                versions.setdefault(name, {})[version] = pin
    return VersionLedger(schema=1, versions=versions)


def dump_ledger(ledger: VersionLedger, *, header: str) -> bytes:
    """Write a ledger: `header`, then names and versions in order. Equal ledgers give equal bytes."""
    content = {
        "schema": 1,
        "versions": {
            name: {version: _entry(pins[version]) for version in sorted(pins, key=_order)}
            for name, pins in sorted(ledger.versions.items())
        },
    }
    return header.encode() + dump_yaml(content)


def _entry(pin: PinnedVersion) -> dict[str, Any]:
    entry = pin.model_dump(exclude_none=True)
    entry["earlier"] = list(entry["earlier"])
    if not entry["earlier"]:
        del entry["earlier"]
    return entry


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _path(location: tuple[int | str, ...]) -> str:
    """The place of a finding as `Places` writes it, without pydantic's marks for keys."""
    path = ""
    for part in location:
        if part != "[key]":
            path += f"[{part}]" if isinstance(part, int) else f"{'.' if path else ''}{part}"
    return path


def _seen(problem: Any) -> str:
    value = problem["input"]
    if problem["type"] == "missing" or isinstance(value, dict | tuple):
        return ""
    text = repr(value)
    return f", got {text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + '…'}"


def _tuples(value: Any) -> Any:
    """Strict models take no list for a tuple, and no subclass of text for a key; YAML has only those."""
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    if isinstance(value, dict):
        return {str(key): _tuples(item) for key, item in value.items()}
    return value
