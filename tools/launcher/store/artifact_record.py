"""`.artifact.json`: the mark of a finished artifact, written last, which says how it was made.

The rehearsal writes it for what it imports and evaluates, the coordinator for a finished RL run, whose
runtime knows nothing of steps; the coordinator reads it to decide whether a step is done.
"""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.launcher.documents.canonical import canonical_json
from tools.launcher.documents.files import write_atomically
from tools.launcher.store.object_store import StoreError

RECORD_FILE = ".artifact.json"
_SCHEMA = 1


class UnreadableArtifactRecord(StoreError):
    """There is a record and it is not one. The message names the field and what is wrong with it."""


class ArtifactRecord(BaseModel):
    """How an artifact was made. Fields of newer writers are passed over.

    Attributes:
        name, version: its address.
        kind: hf_model, dataset, skyrl or evaluate.
        fingerprint: hex digits of its recipe, 8 (of a record elsewhere) to 64.
        rehearsal: made by the stand-in, of no use for training.
        files: SHA-256 (64 hex digits) of each file, by path relative to the artifact; empty for an RL run.
        export: URI of the exported policy (RL runs only).
        attempt_id: the attempt that made it (RL runs only).
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    name: str
    version: str
    kind: str
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]
    rehearsal: bool
    files: dict[str, str] = {}
    export: str | None = None
    attempt_id: str | None = None

    @property
    def identity(self) -> str:
        """`name@version:fingerprint`, with the eight digits a launch document carries."""
        return f"{self.name}@{self.version}:{self.fingerprint[:8]}"


def parse_artifact_record(data: bytes) -> ArtifactRecord:
    """Read a record's content.

    Raises:
        UnreadableArtifactRecord: it is none.
    """
    try:
        return ArtifactRecord.model_validate_json(data)
    except ValidationError as error:
        finding = error.errors()[0]
        place = ".".join(str(part) for part in finding["loc"]) or "the record"
        raise UnreadableArtifactRecord(f"{place}: {finding['msg']}") from None


def artifact_record_bytes(record: ArtifactRecord) -> bytes:
    """Return a record's content. Once it is written, the artifact counts as finished."""
    return canonical_json({"schema": _SCHEMA, **record.model_dump(exclude_none=True)}) + b"\n"


def read_artifact_record(folder: Path) -> ArtifactRecord | None:
    """Return the record in `folder`, None if there is none.

    Raises:
        UnreadableArtifactRecord: there is one that cannot be read.
    """
    try:
        data = (folder / RECORD_FILE).read_bytes()
    except FileNotFoundError:
        return None
    return parse_artifact_record(data)


def write_artifact_record(folder: Path, record: ArtifactRecord) -> None:
    """Write the record; from then on the artifact counts as finished."""
    write_atomically(folder / RECORD_FILE, artifact_record_bytes(record))
