"""Where and with which resources a run executes. Never part of identity."""

from pydantic import BaseModel

from tools.launcher.rl.topology import SPEC


class IrisSkyRLExecution(BaseModel):
    """Placement of the coordinator and of the child job. Source: contract, typed-spec.md §1."""

    model_config = SPEC

    cluster: str
    """Name of the target cluster."""
    cluster_config: str
    """Path of that cluster's Iris configuration."""
    cpu: int | float
    """CPUs per node of the child job."""
    memory: str
    """Per node, such as `700GB`; Iris reads GB as GiB."""
    disk: str
    """Per node."""
    priority: str
    """`interactive` or `batch`; `production` and `system` are for administrators."""
    max_retries: int
    """Of the child job."""
    target_cluster: str | None
    """Federated submission: the cluster the hub passes the job to."""
    parent_cluster_config: str | None
    """Configuration path of the hub; both or neither of the two."""
    coordinator_timeout_hours: int
    wandb_entity: str | None
    """None falls back to the launch host's WANDB_ENTITY, then to the entity `dogml` (EXE-12)."""
    job_timeout_seconds: int
    """Of the child job; 0 means none."""
