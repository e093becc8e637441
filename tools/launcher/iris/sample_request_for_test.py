"""A request for tests to vary."""

from typing import Any


def request(**changes: Any) -> dict[str, Any]:
    """Fields of a small CPU job, with `changes` laid over them."""
    return {
        "name": "cat_count-0123abcd-1",
        "user": "slipway",
        "argv": ("python", "-c", "pass"),
        "cpu": 4.0,
        "memory": "16GB",
        "disk": "64GB",
        "replicas": 1,
        "gpu_variant": None,
        "gpus_per_task": 0,
        "files": {"slipway.zip": b"PK"},
        "env": {},
        "timeout_seconds": 3600,
        "max_task_retries": 0,
        "coscheduled": False,
    } | changes
