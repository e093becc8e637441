"""What a task leaves for the launcher: exit codes, and rank 0's outcome. Imports no numbers."""

from typing import Final

from pydantic import BaseModel, ConfigDict

TASK_FAILED: Final = 3
PEER_FAILED: Final = 4
DOCUMENT_FILE: Final = "launch.yaml"
OUTCOME_FILE: Final = "outcome.json"


class Outcome(BaseModel):
    """What rank 0 leaves for the launcher, as the last file of a run.

    Attributes:
        rehearsal: True.
        global_step: training steps done.
        resumed_from_step: the checkpoint this attempt began at, 0 for none.
        checkpoint, export: where they are (URIs); export is None if not asked for.
        task_count: tasks that trained.
        reward_first, reward_last: mean rewards of this attempt's first and last step (equal to
            the resumed run's records if no step was left to do).
        validation_reward: share of validation rows answered right, None without validation data.
        stand_in: what the environment really was.
        notices: what of the document was simplified.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    rehearsal: bool
    global_step: int
    resumed_from_step: int
    checkpoint: str
    export: str | None
    task_count: int
    reward_first: float | None
    reward_last: float | None
    validation_reward: float | None
    stand_in: str
    notices: list[str]
