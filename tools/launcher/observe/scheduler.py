"""What observing asks of the scheduler; `iris.gateway.IrisGateway` has it."""

from typing import Protocol

from tools.launcher.iris.jobs import JobFacts


class Describes(Protocol):
    """A scheduler that can be asked about a job."""

    def describe(self, job_id: str) -> JobFacts | None:
        """Return what the scheduler knows of a job, None if there is no such job.

        Raises:
            IrisError: it does not answer.
        """
        ...
