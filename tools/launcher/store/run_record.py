"""Folding a run's events into what is known about the run. Pure: no store, no clock."""

import enum
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.launcher.store.run_events import RunEvent, RunKey


class RunState(enum.StrEnum):
    """Where a run stands by its record alone. Iris may know more; see observe/status.py."""

    INTENT = "intent"
    REFUSED = "refused"
    CONFLICT = "conflict"
    SUBMITTED = "submitted"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """True if no further work will happen under this key."""
        return self in (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)

    @property
    def is_live(self) -> bool:
        """True if a job was accepted and its end is not recorded."""
        return self in (RunState.SUBMITTED, RunState.RUNNING)


# No job exists for these, so a later submission of the same key may still succeed.
_BEFORE_SUBMISSION = (None, RunState.INTENT, RunState.REFUSED, RunState.CONFLICT)


class RunRecord(BaseModel):
    """Everything the events of one run say.

    The facts read, by event kind (all optional, others kept in `events`):

    - intent: job_name, bundle, recipe, stage, runtime_commit, topology, artifacts, forwarded_names,
      cluster, source_commit, dirty, store, object_root, route (of `iris.route.Route`), runtime, shape (what a
      smoke must have in common), gates (id -> how it was passed), overrides (gate id -> who and why),
      authorized (of a relaunch)
    - submitted, coordinator_started: job_id (the coordinator's), bundle
    - child_submitted: job_id (the child's), attempt_id
    - step_reused, step_started, step_finished: step (`name@version`)
    - failed, refused, conflict, cancelled: reason
    - cancel_requested, cancelled: authorized, jobs (ids of what ran)

    Attributes:
        key: the run's key.
        events: in order of `seq`.
        state: by the rules of `fold`.
        job_name: the coordinator's name in Iris.
        coordinator_job_id: the coordinator's job, None before submission.
        child_job_ids: the RL jobs, in order of first appearance.
        attempt_ids: 12-hex attempt ids of the children, likewise.
        artifacts: `name@version` of every step of the plan and every step seen.
        recipe_digest, launch_digest, bundle_digest: 64 hex digits, "" if the record does not say.
        topology: as recorded, such as {"num_nodes": 2, "gpus_per_node": 8, "gpu_variant": "H100"}.
        who, when: writer and time of the intent (of the first event, if there is none).
        source_commit, dirty: of the checkout the launch came from; None is unknown.
        forwarded_names: names (never values) of the environment variables and credentials handed on.
        route: how the run's controller is reached, as the intent says; {} if it does not.
        runtime: `rehearsal` or `marinskyrl`, None if the record does not say.
        shape: see `submit.gates`; {} if the record does not say.
        reason: of the latest failed, refused or conflict event that still describes the state.
        verification: facts of the `verified` event; None if the latest answer is not yes.
        verify_failure: facts of the `verify_failed` event if that is the latest answer.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    key: RunKey
    events: tuple[RunEvent, ...]
    state: RunState
    job_name: str | None
    coordinator_job_id: str | None
    child_job_ids: tuple[str, ...]
    attempt_ids: tuple[str, ...]
    artifacts: tuple[str, ...]
    recipe_digest: str
    launch_digest: str
    bundle_digest: str
    runtime_commit: str | None
    topology: dict[str, Any]
    stage: str | None
    cluster: str | None
    who: str
    when: str
    source_commit: str | None
    dirty: bool | None
    forwarded_names: tuple[str, ...]
    route: dict[str, Any]
    runtime: str | None
    shape: dict[str, Any]
    reason: str | None
    verification: dict[str, Any] | None
    verify_failure: dict[str, Any] | None

    @property
    def cancel_requests(self) -> tuple[RunEvent, ...]:
        """The events by which the run was to be cancelled, oldest first."""
        return tuple(event for event in self.events if event.kind == "cancel_requested")

    @property
    def leaves_jobs(self) -> bool:
        """True if the run failed and jobs of it may still work.

        A coordinator that failed, or was lost, may have left its child behind (`child_running`), and one that
        was interrupted (recorded by earlier versions) may be started again by Iris. A later `failed` event
        without either closes the run.
        """
        if self.state is not RunState.FAILED:
            return False
        facts = next(event.facts for event in reversed(self.events) if event.kind == "failed")
        return facts.get("interrupted") is True or bool(facts.get("child_running"))


def fold(key: RunKey, events: Iterable[RunEvent]) -> RunRecord:
    """Return what `events` say together. The order they are given in does not matter.

    State rules: an event before submission never undoes a submission (two launchers may race, and the
    slower one's event comes late); a coordinator that Iris restarts after a failure is running again;
    success is final, and so is a cancellation of anything else.

    Raises:
        ValueError: no events.
    """
    ordered = tuple(sorted(events, key=lambda event: event.seq))
    if not ordered:
        raise ValueError(f"{key}: a record has at least one event")
    opening = next((event for event in ordered if event.kind == "intent"), ordered[0])
    plan = opening.facts if opening.kind == "intent" else {}
    state, reason = _fold_state(ordered)
    verdict = next(
        (event for event in reversed(ordered) if event.kind in ("verified", "verify_failed")), None
    )
    coordinator_events = [event for event in ordered if event.kind in ("submitted", "coordinator_started")]
    return RunRecord(
        key=key,
        events=ordered,
        state=state,
        job_name=_text(plan.get("job_name")),
        coordinator_job_id=_last_text(coordinator_events, "job_id"),
        child_job_ids=_texts(
            event.facts.get("job_id") for event in ordered if event.kind == "child_submitted"
        ),
        attempt_ids=_texts(
            event.facts.get("attempt_id") for event in ordered if event.kind == "child_submitted"
        ),
        artifacts=_texts([*_list(plan.get("artifacts")), *(event.facts.get("step") for event in ordered)]),
        recipe_digest=_text(plan.get("recipe")) or "",
        launch_digest=key.launch_digest,
        bundle_digest=_last_text(coordinator_events, "bundle") or _text(plan.get("bundle")) or "",
        runtime_commit=_text(plan.get("runtime_commit")),
        topology=_mapping(plan.get("topology")),
        stage=_text(plan.get("stage")),
        cluster=_text(plan.get("cluster")),
        who=opening.by,
        when=opening.at,
        source_commit=_text(plan.get("source_commit")),
        dirty=plan["dirty"] if isinstance(plan.get("dirty"), bool) else None,
        forwarded_names=_texts(_list(plan.get("forwarded_names"))),
        route=_mapping(plan.get("route")),
        runtime=_text(plan.get("runtime")),
        shape=_mapping(plan.get("shape")),
        reason=reason,
        verification=verdict.facts if verdict and verdict.kind == "verified" else None,
        verify_failure=verdict.facts if verdict and verdict.kind == "verify_failed" else None,
    )


def _fold_state(events: tuple[RunEvent, ...]) -> tuple[RunState, str | None]:
    state: RunState | None = None
    reason: str | None = None
    for event in events:
        new = _next_state(state, event.kind)
        if new is not state or event.kind in ("failed", "refused", "conflict", "cancelled"):
            state = new
            if state in (RunState.FAILED, RunState.REFUSED, RunState.CONFLICT, RunState.CANCELLED):
                reason = _text(event.facts.get("reason")) or reason
            else:
                reason = None
    # Only kinds of a later writer: something was meant to happen, nothing known did.
    return state or RunState.INTENT, reason


def _next_state(state: RunState | None, kind: str) -> RunState | None:
    match kind:
        case "intent" if state is None:
            return RunState.INTENT
        case "refused" | "conflict" if state in _BEFORE_SUBMISSION:
            return RunState(kind)
        case "submitted" if state in _BEFORE_SUBMISSION:
            return RunState.SUBMITTED
        case "cancelled" if state is not RunState.SUCCEEDED:
            return RunState.CANCELLED
        case "coordinator_started" if state not in (RunState.SUCCEEDED, RunState.CANCELLED):
            return RunState.RUNNING
        case "step_reused" | "step_started" | "child_submitted" | "step_finished" if not (
            state and state.is_final
        ):
            return RunState.RUNNING
        case "failed" if state not in (RunState.SUCCEEDED, RunState.CANCELLED):
            return RunState.FAILED
        case "succeeded":
            return RunState.SUCCEEDED
        case _:
            return state


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _texts(values: Iterable[Any]) -> tuple[str, ...]:
    """The strings among `values`, each once, in order of first appearance."""
    return tuple(dict.fromkeys(value for value in values if isinstance(value, str)))


def _last_text(events: list[RunEvent], name: str) -> str | None:
    return next((value for event in reversed(events) if (value := _text(event.facts.get(name)))), None)
