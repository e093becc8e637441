"""The state of a run now: what its record says, what Iris says, what its files show."""

from pydantic import BaseModel, ConfigDict

from tools.launcher.iris.jobs import IrisError, is_terminal
from tools.launcher.observe.evidence import ranks_in, read_metrics
from tools.launcher.observe.newest_checkpoint import Checkpoint, Checkpoints, newest_checkpoint
from tools.launcher.observe.run_files import RunFiles, answering_attempt, run_files
from tools.launcher.observe.scheduler import Describes
from tools.launcher.observe.training_steps import training_steps
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import ObjectStore, StoreError
from tools.launcher.store.objects import FolderObjects
from tools.launcher.store.records import RunKey, RunRecord, RunState


class JobView(BaseModel):
    """A job as far as a status shows it.

    Attributes:
        job_id: full id.
        state: Iris's word, or "unknown" (Iris was not asked or did not answer), or "missing" (it has no
            such job).
        running_tasks, started_tasks, tasks: of the job; 0 if unknown. Started are also those that succeeded.
        pending_reason: why it waits, "" if it does not.
        error: the scheduler's account of a failure, "" if none.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    job_id: str
    state: str
    running_tasks: int
    started_tasks: int
    tasks: int
    pending_reason: str
    error: str

    @property
    def is_gone(self) -> bool:
        """True if it ended or does not exist."""
        return self.state == "missing" or is_terminal(self.state)


class EventView(BaseModel):
    """The latest event of a record."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    kind: str
    at: str
    by: str
    step: str | None


class RunStatus(BaseModel):
    """A run at one moment.

    Attributes:
        key: the run.
        state: by its record.
        stage, job_name, who, when: as recorded.
        coordinator, child: its jobs, None before they exist.
        tasks_joined, tasks_expected: of the gang, n of N; expected is 0 if the plan cannot be read, or nothing is trained. Of a run
            of the MarinSkyRL runtime, which reports no joining: tasks that Iris started.
        step, steps_expected: training steps done (None while it cannot be known: MarinSkyRL reports none
            before the end), and planned (None if the plan leaves it open).
        reward_first, reward_last, reward_mean: mean rewards of the first and the latest step and of all, None
            before the first.
        checkpoint: the newest whole one; None if it was not looked for.
        last_event: the latest event.
        reason: why it failed, was refused, was cancelled or conflicts.
        asked_to_cancel: who asked for its cancellation and why, "" if nobody did or it is done.
        leaves_jobs: it failed and jobs of it may still work: Iris may start its coordinator again.
        verified: True, False, or None if never asked.
        note: what could not be read, "" if nothing.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    key: RunKey
    state: RunState
    stage: str | None
    job_name: str | None
    who: str
    when: str
    coordinator: JobView | None
    child: JobView | None
    tasks_joined: int
    tasks_expected: int
    step: int | None
    steps_expected: int | None
    reward_first: float | None
    reward_last: float | None
    reward_mean: float | None
    checkpoint: Checkpoint | None
    last_event: EventView
    reason: str | None
    asked_to_cancel: str
    leaves_jobs: bool
    verified: bool | None
    note: str

    @property
    def pending_reason(self) -> str:
        """Why the run waits in the scheduler's queue, "" if it does not."""
        waiting = [job.pending_reason for job in (self.child, self.coordinator) if job and job.pending_reason]
        return waiting[0] if waiting and not self.is_over else ""

    @property
    def steps_known(self) -> int | None:
        """Training steps done; where no runtime tells, those in the newest checkpoint; None if neither."""
        if self.step is not None or self.checkpoint is None:
            return self.step
        return self.checkpoint.step

    @property
    def is_over(self) -> bool:
        """True if nothing of the run works any more, by its record."""
        return self.state.is_final and not self.leaves_jobs

    @property
    def coordinator_is_gone(self) -> bool:
        """True if the coordinator ended, or was lost, and recorded no end."""
        live = self.state.is_live or self.leaves_jobs
        return live and self.coordinator is not None and self.coordinator.is_gone


