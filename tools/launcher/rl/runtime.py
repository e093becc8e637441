"""The pinned runtime and how long a run keeps its checkpoints. Identity-bearing."""

from typing import Literal

from pydantic import BaseModel, Field

from tools.launcher.rl.topology import SPEC


class SkyRLRuntime(BaseModel):
    """A locked dependency set of one MarinSkyRL commit.

    Experiments get it from `BuildInputs.skyrl_runtime`, so that the commit is the one of the
    runtime manifest in BUILD.bazel and never typed by hand.
    """

    model_config = SPEC

    profile: Literal["fsdp", "megatron"]
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")


class SkyRLRetentionPolicy(BaseModel):
    """What is kept, and for how long."""

    model_config = SPEC

    resume_checkpoint_count: int
    """Checkpoints kept for resuming, 1 to 5. Identity-bearing."""
    temporary_storage_ttl_days: int
    """Lifetime of checkpoints and attempts, rounded up to a lifecycle step. Not identity."""
