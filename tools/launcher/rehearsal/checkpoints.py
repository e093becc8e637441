"""Checkpoints: on the document's schedule, whole or not at all, and refused when torn.

`<checkpoint_root>/global_step_<n>/` holds the weights, Adam's moments and the trainer's state, whose
digests make a torn directory recognisable. It is written under another name and renamed;
`latest_ckpt_global_step.txt` names it last.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tools.launcher.documents.canonical import canonical_json, sha256_hex
from tools.launcher.documents.files import write_atomically
from tools.launcher.rehearsal.policy import SHAPE, AdamState, Floats
from tools.launcher.rehearsal.problems import RehearsalProblem
from tools.launcher.rehearsal.standin import MARK, WEIGHTS_TENSOR

POLICY_FILE: Final = "policy.safetensors"
OPTIMIZER_FILE: Final = "optimizer.safetensors"
STATE_FILE: Final = "trainer_state.json"
LATEST_FILE: Final = "latest_ckpt_global_step.txt"
_PREFIX: Final = "global_step_"

# What must agree for a checkpoint to be resumed from. The runtime's commit is not of it: whether one runtime goes on
# from another's is decided before (ledger, claims of version and output path), and MarinSkyRL does not look.
_MUST_AGREE: Final = ("run_id", "model_identity", "seed")


class CheckpointRefused(RehearsalProblem):
    """A checkpoint cannot be resumed from. The message names it and why."""


class ForeignCheckpoint(CheckpointRefused):
    """The checkpoints belong to another run: resuming would mix two."""


class TrainerState(BaseModel):
    """What `trainer_state.json` holds beside the tensors.

    Attributes:
        slipway_rehearsal: True: not a state of training.
        run_id, launcher_commit, model_identity, seed: whose state it is.
        global_step: training steps done.
        optimizer_updates: Adam updates done.
        random: how the following draws are made; the generators are keyed by step, so the step
            alone continues them.
        policy_sha256, optimizer_sha256: of the two tensor files.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    slipway_rehearsal: Literal[True] = True
    run_id: str
    launcher_commit: str
    model_identity: str
    seed: int
    global_step: Annotated[int, Field(ge=1)]
    optimizer_updates: Annotated[int, Field(ge=0)]
    random: Literal["philox(seed, step)"] = "philox(seed, step)"
    policy_sha256: str
    optimizer_sha256: str


class Owner(BaseModel):
    """Whose checkpoints are written and, apart from the runtime's commit, accepted."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    run_id: str
    launcher_commit: str
    model_identity: str
    seed: int


class Resumed(BaseModel):
    """A checkpoint read back; `launcher_commit` is that of the runtime which wrote it."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")

    step: int
    launcher_commit: str
    weights: Floats
    optimizer: AdamState


def is_due(step: int, last_step: int, interval: int) -> bool:
    """Tell whether a checkpoint is written after `step`: every `interval` steps and at the end.

    An interval of 0 or below means only at the end.
    """
    return step == last_step or (interval > 0 and step % interval == 0)


def checkpoint_folder(root: Path, step: int) -> Path:
    """Return the folder of a step's checkpoint."""
    return root / f"{_PREFIX}{step}"


def save_checkpoint(
    root: Path, *, owner: Owner, step: int, weights: Floats, optimizer: AdamState, keep: int
) -> Path:
    """Write a checkpoint, point `latest` at it, prune older ones.

    Args:
        root: the document's checkpoint root.
        owner: whose it is.
        step: training steps done.
        weights, optimizer: the state.
        keep: how many checkpoints stay (`artifacts.resume_checkpoint_count`), at least 1.

    Returns:
        The checkpoint's folder.
    """
    folder = checkpoint_folder(root, step)
    temporary = root / f".{folder.name}.{os.getpid()}.partial"
    shutil.rmtree(temporary, ignore_errors=True)
    for name, data in _files(owner, step, weights, optimizer).items():
        write_atomically(temporary / name, data)
    # A directory cannot be renamed over a full one: one of the same step is either equal or torn.
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)
    write_atomically(root / LATEST_FILE, f"{step}\n".encode())
    for old in _steps(root)[:-keep]:
        shutil.rmtree(checkpoint_folder(root, old))
    return folder


