"""Where artifacts live: durable outputs, temporary roots, staging folders on a node.

Source: contract, typed-spec.md §2 and clusters-and-models.md §1.2 and §1.3.
"""

from tools.launcher.graph.names import last_component

TTL_STEPS_DAYS = (1, 2, 3, 4, 5, 6, 7, 14, 30)
"""Lifetimes that the buckets' lifecycle rules know (marin-rigging 0.2.210)."""

MODEL_STAGING = "/tmp/marinskyrl/models"
DATA_STAGING = "/tmp/marinskyrl/data"


def output_path(prefix: str, name: str, version: str) -> str:
    """Return `{prefix}/{name}/{version}`, the durable address of an artifact."""
    return f"{prefix.rstrip('/')}/{name}/{version}"


def rounded_ttl_days(days: int) -> int:
    """Round a wished lifetime up to the next step; above the last step is the last step.

    Raises:
        ValueError: for zero or less.
    """
    if days <= 0:
        raise ValueError(f"temporary_storage_ttl_days must be positive, got {days}")
    return next((step for step in TTL_STEPS_DAYS if step >= days), TTL_STEPS_DAYS[-1])


def temporary_root(temporary_bucket: str, ttl_days: int, durable_path: str) -> str:
    """Return the root of everything that may be deleted after `ttl_days`.

    The root carries neither runtime commit nor attempt: a new runtime under an old name and
    version finds the old checkpoints there (check ART-06).
    """
    key = durable_path.split("://", 1)[-1].split("/", 1)[-1]
    return f"{temporary_bucket.rstrip('/')}/tmp/ttl={rounded_ttl_days(ttl_days)}d/skyrl/{key}"


def model_staging_path(name: str) -> str:
    """Return the folder on each node into which a model artifact is copied."""
    return f"{MODEL_STAGING}/{last_component(name)}"


def data_staging_path(name: str) -> str:
    """Return the folder on each node into which a data artifact is copied."""
    return f"{DATA_STAGING}/{last_component(name)}"
