"""What `lint` judges with: the documents, the cards that were given, and the runtime manifest of each."""

import os
import stat
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tools.launcher.catalog.cards import ClusterCard, DatasetCard, HfExport, ModelCard
from tools.launcher.catalog.load import (
    load_cluster_card,
    load_dataset_card,
    load_model_card,
    load_runtime_manifest,
)
from tools.launcher.catalog.runtime_manifest import RuntimeManifest
from tools.launcher.cli.shipped_manifests import age, file_name, load_shipped, shipped_files
from tools.launcher.cli.typed_paths import typed_path
from tools.launcher.documents.strict_yaml import MAX_BYTES, DocumentError, too_large
from tools.launcher.documents.two_readings import two_readings
from tools.launcher.graph.ledger import VersionLedger, load_ledger, merged_ledgers
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import listed, shown

STANDARD_INPUT = "-"

_KIND_OF_FILE = {
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a pipe",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISSOCK: "a socket",
}


class WrongUsage(Exception):
    """The command line names what cannot be used. `str()` says which and what to do."""


class Choice[Item](NamedTuple):
    """One of several cards or manifests, and why that one."""

    item: Item | None
    file: str
    why: str


class Chosen(NamedTuple):
    """A document with what it is judged by."""

    subject: PreflightSubject
    runtime: Choice[RuntimeManifest]
    cards: dict[str, Choice[Any]]
    """Kind of card -> the one that is used."""


