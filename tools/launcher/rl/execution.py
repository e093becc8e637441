"""Where and with which resources a run executes. Never part of identity."""

from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from tools.launcher.rl.topology import SPEC


class SkyRLIngress(BaseModel):
    """How sandboxes outside the cluster reach the engines. Source: contract, launch-document.md §4.5."""

    model_config = SPEC

    mode: str
    """`direct`, or `controller`: through the controller of Iris."""
    host: str
    """Of the controller's dashboard; "" on a cw-* cluster, where the runtime knows it."""
    record_literal: bool
    """Keep the literal requests of the agents."""
    vllm_http_port: int
    """Of the engines' HTTP server."""


class IrisSkyRLExecution(BaseModel):
    """Placement of the coordinator and of the child job. Source: contract, typed-spec.md §1."""

    # What somebody took for the name of a credential may be the secret itself.
    model_config = ConfigDict(**SPEC, hide_input_in_errors=True)

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
    credentials: tuple[str, ...] | None = None
    """Names of the secrets that the run needs forwarded, such as `WANDB_API_KEY`; never their values. () needs
    none, None does not say."""
    ingress: SkyRLIngress | None = None
    """None leaves the section out of the document: the runtime then takes `direct`."""

    @field_validator("credentials", mode="before")
    @classmethod
    def _check_credentials(cls, value: Any) -> Any:
        # The message of pydantic's own check would show the value.
        if value is None or (isinstance(value, tuple) and all(isinstance(name, str) for name in value)):
            return value
        raise ValueError('credentials must be a tuple of names, such as ("WANDB_API_KEY",)')