def read_status(
    record: RunRecord,
    store: ObjectStore,
    object_root: ObjectRoot | None,
    gateway: Describes | None,
    *,
    checkpoints: Checkpoints | None = None,
) -> RunStatus:
    """Return the run's status. Never fails: what cannot be read is in `note`.

    Args:
        record: as just loaded.
        store: holds its bundle.
        object_root: holds its files; None if they are where they cannot be read from here.
        gateway: the scheduler, None if it is not to be asked.
        checkpoints: looks for the newest checkpoint; None looks in `object_root`, if there is one.
    """
    notes: list[str] = []
    coordinator = _job_view(record.coordinator_job_id, gateway, notes)
    # One that did not answer for ten seconds is not asked a second time.
    answering = None if notes else gateway
    child = _job_view(record.child_job_ids[-1] if record.child_job_ids else None, answering, notes)
    files = None
    try:
        files = run_files(record, store)
    except StoreError as error:
        notes.append(str(error))
    joined, step, rewards = (
        _told_of_training(record, child)
        if record.runtime == "marinskyrl"
        else _training(record, files, object_root, notes)
    )
    latest = record.events[-1]
    named = latest.facts.get("step")
    return RunStatus(
        key=record.key,
        state=record.state,
        stage=record.stage,
        job_name=record.job_name,
        who=record.who,
        when=record.when,
        coordinator=coordinator,
        child=child,
        tasks_joined=joined,
        tasks_expected=files.num_nodes if files and files.rl_step else 0,
        step=step,
        steps_expected=(files.max_steps if files.rl_step else 0) if files else None,
        reward_first=rewards[0] if rewards else None,
        reward_last=rewards[-1] if rewards else None,
        reward_mean=sum(rewards) / len(rewards) if rewards else None,
        checkpoint=_checkpoint(record, files, object_root, checkpoints),
        last_event=EventView(
            kind=latest.kind, at=latest.at, by=latest.by, step=named if isinstance(named, str) else None
        ),
        reason=record.reason,
        asked_to_cancel=_asked_to_cancel(record),
        leaves_jobs=record.leaves_jobs,
        verified=True
        if record.verification is not None
        else (False if record.verify_failure is not None else None),
        note="; ".join(dict.fromkeys(notes)),
    )


def _asked_to_cancel(record: RunRecord) -> str:
    asked = [event.facts.get("authorized") for event in record.cancel_requests]
    if not asked or record.state in (RunState.CANCELLED, RunState.SUCCEEDED):
        return ""
    return asked[-1] if isinstance(asked[-1], str) else "unknown"


def _job_view(job_id: str | None, gateway: Describes | None, notes: list[str]) -> JobView | None:
    if job_id is None:
        return None
    state, facts = "unknown", None
    if gateway is not None:
        try:
            facts = gateway.describe(job_id)
            state = facts.state if facts else "missing"
        except IrisError as error:
            notes.append(str(error))
    tasks = facts.tasks if facts else ()
    return JobView(
        job_id=job_id,
        state=state,
        running_tasks=sum(task.state == "running" for task in tasks),
        started_tasks=sum(task.state in ("running", "succeeded") for task in tasks),
        tasks=len(tasks),
        pending_reason=facts.pending_reason if facts else "",
        error=facts.error if facts else "",
    )


def _checkpoint(
    record: RunRecord,
    files: RunFiles | None,
    object_root: ObjectRoot | None,
    checkpoints: Checkpoints | None,
) -> Checkpoint | None:
    # Before a child there is nothing new, and what an earlier attempt left would be taken for this one's.
    if files is None or files.rl_step is None or not record.child_job_ids:
        return None
    if checkpoints is not None:
        return checkpoints(files)
    return None if object_root is None else newest_checkpoint(files, FolderObjects(object_root))


def _told_of_training(record: RunRecord, child: JobView | None) -> tuple[int, int | None, list[float]]:
    """As `_training`, from the record and Iris: files of the runtime say nothing of it before the end."""
    steps = [event.facts.get("global_step") for event in record.events if event.kind == "step_finished"]
    known = [step for step in steps if type(step) is int]
    return child.started_tasks if child else 0, known[-1] if known else None, []


def _training(
    record: RunRecord, files: RunFiles | None, object_root: ObjectRoot | None, notes: list[str]
) -> tuple[int, int | None, list[float]]:
    """Tasks joined, steps done, mean rewards of the steps."""
    if files is None or files.rl_step is None:
        return 0, 0, []
    if object_root is None:
        notes.append(
            f"its files are at {files.attempts_root}, which is not read from here: no tasks and steps"
        )
        return 0, 0, []
    if record.state.is_live and not record.child_job_ids:
        # What lies there is of a launch of the same document at another stage.
        return 0, 0, []
    try:
        attempt_id = answering_attempt(record, files, object_root)
        attempt = files.attempt_uri(attempt_id)
        joined = [rank for rank in ranks_in(object_root.path(f"{attempt}/joined")) if rank < files.num_nodes]
        lines = read_metrics(object_root, f"{attempt}/metrics.jsonl").lines
        # Until the end is known, steps of an earlier attempt may still have to be done again.
        if record.state is RunState.SUCCEEDED:
            lines = training_steps(files, attempt_id, object_root).lines
    except (StoreError, OSError) as error:
        notes.append(str(error))
        return 0, 0, []
    rewards = [float(line["reward_mean"]) for line in lines if type(line.get("reward_mean")) in (int, float)]
    return len(joined), lines[-1]["step"] if lines else 0, rewards