def tear_checkpoint(root: Path, *, owner: Owner, step: int, weights: Floats, optimizer: AdamState) -> None:
    """Leave what a writer without our care leaves when it dies: half a file, already announced."""
    folder = checkpoint_folder(root, step)
    folder.mkdir(parents=True, exist_ok=True)
    data = _files(owner, step, weights, optimizer)[POLICY_FILE]
    (folder / POLICY_FILE).write_bytes(data[: len(data) // 2])
    write_atomically(root / LATEST_FILE, f"{step}\n".encode())


def resume_latest(root: Path, owner: Owner) -> tuple[Resumed | None, tuple[str, ...]]:
    """Read the newest complete checkpoint.

    Returns:
        The checkpoint, or None if there is none, and one sentence for each that was refused.

    Raises:
        ForeignCheckpoint: the newest complete one belongs to another run, model or seed.
    """
    refused: list[str] = []
    for step in reversed(_steps(root)):
        try:
            return read_checkpoint(checkpoint_folder(root, step), owner), tuple(refused)
        except ForeignCheckpoint:
            raise
        except CheckpointRefused as error:
            refused.append(f"{error}. The previous complete checkpoint is used")
    return None, tuple(refused)


def read_checkpoint(folder: Path, owner: Owner) -> Resumed:
    """Read one checkpoint, its digests and its owner checked.

    Raises:
        CheckpointRefused: torn or damaged.
        ForeignCheckpoint: somebody else's.
    """
    try:
        state = TrainerState.model_validate_json((folder / STATE_FILE).read_bytes())
        policy_data = (folder / POLICY_FILE).read_bytes()
        optimizer_data = (folder / OPTIMIZER_FILE).read_bytes()
    except FileNotFoundError as error:
        raise CheckpointRefused(
            f"checkpoint {folder.name} is torn: {Path(error.filename).name} is missing"
        ) from None
    except (OSError, ValidationError) as error:
        problem = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error.strerror
        raise CheckpointRefused(f"checkpoint {folder.name} is torn: {STATE_FILE}: {problem}") from None
    for name, data, expected in (
        (POLICY_FILE, policy_data, state.policy_sha256),
        (OPTIMIZER_FILE, optimizer_data, state.optimizer_sha256),
    ):
        if sha256_hex(data) != expected:
            raise CheckpointRefused(
                f"checkpoint {folder.name} is torn: {name} has the digest {sha256_hex(data)[:12]}, "
                f"{STATE_FILE} says {expected[:12]}"
            )
    for field in _MUST_AGREE:
        found, wanted = getattr(state, field), getattr(owner, field)
        if found != wanted:
            raise ForeignCheckpoint(
                f"checkpoint {folder.name} belongs to another run: its {field} is {found!r}, this run's is "
                f"{wanted!r}. Give the experiment a new version, or a fresh checkpoint root"
            )
    try:
        weights = load(policy_data)[WEIGHTS_TENSOR]
        moments = load(optimizer_data)
        optimizer = AdamState(moments["mean"], moments["square"], state.optimizer_updates)
    except (SafetensorError, KeyError) as error:
        raise CheckpointRefused(f"checkpoint {folder.name} is damaged: {error}") from None
    if any(array.shape != SHAPE or array.dtype != np.float64 for array in (weights, *moments.values())):
        raise CheckpointRefused(f"checkpoint {folder.name} is damaged: a tensor is not float64 {SHAPE}")
    return Resumed(
        step=state.global_step,
        launcher_commit=state.launcher_commit,
        weights=weights,
        optimizer=optimizer,
    )


def _files(owner: Owner, step: int, weights: Floats, optimizer: AdamState) -> dict[str, bytes]:
    policy = save({WEIGHTS_TENSOR: weights}, metadata={MARK: "true"})
    moments = save({"mean": optimizer.mean, "square": optimizer.square}, metadata={MARK: "true"})
    state = TrainerState(
        **owner.model_dump(),
        global_step=step,
        optimizer_updates=optimizer.updates,
        policy_sha256=sha256_hex(policy),
        optimizer_sha256=sha256_hex(moments),
    )
    text = json.loads(canonical_json(state.model_dump()))
    return {
        POLICY_FILE: policy,
        OPTIMIZER_FILE: moments,
        STATE_FILE: json.dumps(text, indent=1, sort_keys=True).encode() + b"\n",
    }


def _steps(root: Path) -> list[int]:
    if not root.is_dir():
        return []
    names = (entry.name.removeprefix(_PREFIX) for entry in root.iterdir() if entry.name.startswith(_PREFIX))
    return sorted(int(name) for name in names if name.isdigit())
