"""What a new attempt will resume from: said before it is started, so that nobody finds out afterwards.

Checkpoints lie at `<checkpoint_root>/global_step_<n>/`, and `latest_ckpt_global_step.txt` beside them, written
last, names the newest (trainer of MarinSkyRL, and the rehearsal's after it). Who wrote one stands nowhere in it.
Attempts of one artifact version never overlap (`turns`), so it was the last that had begun when it was written.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from tools.launcher.documents.strict_yaml import DocumentError, load_yaml
from tools.launcher.store.records import RunKey, attempt_id_of

LATEST_FILE: Final = "latest_ckpt_global_step.txt"

# The files without which a checkpoint cannot be resumed from, by who writes it. A name with a slash at its end is
# a folder that must not be empty.
_REHEARSAL: Final = ("policy.safetensors", "optimizer.safetensors", "trainer_state.json")
_TRAINER: Final = ("trainer_state.pt", "data.pt", "policy/")

_STEP = re.compile(r"global_step_(\d+)/(.+)")
_ATTEMPT = re.compile(r"([0-9a-f]{12})/.+")
_COMMIT = re.compile(r"[0-9a-f]{40}")


class SeenFile(BaseModel):
    """One file of a listing.

    Attributes:
        path: relative to the folder that was listed, with slashes.
        size: in bytes.
        modified: seconds since the epoch, by the clock of the file system.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    path: str
    size: int
    modified: float


class Listing(BaseModel):
    """What lies at a run's two roots.

    Attributes:
        checkpoints: below the checkpoint root.
        attempts: below the attempts root.
        latest: content of LATEST_FILE, None if it is not there.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    checkpoints: tuple[SeenFile, ...]
    attempts: tuple[SeenFile, ...]
    latest: str | None


class Checkpoint(BaseModel):
    """A whole checkpoint and who wrote it.

    Attributes:
        uri: its folder.
        step: training steps done.
        attempt_id: the attempt that wrote it, None if nothing tells.
        ordinal: of that attempt among those of the same launch document, None if it is of another.
        runtime_commit: of that attempt, None if its document is gone.
        newer: folders of a later step that are not whole, newest first.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    uri: str
    step: int
    attempt_id: str | None
    ordinal: int | None
    runtime_commit: str | None
    newer: tuple[str, ...]


def newest_checkpoint(
    listing: Listing, *, checkpoint_root: str, key: RunKey, document_of: Callable[[str], bytes | None]
) -> Checkpoint | None:
    """Return the newest whole checkpoint, None if there is none.

    Args:
        listing: of the run's roots.
        checkpoint_root: URI.
        key: of an attempt of the launch document: all up to the one after it are known by their ids.
        document_of: reads the document of an attempt by its id, None if it is gone.
    """
    files: dict[int, list[SeenFile]] = {}
    for file in listing.checkpoints:
        match = _STEP.fullmatch(file.path)
        if match:
            files.setdefault(int(match[1]), []).append(file)
    newer: list[str] = []
    for step in sorted(files, reverse=True):
        if not _is_whole(step, files[step], listing.latest):
            newer.append(f"global_step_{step}")
            continue
        attempt_id = _writer(max(file.modified for file in files[step]), listing.attempts)
        return Checkpoint(
            uri=f"{checkpoint_root}/global_step_{step}",
            step=step,
            attempt_id=attempt_id,
            ordinal=None if attempt_id is None else _ordinal(attempt_id, key),
            runtime_commit=None if attempt_id is None else _commit_of(document_of(attempt_id)),
            newer=tuple(newer),
        )
    return None


def resume_lines(document: Mapping[str, Any], found: Checkpoint | None, unknown: str) -> list[str]:
    """Say what a new attempt of `document` will resume from, in one line or a few.

    Args:
        document: the launch document.
        found: the newest whole checkpoint at its root.
        unknown: why that is not known, "" if it is.
    """
    trainer = document["skyrl"]["trainer"]
    mode, root = trainer.get("resume_mode", "latest"), document["artifacts"]["checkpoint_root"]
    if mode is None or mode == "none":
        ignored = f"; {found.uri} is not read" if found is not None else ""
        return [f"resume: no (resume_mode none): training starts at step 0{ignored}"]
    if mode == "from_path":
        return [f"resume: from {trainer.get('resume_path')}, as the document says (resume_mode from_path)"]
    if unknown:
        return [
            f"resume: unknown: {unknown}. It resumes from the newest checkpoint at {root} (resume_mode {mode})"
        ]
    if found is None:
        return [f"resume: there is no whole checkpoint at {root}: training starts at step 0"]
    lines = [
        f"resume: from step {found.step}, the newest whole checkpoint (resume_mode {mode})",
        f"  checkpoint: {found.uri}",
        f"  written by: {_writer_words(found, str(document['runtime']['launcher_commit']))}",
    ]
    if found.newer:
        lines.append(f"  not whole, passed over: {', '.join(found.newer)}")
    return lines


def _is_whole(step: int, files: Sequence[SeenFile], latest: str | None) -> bool:
    inside = {file.path.split("/", 1)[1]: file.size for file in files}

    def has(name: str) -> bool:
        if name.endswith("/"):
            return any(path.startswith(name) and size > 0 for path, size in inside.items())
        return inside.get(name, 0) > 0

    if any(has(name) for name in ("trainer_state.pt", "data.pt")):
        # The trainer names a checkpoint once it is whole; a later folder was begun and not finished.
        named = latest.strip() if latest is not None else ""
        return all(map(has, _TRAINER)) and named.isdecimal() and step <= int(named)
    return all(map(has, _REHEARSAL))


def _writer(written: float, attempts: Iterable[SeenFile]) -> str | None:
    """The attempt that began last among those that had begun by `written`."""
    begun: dict[str, float] = {}
    for file in attempts:
        match = _ATTEMPT.fullmatch(file.path)
        if match:
            # Its oldest file: a restarted coordinator writes the attempt's document anew.
            begun[match[1]] = min(file.modified, begun.get(match[1], file.modified))
    before = [(at, attempt_id) for attempt_id, at in begun.items() if at <= written]
    return max(before)[1] if before else None


def _ordinal(attempt_id: str, key: RunKey) -> int | None:
    # Attempts of one document are few; the search ends at the first.
    for ordinal in range(1, key.ordinal + 2):
        if attempt_id_of(key.model_copy(update={"ordinal": ordinal})) == attempt_id:
            return ordinal
    return None


def _commit_of(document: bytes | None) -> str | None:
    if document is None:
        return None
    try:
        commit = load_yaml(document, source="an attempt's document")["runtime"]["launcher_commit"]
    except (DocumentError, KeyError, TypeError):
        return None
    return commit if isinstance(commit, str) and _COMMIT.fullmatch(commit) else None


def _writer_words(found: Checkpoint, own_commit: str) -> str:
    if found.attempt_id is None:
        return "unknown: no attempt's files are older than it"
    whose = (
        f"attempt {found.ordinal}" if found.ordinal is not None else "an attempt of another launch document"
    )
    if found.runtime_commit is None:
        return f"{whose} ({found.attempt_id}), runtime unknown: its document is gone"
    same = "as now" if found.runtime_commit == own_commit else f"now it is {own_commit}"
    return f"{whose} ({found.attempt_id}), runtime {found.runtime_commit} ({same})"
