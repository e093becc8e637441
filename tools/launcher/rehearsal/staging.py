"""Staging: every task copies model and data to the declared local paths and loads from there.

Tasks of a rehearsal share one machine, so each has a node root of its own, and the declared path
`/tmp/marinskyrl/models/x` of rank 1 is `<attempt>/nodes/1/tmp/marinskyrl/models/x`.
"""

import json
from pathlib import Path, PurePosixPath

import numpy as np
from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError
from safetensors.numpy import load

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.documents.files import write_atomically
from tools.launcher.rehearsal.artifact_record import ArtifactMissing, artifact_of
from tools.launcher.rehearsal.document import DataInput, ModelInput, Selection
from tools.launcher.rehearsal.environments import Row
from tools.launcher.rehearsal.policy import SHAPE, Floats
from tools.launcher.rehearsal.problems import RehearsalProblem
from tools.launcher.rehearsal.standin import (
    CONFIG_FILE,
    MARK,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    WEIGHTS_TENSOR,
    StandInError,
    read_rows,
)
from tools.launcher.store.locations import ObjectRoot


class StagingError(RehearsalProblem):
    """An input cannot be staged. The message names the input, what was found and the fix."""


class LoadedModel(BaseModel):
    """What one task loaded, and from where; the evidence `verify` asks for.

    Attributes:
        declared_path: `inputs.model.local_path` of the document.
        source_uri: where it was copied from.
        identity: of the artifact that was found there.
        weights_sha256: of the file the weights were read from, below the declared path.
        tokenizer_revision: as the staged tokenizer says.
        model_name: as the staged config says.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    declared_path: str
    source_uri: str
    identity: str
    weights_sha256: str
    tokenizer_revision: str
    model_name: str


def stage_model(model: ModelInput, node_root: Path, object_root: ObjectRoot) -> None:
    """Copy the model to its declared path below the node root, digests and identity checked.

    Raises:
        StagingError: it is absent, is another artifact than declared, or was changed.
    """
    _copy(model.uri, "", model.identity, on_node(node_root, model.local_path), object_root, "inputs.model")


def load_model(model: ModelInput, node_root: Path) -> tuple[Floats, LoadedModel]:
    """Load the weights through the declared path.

    Raises:
        StagingError: the files there are not the declared model.
    """
    folder = on_node(node_root, model.local_path)
    try:
        weights_data = (folder / WEIGHTS_FILE).read_bytes()
        config = json.loads((folder / CONFIG_FILE).read_bytes())
        tokenizer = json.loads((folder / TOKENIZER_FILE).read_bytes())
    except (OSError, ValueError) as error:
        raise StagingError(
            f"inputs.model.local_path {model.local_path} is not a model directory: {error}. "
            "Import the model again"
        ) from None
    if config.get(MARK) is not True:
        raise StagingError(
            f"the model at {model.uri} is a real one. A rehearsal loads stand-ins only: "
            "use a local object root"
        )
    if tokenizer.get("revision") != model.tokenizer_revision:
        raise StagingError(
            f"the staged tokenizer has revision {tokenizer.get('revision')!r}, "
            f"inputs.model.tokenizer_revision is {model.tokenizer_revision!r}. "
            "Give the model a new version when its tokenizer changes"
        )
    loaded = LoadedModel(
        declared_path=model.local_path,
        source_uri=model.uri,
        identity=model.identity,
        weights_sha256=sha256_hex(weights_data),
        tokenizer_revision=tokenizer["revision"],
        model_name=str(config.get("_name_or_path")),
    )
    return weights_of(weights_data, f"{model.local_path}/{WEIGHTS_FILE}"), loaded


def stage_data(sources: list[DataInput], node_root: Path, object_root: ObjectRoot) -> None:
    """Copy data files to their declared paths.

    Raises:
        StagingError: as for the model, or two artifacts claim one local path.
    """
    owners: dict[str, str] = {}
    for source in sources:
        owner = owners.setdefault(source.local_path, source.identity)
        if owner != source.identity:
            raise StagingError(
                f"{owner} and {source.identity} are both staged at {source.local_path}. "
                "Rename one of the artifacts"
            )
        folder = on_node(node_root, source.local_path)
        _copy(source.uri, source.relative_path, source.identity, folder, object_root, "inputs data")


def load_rows(sources: list[DataInput], node_root: Path, env_class: str) -> tuple[Row, ...]:
    """Read the rows of all sources, in the order of the document; of a selection, those it draws.

    Raises:
        StagingError: a file is not a stand-in for this environment.
    """
    rows: list[Row] = []
    for source in sources:
        try:
            found = read_rows(on_node(node_root, source.local_path) / source.relative_path, env_class)
        except StandInError as error:
            raise StagingError(str(error)) from None
        rows += found if source.selection is None else _drawn(found, source.selection)
    return tuple(rows)


def _drawn(rows: tuple[Row, ...], selection: Selection) -> tuple[Row, ...]:
    """As many rows as the selection allows, drawn from its seed and left in their order."""
    if selection.limit is None or selection.limit >= len(rows):
        return rows
    # A seed may be negative; a key of the generator may not.
    random = np.random.Generator(np.random.Philox(key=selection.seed % (1 << 64)))
    return tuple(rows[i] for i in sorted(random.permutation(len(rows))[: selection.limit]))


def weights_of(data: bytes, place: str) -> Floats:
    """Read the policy's logits from the bytes of a safetensors file.

    Raises:
        StagingError: cut short, or without a tensor of the right name and shape.
    """
    try:
        weights = load(data)[WEIGHTS_TENSOR]
    except (SafetensorError, KeyError) as error:
        raise StagingError(f"{place} holds no rehearsal policy: {error}. Import the model again") from None
    if weights.shape != SHAPE or weights.dtype != np.float64:
        raise StagingError(
            f"{place}: {WEIGHTS_TENSOR} is {weights.dtype} {weights.shape}, expected float64 {SHAPE}"
        )
    return weights


def on_node(node_root: Path, local_path: str) -> Path:
    """Return the place of a declared absolute path below a task's node root.

    Raises:
        StagingError: the path has '..' in it.
    """
    path = PurePosixPath(local_path)
    if ".." in path.parts:
        raise StagingError(f"the local path {local_path!r} contains '..'. Declare a plain absolute path")
    return node_root.joinpath(*path.parts[1:])


def _copy(
    uri: str, relative_path: str, identity: str, target: Path, object_root: ObjectRoot, what: str
) -> None:
    relative = PurePosixPath(relative_path)
    if relative.is_absolute() or ".." in relative.parts:
        raise StagingError(
            f"{what}: relative_path {relative_path!r} leaves the artifact. Give one without '..' or '/'"
        )
    try:
        artifact_uri, record = artifact_of(uri, object_root)
    except ArtifactMissing as error:
        raise StagingError(f"{what}: {error}") from None
    declared, _, declared_digits = identity.rpartition(":")
    found = f"{record.name}@{record.version}"
    if found != declared or not record.fingerprint.startswith(declared_digits[:8]):
        raise StagingError(
            f"{what}: {uri} holds {record.identity}, the document declares {identity}. "
            "Build the document again, or give the changed artifact a new version"
        )
    source = object_root.path(artifact_uri)
    base = PurePosixPath(uri.removeprefix(artifact_uri).strip("/"))
    wanted = base / relative
    names = [name for name in record.files if PurePosixPath(name).is_relative_to(wanted)]
    if not names:
        raise StagingError(
            f"{what}: {record.identity} has no file {wanted.as_posix()!r}; it has {sorted(record.files)}"
        )
    for name in names:
        try:
            data = (source / name).read_bytes()
        except OSError as error:
            raise StagingError(
                f"{what}: {artifact_uri}/{name}: {error.strerror}. Import the artifact again"
            ) from None
        if sha256_hex(data) != record.files[name]:
            raise StagingError(
                f"{what}: {artifact_uri}/{name} has the digest {sha256_hex(data)[:12]}, its record says "
                f"{record.files[name][:12]}. The artifact was changed: import it under a new version"
            )
        write_atomically(target / PurePosixPath(name).relative_to(base), data)
