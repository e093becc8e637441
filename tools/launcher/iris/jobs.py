"""What Slipway asks of the Iris scheduler and what it is told, free of any Iris import.

`JobRequest` is the whole of a submission; `JobFacts` and `TaskFacts` are what the scheduler knows
about a job. The errors are named after who must act on them.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

TERMINAL_STATES = frozenset({"succeeded", "failed", "killed", "worker_failed", "unschedulable"})
"""Job states that never change again (marin-iris 0.2.227, iris/resources/state.py)."""


class JobRequest(BaseModel):
    """One job: `replicas` equal tasks, all with the same command and files.

    Attributes:
        name: Local name of the job; no "/". Inside a job it becomes a child of that job.
        user: First component of a top-level job id; not used for a child.
        argv: Command. A first word "python" is the interpreter of the worker.
        cpu: Cores for each task.
        memory: Memory for each task, as Iris writes it ("16GB").
        disk: Disk for each task, as Iris writes it ("64GB").
        replicas: Number of tasks.
        gpu_variant: GPU model ("H100"), or None for a CPU job.
        gpus_per_task: GPUs for each task; 0 for a CPU job.
        files: Files put below $IRIS_WORKDIR of each task before the command starts.
        env: Environment variables of each task. Iris keeps their values readable: no secrets.
        timeout_seconds: Longest run of one task, in seconds.
        max_task_retries: How many failed task attempts the whole job survives.
        coscheduled: All tasks start together on one group of nodes, or none does.
        secrets: Name -> value of what Iris delivers to each task as a read-only file. Iris shows nobody the
            value again, and neither does this model: printed or dumped it is stars.
        setup_scripts: Shell scripts that run in each task before the command; the embedded cluster runs none.
        priority: Priority band, None for the one Iris gives.
        target_cluster: Peer cluster that a hub hands the whole job to; None runs it where it is submitted.
        children_survive: A task that is started again finds the jobs it submitted before still running; else
            Iris ends them with the task ("Parent task retried"). Iris also leaves them running when the job
            fails for good: who gives up ends its children itself, and who looks at a failed job looks at its
            children too. It ends them when the job succeeds or is cancelled, either way.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)

    name: str = Field(min_length=1, pattern=r"^[^/\s]+$")
    user: str = Field(min_length=1, pattern=r"^[^/\s]+$")
    argv: tuple[str, ...] = Field(min_length=1)
    cpu: float = Field(gt=0)
    memory: str = Field(min_length=1)
    disk: str = Field(min_length=1)
    replicas: int = Field(ge=1)
    gpu_variant: str | None
    gpus_per_task: int = Field(ge=0)
    files: dict[str, bytes]
    env: dict[str, str]
    timeout_seconds: int = Field(ge=1)
    max_task_retries: int = Field(ge=0)
    coscheduled: bool
    secrets: dict[str, SecretStr] = {}
    setup_scripts: tuple[str, ...] = ()
    priority: Literal["production", "interactive", "batch", "system"] | None = None
    target_cluster: str | None = None
    children_survive: bool = False


class TaskFacts(BaseModel):
    """One task as the scheduler reports it.

    Attributes:
        index: Position of the task in its job, from 0.
        state: Lower-case state word ("running").
        exit_code: Exit status of a task that succeeded or failed; None if there was none (it has not
            ended, was killed, lost its node, or exceeded its time).
        error: Why the last attempt that went wrong did, with the end of its stderr; "" if none did.
        attempts: How many attempts were started.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    index: int
    state: str
    exit_code: int | None
    error: str
    attempts: int


class JobFacts(BaseModel):
    """One job as the scheduler reports it.

    `running` says only that tasks were assigned: a gang has started when every entry of `tasks`
    is running.

    Attributes:
        job_id: Full id ("/user/parent/name").
        name: Local name.
        state: Lower-case state word ("running").
        error: The scheduler's account of a failure; "" if none.
        pending_reason: Why the job waits, as the scheduler words it; "" if it does not.
        argv: Command it was submitted with.
        env: Environment it was submitted with; Iris blanks what looks like a credential.
        tasks: Its tasks, by index.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    job_id: str
    name: str
    state: str
    error: str
    pending_reason: str
    argv: tuple[str, ...]
    env: dict[str, str]
    tasks: tuple[TaskFacts, ...]


class LogLine(BaseModel):
    """One line a task wrote.

    Attributes:
        task_index: of the task, from 0.
        attempt: which start of the task wrote it, from 1.
        at_ms: when, in milliseconds since 1970 by the clock of its node.
        text: the line, as it was written.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    task_index: int
    attempt: int
    at_ms: int
    text: str


class LogPage(BaseModel):
    """Lines of a job's tasks, oldest first, and the place in the log after the last of them."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    lines: tuple[LogLine, ...]
    cursor: int


def is_terminal(state: str) -> bool:
    """True if a job in this state never changes again."""
    return state in TERMINAL_STATES


class IrisError(Exception):
    """Base of what can go wrong between Slipway and the scheduler."""


class JobNameTaken(IrisError):
    """The name is in use: the caller compares the job found with the one it meant."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(
            f"job {job_id}: Iris already has a job of this name, and a name is never used twice; "
            "look at that job, or ask for a new ordinal"
        )


class JobRefused(IrisError):
    """The scheduler understood the request and will not do it: the user changes the request."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Iris refused the request: {reason}")


class IrisUnreachable(IrisError):
    """No answer, and nothing was done: the user (or the operator) brings the scheduler back."""

    def __init__(self, url: str, seconds: float) -> None:
        self.url = url
        self.seconds = seconds
        super().__init__(
            f"Iris at {url} did not answer within {seconds:g} s (the Iris client's own default is 30 minutes); "
            "nothing was changed there. "
            "Check that the cluster runs and that the address is right, then run the command again"
        )


class LoginNeeded(IrisError):
    """The scheduler does not know who asks: the user logs in, and nothing was done."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(
            f"Iris at {url} wants to know who you are: {reason}; nothing was changed there. "
            "Log in with `iris --cluster=NAME login`, then run the command again"
        )


class ReplyLost(IrisError):
    """A submission was sent and its answer lost: the caller looks the job up by name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"job {name}: the request reached Iris but the answer was lost, so the job may exist; "
            "look it up by name before submitting again"
        )
