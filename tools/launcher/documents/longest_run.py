"""How long the job of a launch may hold its nodes at most, from the limits that its documents state.

Beside the documents and not beside Iris, because what plans, what submits and what asks Iris all need it.
"""

from typing import Final, Literal, NamedTuple

PREEMPTIONS_PER_RETRY: Final = 2
"""How many preemptions of a task its job survives for each retry that it has. Two: when a gang's task fails or a
controller restarts, its siblings count as preempted, up to twice for one event (seen with marin-iris 0.2.227)."""


class LongestRun(NamedTuple):
    """The most time that a job may take.

    Attributes:
        seconds: in all.
        setting: the field of the execution that decides it.
        attempts: how many attempts of equal length `seconds` is the sum of; 1 where they do not count.
    """

    seconds: int
    setting: Literal["job_timeout_seconds", "coordinator_timeout_hours"]
    attempts: int


def most_attempts(max_retries: int, nodes: int) -> int:
    """Return how often a job's gang may be started.

    Iris (0.2.227, iris/cluster/controller/reconcile) counts failures over all tasks of a job, preemptions for each
    task alone, and starts the gang again for each of them: one task per node makes a budget of preemptions per node.

    Args:
        max_retries: of the execution.
        nodes: of the allocation.
    """
    return 1 + max_retries + nodes * max_retries * PREEMPTIONS_PER_RETRY


def longest_run(
    *, job_timeout_seconds: int, max_retries: int, nodes: int, coordinator_timeout_hours: int
) -> LongestRun:
    """Return the most time that a job may take.

    Args:
        job_timeout_seconds: after which Iris ends an attempt, counted from the start of each
            (iris/cluster/controller/reads.py, `_EXECUTION_TIMEOUT_STMT`); 0 or less means never.
        max_retries: of the execution.
        nodes: of the allocation.
        coordinator_timeout_hours: deadline of the coordinator, which ends the job with itself.
    """
    coordinator = coordinator_timeout_hours * 3600
    attempts = most_attempts(max_retries, nodes)
    if 0 < job_timeout_seconds * attempts <= coordinator:
        return LongestRun(job_timeout_seconds * attempts, "job_timeout_seconds", attempts)
    return LongestRun(coordinator, "coordinator_timeout_hours", 1)
