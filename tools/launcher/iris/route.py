"""How a cluster's controller is reached, free of any Iris import."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator


class Route(BaseModel):
    """The way from a command to the controller that takes a run's jobs. Kept in the run's record.

    Attributes:
        scheduler: `embedded` is the local Iris of the user who asks; `iris` is a cluster of others.
        config: Iris configuration of the controller to talk to, as the launch document names it: the
            hub's (`parent_cluster_config`) where the run is federated, else the cluster's own.
        controller: address of the controller (`http://127.0.0.1:10000`), given by a user who has a tunnel of
            their own; it takes the place of `config`.
        target_cluster: peer that the hub hands the jobs to, None without a hub.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    scheduler: Literal["embedded", "iris"]
    config: str | None = None
    controller: str | None = None
    target_cluster: str | None = None

    @model_validator(mode="after")
    def _check_reachable(self) -> Self:
        if self.scheduler == "iris" and self.config is None and self.controller is None:
            raise ValueError("a route to a cluster has an Iris configuration or a controller's address")
        return self


EMBEDDED = Route(scheduler="embedded")
