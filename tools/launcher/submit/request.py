"""The coordinator's job request: a pure function of the launch."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from tools.launcher.graph.names import sanitised_job_name
from tools.launcher.iris.jobs import JobRequest
from tools.launcher.iris.route import EMBEDDED, Route
from tools.launcher.iris.task_bootstrap import CODE_ARCHIVE, bootstrap_argv
from tools.launcher.store.records import RunKey
from tools.launcher.submit.code_archive import CodeArchive
from tools.launcher.submit.remote_setup import REQUIREMENTS_FILE, setup_script

# A fixed user makes a job's name one name for everybody: two people who launch one digest meet.
IRIS_USER = "slipway"

COORDINATOR_MODULE = "tools.launcher.coordinator.main"

# Sizes of Marin's coordinator (contract/typed-spec.md §5).
COORDINATOR_CPU = 4.0
COORDINATOR_MEMORY = "16GB"
COORDINATOR_DISK = "64GB"

# Iris ends a coordinator whose time is over and leaves its child; before that it ends the child itself.
DEADLINE_MARGIN_SECONDS = 300

Priority = Literal["production", "interactive", "batch", "system"]


class LaunchMismatch(Exception):
    """The bundle and what was asked for do not go together. The message names both and the fix."""


class LaunchFacts(BaseModel):
    """What a launch is besides its bundle.

    Attributes:
        experiment_name: `experiment_name` of the graph.
        stage, default_stage: the terminal stage asked for, and the experiment's own.
        ordinal: 1, or one more for each relaunch.
        cluster: name of the cluster, for the record.
        store_url: `file:///…` or `gs://bucket/prefix`, as the coordinator reaches it.
        object_root_url: `file:///…` of the folder that stands for all buckets; None reaches the real ones.
        coordinator_timeout_hours: deadline of the coordinator, in hours.
        max_retries: how often Iris starts a coordinator that was killed again (`IrisSkyRLExecution`).
        priority: band of the launch document, None for the one Iris gives.
        credentials: names of the declared credentials. Their values are never part of this.
        runtime: who trains: the stand-in, or the pinned MarinSkyRL commit.
        route: how the cluster's controller is reached.
        shape: what a smoke run must have in common with this launch (`submit.gates`).
        gates: `GateReport.facts()`.
        authorized: `who: why` of a relaunch, None of a first launch.
        rehearsal_variables: settings of a rehearsal, `SLIPWAY_REHEARSAL_*`, for the coordinator's
            environment. Iris keeps a job's environment readable by everyone: no secret goes here.
        store_variables: what the coordinator's environment needs to reach the store, likewise no secret.
        requirements: the packages that the coordinator's task installs first (`remote_setup`); b"" where a
            task has them.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    experiment_name: str = Field(min_length=1)
    stage: str = Field(min_length=1)
    default_stage: str = Field(min_length=1)
    ordinal: int = Field(ge=1)
    cluster: str
    store_url: str
    object_root_url: str | None
    coordinator_timeout_hours: int = Field(ge=1)
    max_retries: int = Field(default=0, ge=0)
    priority: Priority | None = None
    credentials: tuple[str, ...] = ()
    runtime: Literal["rehearsal", "marinskyrl"] = "rehearsal"
    route: Route = EMBEDDED
    shape: dict[str, Any] = {}
    gates: dict[str, Any] = {}
    authorized: str | None = None
    rehearsal_variables: dict[str, str] = {}
    store_variables: dict[str, str] = {}
    requirements: bytes = b""


def run_key(facts: LaunchFacts, launch_digest: str) -> RunKey:
    """Return the key of the launch's record.

    A launch that stops at another stage than the default has a record of its own,
    `<experiment>.<stage>`: importing first must not stand in the way of training.

    Raises:
        LaunchMismatch: a name, digest or ordinal that no record can have.
    """
    suffix = "" if facts.stage == facts.default_stage else f".{facts.stage}"
    try:
        return RunKey(
            experiment=facts.experiment_name + suffix, launch_digest=launch_digest, ordinal=facts.ordinal
        )
    except ValidationError as error:
        problems = [finding["msg"].removeprefix("Value error, ") for finding in error.errors()]
        raise LaunchMismatch("; ".join(problems)) from None


def coordinator_job_name(facts: LaunchFacts, launch_digest: str) -> str:
    """Return `<experiment>-<first 8 digits of the launch digest>-<ordinal>`, and `-<stage>` if not the
    default."""
    suffix = "" if facts.stage == facts.default_stage else f"-{facts.stage}"
    return sanitised_job_name(f"{facts.experiment_name}-{launch_digest[:8]}-{facts.ordinal}{suffix}")


def coordinator_request(
    facts: LaunchFacts,
    *,
    launch_digest: str,
    bundle_digest: str,
    code: CodeArchive,
    secrets: Mapping[str, SecretStr],
) -> JobRequest:
    """Return the request; the same arguments give the same request.

    Args:
        facts: the launch.
        launch_digest, bundle_digest: 64 hex digits, which the coordinator checks what it reads against.
        code: the launcher's code for the task.
        secrets: value of each name in `facts.credentials`. They are in the request's `secrets` and nowhere
            else in it.

    Raises:
        LaunchMismatch: a name, digest or ordinal that no record can have, or secrets that are not the
            declared ones.
    """
    key = run_key(facts, launch_digest)
    if set(secrets) != set(facts.credentials):
        differing = ", ".join(sorted(set(secrets) ^ set(facts.credentials)))
        raise LaunchMismatch(
            f"the credentials handed over and the declared ones differ: {differing}. Declare in the "
            "execution's `credentials` what the run needs, and set those variables"
        )
    seconds = facts.coordinator_timeout_hours * 3600
    arguments = [
        f"--store={facts.store_url}",
        *([] if facts.object_root_url is None else [f"--object-root={facts.object_root_url}"]),
        f"--bundle={bundle_digest}",
        f"--launch={launch_digest}",
        f"--experiment={key.experiment}",
        f"--ordinal={facts.ordinal}",
        f"--stage={facts.stage}",
        f"--runtime={facts.runtime}",
        f"--deadline-seconds={seconds - DEADLINE_MARGIN_SECONDS}",
        *(f"--credential={name}" for name in sorted(facts.credentials)),
    ]
    return JobRequest(
        name=coordinator_job_name(facts, launch_digest),
        user=IRIS_USER,
        argv=bootstrap_argv(COORDINATOR_MODULE, arguments),
        cpu=COORDINATOR_CPU,
        memory=COORDINATOR_MEMORY,
        disk=COORDINATOR_DISK,
        replicas=1,
        gpu_variant=None,
        gpus_per_task=0,
        files={
            CODE_ARCHIVE: code.data,
            **({REQUIREMENTS_FILE: facts.requirements} if facts.requirements else {}),
        },
        env={**facts.rehearsal_variables, **facts.store_variables},
        timeout_seconds=seconds,
        max_task_retries=facts.max_retries,
        coscheduled=False,
        secrets=dict(secrets),
        setup_scripts=(setup_script(),) if facts.requirements else (),
        priority=facts.priority,
        target_cluster=facts.route.target_cluster,
        # A coordinator that Iris starts again takes up the child that runs; see coordinator/walk.py.
        children_survive=True,
    )


def argument_of(argv: tuple[str, ...], flag: str) -> str | None:
    """Return the value of `--<flag>=value` in a coordinator's argv, None if it is not there."""
    start = f"--{flag}="
    return next((word.removeprefix(start) for word in argv if word.startswith(start)), None)
