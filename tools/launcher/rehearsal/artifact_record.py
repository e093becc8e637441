"""Finding finished stand-in artifacts, and the digests of their files."""

from pathlib import Path

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.rehearsal.problems import RehearsalProblem
from tools.launcher.store.artifact_record import (
    RECORD_FILE,
    ArtifactRecord,
    UnreadableArtifactRecord,
    read_artifact_record,
)
from tools.launcher.store.locations import ObjectRoot


class ArtifactMissing(RehearsalProblem):
    """No finished artifact where one is declared. The message names the place and the fix."""


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
        try:
            record = read_artifact_record(object_root.path(candidate))
        except UnreadableArtifactRecord as error:
            raise _not_a_stand_in(candidate, str(error)) from None
        if record is not None:
            if not record.rehearsal:
                raise _not_a_stand_in(candidate, "rehearsal: it is false")
            return candidate, record
        candidate = candidate.rpartition("/")[0]
    raise ArtifactMissing(f"no finished artifact at {uri} or above it. Run its import step first")


def _not_a_stand_in(uri: str, why: str) -> ArtifactMissing:
    return ArtifactMissing(f"{uri}/{RECORD_FILE} is not the record of a stand-in artifact: {why}")