def printable_path(path: str) -> str:
    """Return a file's name as text, whatever bytes it has."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def require_files(paths: Sequence[str]) -> None:
    """Raise WrongUsage for a document that does not exist, and for standard input named twice."""
    for path in paths:
        if path != STANDARD_INPUT and not os.path.lexists(typed_path(path)):
            raise WrongUsage(f"{printable_path(path)}: there is no such file. Correct the path")
    if list(paths).count(STANDARD_INPUT) > 1:
        raise WrongUsage(f"standard input is named twice. Give {STANDARD_INPUT} once")


def read_document(path: str) -> bytes:
    """Return the bytes of a document.

    Raises:
        DocumentError: the file cannot be read, is larger than MAX_BYTES, or is none: a pipe may never end.
    """
    source = printable_path(path)
    if path == STANDARD_INPUT:
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise too_large(source, f"more than {MAX_BYTES}")
        return data
    if not path:
        raise DocumentError(source, "", "the path is empty", "Name a file, or - for standard input")
    try:
        # Of a pipe that nobody writes to, even opening would wait.
        descriptor = os.open(typed_path(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            mode = status.st_mode
            for is_kind, name in _KIND_OF_FILE.items():
                if is_kind(mode):
                    raise DocumentError(
                        source,
                        "",
                        f"this is {name}, not a file",
                        "Write its content into a file",
                    )
            if status.st_size > MAX_BYTES:
                raise too_large(source, str(status.st_size))
            return file.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise DocumentError(source, "", "this is a folder, not a file", "Name the files in it") from None
    except OSError as error:
        raise DocumentError(
            source, "", f"the file cannot be read: {error.strerror}", "Correct the path or its permissions"
        ) from None


class LintInputs:
    """The cards and manifests of one call."""

    def __init__(
        self,
        *,
        runtime_manifests: Sequence[str],
        model_cards: Sequence[str],
        cluster_cards: Sequence[str],
        dataset_cards: Sequence[str],
        ledgers: Sequence[str] = (),
    ) -> None:
        """Read every file that is named. Raises WrongUsage for one that cannot be used."""
        self._ledger = _merged(_all_read(ledgers, load_ledger))
        self._runtimes = _all_read(runtime_manifests, load_runtime_manifest)
        self._models = _all_read(model_cards, load_model_card)
        self._clusters = _all_read(cluster_cards, load_cluster_card)
        self._datasets = _all_read(dataset_cards, load_dataset_card)

    def choose(self, document: dict[str, Any], data: bytes) -> Chosen:
        """Return what `document`, read from `data`, is judged by.

        A single card of a kind serves every document. Of several, the one is taken that a value of
        the document names exactly: a model or dataset card by the identity of its export, a
        cluster card by the path of its configuration. Nothing is concluded from a likeness of names.
        """
        blank = PreflightSubject(document=document)
        runtime = self._runtime(blank.get("runtime.launcher_commit"))
        model = _only_or_named(
            self._models, _identity, blank.get("inputs.model.identity"), "inputs.model.identity"
        )
        cluster = _only_or_named(
            self._clusters, lambda card: card.config, blank.get("iris.cluster_config"), "iris.cluster_config"
        )
        train, validation = (self._dataset(blank, name) for name in ("train_data", "validation_data"))
        subject = PreflightSubject(
            document=document,
            runtime=runtime.item,
            model=model.item,
            cluster=cluster.item,
            train_dataset=train.item,
            validation_dataset=validation.item,
            ledger=self._ledger,
            two_readings=two_readings(data),
        )
        cards: dict[str, Choice[Any]] = {
            "model": model,
            "cluster": cluster,
            "train_dataset": train,
            "validation_dataset": validation,
        }
        return Chosen(subject, runtime, cards)

    def _dataset(self, subject: PreflightSubject, records: str) -> Choice[DatasetCard]:
        identities = {
            shown(record.get("identity")): record.get("identity")
            for _, record in subject.data_sources(records)
        }
        only = next(iter(identities.values())) if len(identities) == 1 else None
        return _only_or_named(self._datasets, _identity, only, f"the identity of inputs.{records}")

    def _runtime(self, commit: Any) -> Choice[RuntimeManifest]:
        if len(self._runtimes) == 1:
            return Choice(self._runtimes[0][1], self._runtimes[0][0], "it was given")
        for given, manifest in self._runtimes:
            if manifest.commit == commit:
                return Choice(
                    manifest, given, "of those given, it has the document's runtime.launcher_commit"
                )
        if self._runtimes:
            given, manifest = self._runtimes[-1]
            return Choice(
                manifest, given, "the last one given; none has the document's runtime.launcher_commit"
            )
        if isinstance(commit, str):
            for file in shipped_files():
                if file.name == file_name(commit) and (manifest := _shipped(file)).commit == commit:
                    return Choice(manifest, file.name, "it has the document's runtime.launcher_commit")
        newest = max(((age(_shipped(file)), file) for file in shipped_files()), default=None)
        if newest is None:
            return Choice(None, "", "there is none")
        return Choice(
            _shipped(newest[1]),
            newest[1].name,
            "the newest one; there is none of the document's runtime.launcher_commit",
        )


def _all_read[Item](files: Sequence[str], load: Callable[..., Item]) -> tuple[tuple[str, Item], ...]:
    return tuple((printable_path(file), _read(file, load)) for file in files)


def _read[Item](file: str, load: Callable[..., Item]) -> Item:
    try:
        return load(read_document(file), source=printable_path(file))
    except DocumentError as error:
        raise WrongUsage(str(error)) from None


def _merged(ledgers: Sequence[tuple[str, VersionLedger]]) -> VersionLedger | None:
    try:
        return merged_ledgers(dict(ledgers)) if ledgers else None
    except DocumentError as error:
        raise WrongUsage(str(error)) from None


def _identity(card: ModelCard | DatasetCard) -> str | None:
    export: HfExport | None = card.export
    return None if export is None else f"{export.name}@{export.version}:{export.fingerprint}"


def _only_or_named[Card: (ModelCard, DatasetCard, ClusterCard)](
    cards: Sequence[tuple[str, Card]], name_of: Callable[[Card], str | None], value: Any, path: str
) -> Choice[Card]:
    if not cards:
        return Choice(None, "", "none was given")
    if len(cards) == 1:
        return Choice(cards[0][1], cards[0][0], "it was given")
    named = [(file, card) for file, card in cards if name_of(card) is not None and name_of(card) == value]
    if len(named) == 1:
        return Choice(named[0][1], named[0][0], f"of those given, {path} names it")
    which = "none" if not named else "more than one"
    return Choice(None, "", f"{path} names {which} of those given ({listed(file for file, _ in cards)})")


@cache
def _shipped(file: Path) -> RuntimeManifest:
    return load_shipped(file)
