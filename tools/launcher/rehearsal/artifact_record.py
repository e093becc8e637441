"""`.artifact.json`: the mark of a finished stand-in artifact, written last.

The coordinator reads the same file to decide whether a step is done; here are its writer for
what the stand-in makes and its reader for what the stand-in stages.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.launcher.documents.canonical import canonical_json, sha256_hex
from tools.launcher.documents.files import write_atomically
from tools.launcher.rehearsal.problems import RehearsalProblem
from tools.launcher.store.locations import ObjectRoot

RECORD_FILE = ".artifact.json"


class ArtifactMissing(RehearsalProblem):
    """No finished artifact where one is declared. The message names the place and the fix."""


class ArtifactRecord(BaseModel):
    """How an artifact was made.

    Attributes:
        name, version: its address.
        kind: hf_model, dataset, skyrl or evaluate.
        fingerprint: hex digits of its recipe.
        rehearsal: True: made by the stand-in, of no use for training.
        files: SHA-256 (64 hex digits) of each file, by path relative to the artifact.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    name: str
    version: str
    kind: str
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]
    rehearsal: Literal[True]
    files: dict[str, str]

    @property
    def identity(self) -> str:
        """`name@version:fingerprint`, with the eight digits a launch document carries."""
        return f"{self.name}@{self.version}:{self.fingerprint[:8]}"


def finish_artifact(folder: Path, record: ArtifactRecord) -> None:
    """Write the record; from then on the artifact counts as finished."""
    data = {"schema": 1, **record.model_dump()}
    write_atomically(folder / RECORD_FILE, canonical_json(data) + b"\n")


def file_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below `folder`, the record itself left out."""
    return {
        path.relative_to(folder).as_posix(): sha256_hex(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != RECORD_FILE and not path.name.endswith(".tmp")
    }


def artifact_of(uri: str, object_root: ObjectRoot) -> tuple[str, ArtifactRecord]:
    """Find the artifact which `uri` lies in.

    Returns:
        The URI of the artifact's folder and its record.

    Raises:
        ArtifactMissing: neither `uri` nor a folder above it has a readable record.
    """
    candidate = uri.rstrip("/")
    # "scheme://bucket" has two slashes: an artifact lies below a bucket.
    while candidate.count("/") > 2:
        path = object_root.path(candidate) / RECORD_FILE
        if path.is_file():
            try:
                return candidate, ArtifactRecord.model_validate_json(path.read_bytes())
            except ValidationError as error:
                finding = error.errors()[0]
                place = ".".join(str(part) for part in finding["loc"]) or "the record"
                raise ArtifactMissing(
                    f"{candidate}/{RECORD_FILE} is not the record of a stand-in artifact: "
                    f"{place}: {finding['msg']}"
                ) from None
        candidate = candidate.rpartition("/")[0]
    raise ArtifactMissing(f"no finished artifact at {uri} or above it. Run its import step first")
