"""Deciding by an artifact's record whether a step is done, and claiming the output path of one that is not."""

import re

from tools.launcher.coordinator.graph_file import GraphStep
from tools.launcher.documents.canonical import canonical_json
from tools.launcher.store.artifact_record import (
    RECORD_FILE,
    ArtifactRecord,
    UnreadableArtifactRecord,
    artifact_record_bytes,
    parse_artifact_record,
)
from tools.launcher.store.objects import ObjectReader, Objects

CLAIM_FILE = ".claim.json"

_FINGERPRINT = re.compile(rb'"fingerprint":"([0-9a-f]{8,64})"')


class ArtifactMismatch(Exception):
    """Something else lies at a step's output path. The message names both and the fix."""


def read_record(objects: ObjectReader, step: GraphStep) -> ArtifactRecord | None:
    """Return the record at the step's output path, None if there is none.

    Raises:
        ArtifactMismatch: there is one that cannot be read.
        StoreUnavailable: whether there is one cannot be told.
    """
    data = objects.read(f"{step.output_path}/{RECORD_FILE}")
    try:
        return None if data is None else parse_artifact_record(data)
    except UnreadableArtifactRecord as error:
        raise ArtifactMismatch(
            f"{step.output_path}: the record {RECORD_FILE} cannot be read: {error}. Move the artifact away"
        ) from None


def reusable(step: GraphStep, record: ArtifactRecord | None) -> bool:
    """Tell whether `record` is that of a finished `step`.

    Raises:
        ArtifactMismatch: another artifact has the step's output path.
    """
    if record is None:
        return False
    found = f"{record.name}@{record.version} ({record.kind}, fingerprint {record.fingerprint[:8]})"
    wanted = f"{step.address} ({step.kind}, fingerprint {step.fingerprint[:8]})"
    # An adopted step carries only the eight digits on record.
    digits = min(len(step.fingerprint), len(record.fingerprint))
    same = step.fingerprint[:digits] == record.fingerprint[:digits]
    if (record.name, record.version, record.kind) != (step.name, step.version, step.kind) or not same:
        raise ArtifactMismatch(
            f"{step.output_path} holds {found}, the plan wants {wanted}. "
            "Give the changed step a new version, or build the plan that made the artifact"
        )
    return True


def claim_output(objects: Objects, step: GraphStep) -> None:
    """Take a step's output path for its fingerprint, before the first file of it is made.

    Checkpoints of an attempt that did not finish lie below a path of name and version. A plan that was
    changed under the same version would resume from another recipe's. A plan whose ledger says that it may go
    on from another recipe's checkpoints (`step.compatible`) takes the place that this one began.

    Args:
        objects: where the output path is.
        step: about to be made, for the first time or again.

    Raises:
        ArtifactMismatch: a step of another fingerprint has begun to be made there.
    """
    claim = {"schema": 1, "name": step.name, "version": step.version, "fingerprint": step.fingerprint}
    data = canonical_json(claim) + b"\n"
    uri = f"{step.output_path}/{CLAIM_FILE}"
    if objects.write_once(uri, data):
        return
    stored = objects.read(uri) or b""
    if stored != data:
        found = _FINGERPRINT.search(stored)
        fingerprint = found[1].decode() if found else None
        if fingerprint in step.compatible:
            return
        raise ArtifactMismatch(
            f"{step.output_path} was begun for another plan of {step.address} (fingerprint "
            f"{fingerprint[:8] if fingerprint else 'not to be read'}, this plan has {step.fingerprint[:8]}), and "
            "its checkpoints are that plan's. Give the changed step a new version, or build the plan that "
            "began it"
        )


def write_run_record(
    objects: Objects, step: GraphStep, *, rehearsal: bool, export: str | None, attempt_id: str
) -> None:
    """Mark an RL step as finished."""
    record = ArtifactRecord(
        name=step.name,
        version=step.version,
        kind=step.kind,
        fingerprint=step.fingerprint,
        rehearsal=rehearsal,
        export=export,
        attempt_id=attempt_id,
    )
    objects.write(f"{step.output_path}/{RECORD_FILE}", artifact_record_bytes(record))
