"""Stand-in models and datasets: the shape of the real ones, with toy content that says so."""

import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from safetensors.numpy import save

from tools.launcher.documents.canonical import canonical_json
from tools.launcher.documents.files import write_atomically
from tools.launcher.rehearsal.artifact_record import file_digests
from tools.launcher.rehearsal.environments import (
    ANSWERS,
    TRAIN_ROWS,
    VALIDATION_ROWS,
    Row,
    environment_for,
    make_rows,
)
from tools.launcher.rehearsal.policy import Floats, initial_weights
from tools.launcher.rehearsal.problems import RehearsalProblem
from tools.launcher.store.artifact_record import ArtifactRecord, write_artifact_record

MARK = "slipway_rehearsal"
WEIGHTS_TENSOR = "rehearsal.logits"
CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE = "config.json", "model.safetensors", "tokenizer_config.json"


class StandInError(RehearsalProblem):
    """A stand-in file cannot be made or read. The message names file, problem and fix."""


def write_model(
    folder: Path, *, model_name: str, tokenizer_uri: str, tokenizer_revision: str, weights: Floats
) -> None:
    """Write a Hugging-Face-shaped directory which cannot be mistaken for a language model."""
    config = {
        MARK: True,
        "architectures": ["SlipwayRehearsalPolicy"],
        "model_type": "slipway_rehearsal",
        "_name_or_path": model_name,
        "num_labels": ANSWERS,
    }
    tokenizer = {MARK: True, "name_or_path": tokenizer_uri, "revision": tokenizer_revision}
    write_atomically(folder / CONFIG_FILE, canonical_json(config) + b"\n")
    write_atomically(folder / TOKENIZER_FILE, canonical_json(tokenizer) + b"\n")
    write_atomically(folder / WEIGHTS_FILE, save({WEIGHTS_TENSOR: weights}, metadata={MARK: "true"}))


def import_model(
    folder: Path,
    *,
    name: str,
    version: str,
    fingerprint: str,
    relative_path: str,
    model_name: str,
    tokenizer_uri: str,
    tokenizer_revision: str,
) -> ArtifactRecord:
    """Make the stand-in for a starting model.

    Args:
        folder: the artifact's folder.
        name, version, fingerprint: its address and recipe, for the record.
        relative_path: where below the folder the model lies; "" for the folder itself.
        model_name: name of the model card.
        tokenizer_uri, tokenizer_revision: what tokenizer_config.json says.

    Raises:
        StandInError: relative_path leaves the folder.
    """
    # The weights follow from the fingerprint, so that every machine makes the same artifact.
    write_model(
        folder / _inside(relative_path),
        model_name=model_name,
        tokenizer_uri=tokenizer_uri,
        tokenizer_revision=tokenizer_revision,
        weights=initial_weights(int(fingerprint[:8], 16)),
    )
    return _finish(folder, name, version, "hf_model", fingerprint)


def import_dataset(
    folder: Path, *, name: str, version: str, fingerprint: str, relative_paths: Sequence[str], env_class: str
) -> ArtifactRecord:
    """Make the stand-in for a dataset: one file of toy rows for each relative path.

    A file whose name speaks of validation or test gets validation rows, any other training rows.

    Raises:
        StandInError: no path, or one that leaves the folder.
    """
    if not relative_paths:
        raise StandInError(f"dataset {name}@{version} declares no file. Give at least one relative path")
    environment = environment_for(env_class)
    for relative_path in relative_paths:
        split = split_of(relative_path)
        count = TRAIN_ROWS if split == "train" else VALIDATION_ROWS
        rows = make_rows(environment, split, count, int(fingerprint[:8], 16))
        header = {MARK: True, "env_class": env_class, "split": split, "rows": len(rows)}
        lines = [canonical_json(header), *(canonical_json(row.model_dump()) for row in rows)]
        write_atomically(folder / _inside(relative_path), b"\n".join(lines) + b"\n")
    return _finish(folder, name, version, "dataset", fingerprint)


def split_of(relative_path: str) -> str:
    """Return "validation" or "train" for a data file's name."""
    stem = PurePosixPath(relative_path).stem.lower()
    return "validation" if any(word in stem for word in ("val", "test", "eval")) else "train"


def read_rows(path: Path, env_class: str) -> tuple[Row, ...]:
    """Read a stand-in data file.

    Raises:
        StandInError: it is not one, is cut short, or was made for another environment.
    """
    try:
        lines = path.read_bytes().splitlines()
        header = json.loads(lines[0])
        if header.get(MARK) is not True:
            raise ValueError("its first line lacks the mark")
        rows = tuple(Row.model_validate_json(line) for line in lines[1:])
    except (OSError, ValueError, IndexError, AttributeError) as error:
        raise StandInError(
            f"{path.name} is not a stand-in data file: {str(error).splitlines()[0]}. Import the dataset again"
        ) from None
    if header.get("env_class") != env_class:
        raise StandInError(
            f"{path.name} was made for env_class {header.get('env_class')!r}, the document says "
            f"{env_class!r}. Use the dataset of this environment"
        )
    if len(rows) != header.get("rows") or not rows:
        raise StandInError(
            f"{path.name} has {len(rows)} rows, its header says {header.get('rows')}. Import it again"
        )
    return rows


def _inside(relative_path: str) -> PurePosixPath:
    path = PurePosixPath(relative_path)
    if path.is_absolute() or ".." in path.parts:
        raise StandInError(
            f"the relative path {relative_path!r} leaves the artifact. Give one without '..' or '/'"
        )
    return path


def _finish(folder: Path, name: str, version: str, kind: str, fingerprint: str) -> ArtifactRecord:
    record = ArtifactRecord(
        name=name,
        version=version,
        kind=kind,
        fingerprint=fingerprint,
        rehearsal=True,
        files=file_digests(folder),
    )
    write_artifact_record(folder, record)
    return record
