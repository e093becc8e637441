"""What a run's checkpoint root holds, read from the object root; see `submit.resume`."""

import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.documents.strict_yaml import load_yaml
from tools.launcher.store.bundles import LaunchBundle
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import StoreError
from tools.launcher.store.records import RunKey
from tools.launcher.submit.resume import (
    LATEST_FILE,
    Checkpoint,
    Listing,
    SeenFile,
    newest_checkpoint,
    resume_lines,
)


class FoundCheckpoint(BaseModel):
    """What was found.

    Attributes:
        checkpoint: the newest whole one, None if there is none or it is not known.
        unknown: why it is not known, "" if it is.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    checkpoint: Checkpoint | None
    unknown: str


def find_checkpoint(bundle: LaunchBundle, key: RunKey, objects: ObjectRoot | None) -> FoundCheckpoint:
    """Look for the newest whole checkpoint of the document's checkpoint root.

    Args:
        bundle: holds the launch document.
        key: of any attempt of it.
        objects: the object root; None if the roots are in object storage, which is not listed from here.
    """
    artifacts = _document(bundle)["artifacts"]
    checkpoint_root, attempts_root = artifacts["checkpoint_root"], artifacts["attempts_root"]
    if objects is None:
        return FoundCheckpoint(checkpoint=None, unknown=f"{checkpoint_root} is not read from here")
    try:
        checkpoints, attempts = objects.path(checkpoint_root), objects.path(attempts_root)
        listing = Listing(
            checkpoints=_files_below(checkpoints),
            attempts=_files_below(attempts),
            latest=_text_of(checkpoints / LATEST_FILE),
        )
    except StoreError as error:
        return FoundCheckpoint(checkpoint=None, unknown=str(error))
    except OSError as error:
        return FoundCheckpoint(
            checkpoint=None, unknown=f"{checkpoint_root} cannot be read: {error.strerror or error}"
        )
    return FoundCheckpoint(
        checkpoint=newest_checkpoint(
            listing,
            checkpoint_root=checkpoint_root,
            key=key,
            document_of=lambda attempt_id: _bytes_of(attempts / attempt_id / "launch.yaml"),
        ),
        unknown="",
    )


def resume_text(bundle: LaunchBundle, key: RunKey, objects: ObjectRoot | None) -> str:
    """Say what a new attempt of the document will resume from, in lines; arguments as `find_checkpoint`."""
    return _resume_text(bundle, find_checkpoint(bundle, key, objects))


def resume_text_if_any(bundle: LaunchBundle, key: RunKey, objects: ObjectRoot | None) -> str:
    """Like `resume_text`, "" if nothing lies there: what a first launch needs to hear of others' checkpoints."""
    found = find_checkpoint(bundle, key, objects)
    return _resume_text(bundle, found) if found.checkpoint is not None or found.unknown else ""


def remaining_text(bundle: LaunchBundle, key: RunKey, objects: ObjectRoot | None) -> str:
    """Say which checkpoint a run that ends now leaves behind; arguments as `find_checkpoint`."""
    found = find_checkpoint(bundle, key, objects)
    if found.unknown:
        return f"unknown which checkpoint: {found.unknown}"
    if found.checkpoint is None:
        return "no whole checkpoint"
    return f"checkpoint of step {found.checkpoint.step}: {found.checkpoint.uri}"


def _resume_text(bundle: LaunchBundle, found: FoundCheckpoint) -> str:
    return "".join(f"{line}\n" for line in resume_lines(_document(bundle), found.checkpoint, found.unknown))


def _document(bundle: LaunchBundle) -> dict[str, Any]:
    document: dict[str, Any] = load_yaml(bundle.launch_yaml, source="launch.yaml")
    return document


def _files_below(folder: Path) -> tuple[SeenFile, ...]:
    """Every file below a folder; none if it is missing. One that vanishes meanwhile is left out."""
    found = []
    for place, _, names in os.walk(folder, onerror=_unless_missing):
        for name in names:
            file = Path(place, name)
            try:
                status = file.stat()
            except FileNotFoundError:
                continue
            path = file.relative_to(folder).as_posix()
            found.append(SeenFile(path=path, size=status.st_size, modified=status.st_mtime))
    return tuple(found)


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _bytes_of(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _text_of(file: Path) -> str | None:
    data = _bytes_of(file)
    return None if data is None else data.decode("utf-8", "replace")
