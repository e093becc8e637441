"""The optimizer steps behind a run, also those an earlier attempt made before it ended."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.observe.evidence import Metrics, read_metrics
from tools.launcher.observe.run_files import RunFiles
from tools.launcher.store.locations import ObjectRoot


class TrainingSteps(BaseModel):
    """What was trained.

    Attributes:
        lines: one report for each step, by step: the attempt's own, and before them those of earlier
            attempts of the same version, as far as they lead up to where this one resumed.
        problem: what is wrong with the attempt's own file, "" if nothing.
        own_from: the attempt's first own step, None if it made none.
        sources: URIs of the files the lines are from, the attempt's own first.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    lines: tuple[dict[str, Any], ...]
    problem: str
    own_from: int | None
    sources: tuple[str, ...]


def training_steps(files: RunFiles, attempt_id: str, root: ObjectRoot) -> TrainingSteps:
    """Read the steps of an attempt and of the attempts it resumed from.

    An attempt that ends after its last checkpoint leaves nothing to train to the next one, which then
    has no step of its own: the steps of both are what its result rests on. The attempts need not be of one
    document: another placement, or another runtime that the ledger lets go on, has the same checkpoints.

    Args:
        files: the plan.
        attempt_id: whose steps.
        root: where the files are.
    """
    own_uri, own = _metrics(files, attempt_id, root)
    sources = [own_uri]
    lines = own.lines
    if not own.problem:
        for earlier in _attempts_before(files, attempt_id, root):
            if lines and lines[0]["step"] <= 1:
                break
            uri, metrics = _metrics(files, earlier, root)
            before = tuple(line for line in metrics.lines if not lines or line["step"] < lines[0]["step"])
            # Steps that do not reach up to ours are another resumption's.
            if before and (not lines or before[-1]["step"] == lines[0]["step"] - 1):
                lines = before + lines
                sources.append(uri)
    return TrainingSteps(
        lines=lines,
        problem=own.problem,
        own_from=own.lines[0]["step"] if own.lines else None,
        sources=tuple(sources),
    )


def _attempts_before(files: RunFiles, attempt_id: str, root: ObjectRoot) -> list[str]:
    """Ids of the version's attempts before one, the newest first.

    Those of this document are known by their ordinals. Those of others are in the same folder. Attempts of one
    version take turns, so the times of their files tell the order.
    """
    own = files.attempts_before(attempt_id)
    written = _written_ns(files, attempt_id, root)
    folder = root.path(files.attempts_root)
    names = [entry.name for entry in folder.iterdir() if entry.is_dir()] if folder.is_dir() else []
    others = [
        name
        for name in sorted(names)
        if name not in (attempt_id, *own) and 0 < _written_ns(files, name, root) <= written
    ]
    return sorted([*own, *others], key=lambda name: _written_ns(files, name, root), reverse=True)


def _written_ns(files: RunFiles, attempt_id: str, root: ObjectRoot) -> int:
    """When the attempt's steps were last written, in ns of the file system's clock; 0 if they are not there."""
    try:
        return root.path(f"{files.attempt_uri(attempt_id)}/metrics.jsonl").stat().st_mtime_ns
    except OSError:
        return 0


def _metrics(files: RunFiles, attempt_id: str, root: ObjectRoot) -> tuple[str, Metrics]:
    uri = f"{files.attempt_uri(attempt_id)}/metrics.jsonl"
    return uri, read_metrics(root, uri)
