"""Reading cards, manifests and ledgers: the same bytes are parsed once, and for one preflight read once."""

import collections
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from tools.launcher.cli.experiment_module import ExperimentError

MOST_REMEMBERED = 256
"""Parsed documents that are kept; a manifest, the largest, takes about a megabyte."""


class Parse[Card: BaseModel](Protocol):
    """Reads a card's bytes; `source` is how messages call it. Raises DocumentError."""

    def __call__(self, data: bytes, *, source: str) -> Card: ...


class CardReader:
    """Reads documents and remembers what they say by the digest of their bytes, the last used ones."""

    def __init__(self) -> None:
        self._known: collections.OrderedDict[tuple[Callable[..., Any], bytes], Any] = (
            collections.OrderedDict()
        )
        self._here: dict[tuple[Callable[..., Any], str], Any] = {}

    def forget_files(self) -> None:
        """Read files anew from now on: another preflight begins, and they may say something else."""
        self._here.clear()

    def read[Card: BaseModel](self, parse: Parse[Card], path: str) -> Card:
        """Return what `parse` makes of a file, which must depend on nothing but its bytes.

        A path is read once until `forget_files`.

        Raises:
            ExperimentError: the file cannot be read.
            DocumentError: as `parse`.
        """
        if (parse, path) in self._here:
            known: Card = self._here[parse, path]
            return known
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise ExperimentError(
                f"{path} cannot be read: {error.strerror}. Correct the label in the target"
            ) from None
        key = (parse, hashlib.sha256(data).digest())
        if key not in self._known:
            self._known[key] = parse(data, source=path)
        self._known.move_to_end(key)
        if len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        card: Card = self._known[key]
        self._here[parse, path] = card
        return card

    def contents(self) -> dict[tuple[Callable[..., Any], bytes], str]:
        """Return what the remembered documents say now: whoever had one in hand may have changed it."""
        return {key: document.model_dump_json() for key, document in self._known.items()}
