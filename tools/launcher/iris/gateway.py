"""The scheduler as Slipway uses it: submit once, describe, list children, read logs, cancel.

Everything goes through the controller's RPC client as marin-iris generates it, below its `IrisClient` and
`RemoteClusterClient`. The first adds to each submission what nobody asked for (provenance captured with
`git stash create` in the user's folder, tokens found in the user's environment, the parent's
variables); importing either costs a process 1.5 CPU seconds (pyarrow, duckdb, s3fs, google.cloud), and a
launch has several processes that ask Iris something. `launch_message` makes what they would send.
A job submitted here has exactly the environment of its `JobRequest`. What Iris itself
adds to a task are the IRIS_* variables, TMPDIR and its cache folders (UV_CACHE_DIR, HF_HUB_CACHE,
CARGO_HOME, ...).

Iris is imported when a gateway is opened, never with this module.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from pydantic import SecretStr

from tools.launcher.iris.jobs import (
    IrisUnreachable,
    JobFacts,
    JobNameTaken,
    JobRefused,
    JobRequest,
    LoginNeeded,
    LogLine,
    LogPage,
    ReplyLost,
    TaskFacts,
    is_terminal,
)
from tools.launcher.iris.this_task import ThisTask, this_task

if TYPE_CHECKING:
    from iris.cluster.client.remote_client import RemoteClusterClient
    from rigging.credentials import ClientCredentials

    from tools.launcher.iris.capacity import BackendFacts, PeerFacts

LAUNCH_REPLY_SECONDS = 30.0
"""How long one submission may wait for its answer. The client's own floor is 180 s, made for
replacing a job, which never happens here."""

ERROR_TAIL = 4000
"""Characters kept of an error: the end, where the cause is."""

REFUSAL_LENGTH = 300
"""Characters kept of a refusal: the beginning, where the reason is."""

MAX_LOG_LINES = 10_000
"""Lines of log read for one job: the last ones."""

_PAGE_SIZE = 500
"""Jobs asked for at a time."""


class _NotReached(Exception):
    """The controller got nothing of the request."""


class _NoAnswer(Exception):
    """The controller may have got the request; its answer did not come."""


class _BoundedCalls:
    """Interceptor that owns retrying, for one client.

    The client retries for 30 minutes what `is_retryable_error` accepts, and that is a ConnectError
    only. This retries for `seconds` what never reached the controller, or what may be repeated
    without harm, and then raises an error the client passes on at once: no global is patched.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def intercept_unary_sync(self, call_next: Callable[[Any, Any], Any], request: Any, ctx: Any) -> Any:
        from connectrpc.code import Code
        from connectrpc.errors import ConnectError
        from connectrpc.request import RequestContext

        launch = ctx.method().name == "LaunchJob"
        end = time.monotonic() + self._seconds
        pause = 0.1
        while True:
            left = max(end - time.monotonic(), 0.1)
            attempt = RequestContext(
                method=ctx.method(),
                http_method=ctx.http_method(),
                request_headers=ctx.request_headers(),
                timeout_ms=int((LAUNCH_REPLY_SECONDS if launch else left) * 1000),
            )
            try:
                return call_next(request, attempt)
            except ConnectError as error:
                if error.code not in (
                    Code.UNAVAILABLE,
                    Code.INTERNAL,
                    Code.DEADLINE_EXCEEDED,
                    Code.RESOURCE_EXHAUSTED,
                    Code.UNKNOWN,
                    Code.ABORTED,
                    Code.CANCELED,
                ):
                    raise
                # The transport names a failure to connect ConnectionError; RESOURCE_EXHAUSTED is
                # the controller shedding load before the handler runs.
                untouched = (
                    isinstance(error.__cause__, ConnectionError) or error.code is Code.RESOURCE_EXHAUSTED
                )
                if launch and not untouched:
                    raise _NoAnswer(str(error)) from error
                if time.monotonic() + pause >= end:
                    raise _NotReached(str(error)) from error
            time.sleep(pause)
            pause = min(pause * 2, 1.0)


class _Bearer:
    """Interceptor that presents a task's token, as `rigging.auth.BearerTokenInjector` does, which would cost
    the task half a second of imports."""

    def __init__(self, token: SecretStr) -> None:
        self._token = token

    def on_start_sync(self, ctx: Any) -> None:
        ctx.request_headers()["authorization"] = f"Bearer {self._token.get_secret_value()}"

    def on_end_sync(self, token: None, ctx: Any, error: Exception | None) -> None:
        """Called after each request; there is nothing to do."""


class IrisGateway:
    """A connection to one controller. Close it, or use it as a context manager."""

    def __init__(
        self,
        url: str,
        *,
        give_up_after_seconds: float,
        task: ThisTask | None = None,
        credentials: "ClientCredentials | None" = None,
    ) -> None:
        """Open a connection; nothing is sent yet.

        Args:
            url: Address of the controller ("http://127.0.0.1:10000").
            give_up_after_seconds: How long a call tries to reach it, in seconds.
            task: The running task when called from one; what is submitted becomes a child of its job.
            credentials: Who asks, for a cluster that wants to know; inside a job the task's own are used.
        """
        from iris.rpc.compression import IRIS_RPC_COMPRESSIONS
        from iris.rpc.controller_connect import ControllerServiceClientSync

        _go_directly_to_loopback(url)
        self.url = url
        self._seconds = give_up_after_seconds
        self._task = task
        self._login_errors = () if task is not None or credentials is None else _errors_of_logins()
        self._interceptors: list[Any] = [_BoundedCalls(give_up_after_seconds)]
        if task is not None and task.token is not None:
            self._interceptors.append(_Bearer(task.token))
        elif task is None and credentials is not None:
            self._interceptors += credentials.interceptors()
        self._service = ControllerServiceClientSync(
            address=url,
            timeout_ms=int(give_up_after_seconds * 1000),
            interceptors=self._interceptors,
            accept_compression=IRIS_RPC_COMPRESSIONS,
            send_compression=None,
        )
        self._log_reader: RemoteClusterClient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the connection; the gateway is not usable afterwards."""
        self._service.close()
        if self._log_reader is not None:
            self._log_reader.shutdown()

    def job_id_of(self, user: str, name: str) -> str:
        """The id `submit` gives a request of this user and name: a child's id inside a job."""
        return f"/{user}/{name}" if self._task is None else f"{self._task.job_id}/{name}"

    def submit(self, request: JobRequest) -> str:
        """Submit a job under a name never used before.

        Returns:
            The job's id.

        Raises:
            JobNameTaken: A job of this name exists, finished or not.
            JobRefused: The controller will never run this request.
            IrisUnreachable: The controller was not reached; nothing was submitted.
            ReplyLost: The request was sent; whether the job exists is not known.
        """
        from tools.launcher.iris.launch_message import launch_message

        job_id = self.job_id_of(request.user, request.name)
        if (request.gpu_variant is None) != (request.gpus_per_task == 0):
            raise JobRefused(
                f"job {request.name}: gpu_variant {request.gpu_variant!r} and gpus_per_task "
                f"{request.gpus_per_task} do not go together; give both, or None and 0"
            )
        inherited = () if self._task is None else self._task.constraints
        try:
            message = launch_message(request, job_id, inherited)
        except ValueError as error:
            raise JobRefused(f"job {request.name}: {error}") from None
        # Asked first because a request that was sent into the void can't be told from one whose
        # answer was lost; a question that changes nothing can.
        self.describe(job_id)
        try:
            with self._narrowed():
                submitted = self._service.launch_job(message)
        except _NameTaken:
            raise JobNameTaken(job_id) from None
        except _NotFound as error:
            raise JobRefused(f"job {job_id}: {error}") from None
        except _NoAnswer:
            raise ReplyLost(job_id) from None
        return str(submitted.job_id)

    def describe(self, job_id: str) -> JobFacts | None:
        """What the scheduler knows about a job, or None if it has no such job.

        Raises:
            IrisUnreachable: The controller was not reached.
            JobRefused: The controller refused to answer.
        """
        from iris.rpc import controller_pb2

        try:
            with self._narrowed():
                answer = self._service.get_job_status(
                    controller_pb2.Controller.GetJobStatusRequest(job_id=job_id)
                )
                tasks = self._service.list_tasks(controller_pb2.Controller.ListTasksRequest(job_id=job_id))
        except _NotFound:
            return None
        return _job_facts(answer.job, answer.request, tasks.tasks)

    def children(self, job_id: str) -> tuple[JobFacts, ...]:
        """The direct children of a job, by id.

        Raises:
            IrisUnreachable: The controller was not reached.
            JobRefused: The controller refused to answer.
        """
        from iris.rpc import controller_pb2

        query = controller_pb2.Controller.JobQuery(
            scope=controller_pb2.Controller.JOB_QUERY_SCOPE_CHILDREN, parent_job_id=job_id
        )
        try:
            with self._narrowed():
                ids = sorted(job.job_id for job in self._listed(query))
        except _NotFound:
            return ()
        facts = (self.describe(child) for child in ids)
        return tuple(found for found in facts if found is not None)

    def unfinished_jobs(self) -> tuple[str, ...]:
        """Ids of all top-level jobs that have not ended, by id.

        Raises:
            IrisUnreachable: The controller was not reached.
            JobRefused: The controller refused to answer.
        """
        from iris.rpc import controller_pb2

        query = controller_pb2.Controller.JobQuery(scope=controller_pb2.Controller.JOB_QUERY_SCOPE_ROOTS)
        with self._narrowed():
            jobs = self._listed(query)
        return tuple(sorted(job.job_id for job in jobs if not is_terminal(_job_state(job))))

    def log_lines(self, job_id: str) -> tuple[LogLine, ...]:
        """The last lines the tasks of this job wrote (not those of its children), oldest first.

        Lines come about half a second after they are written.

        Raises:
            IrisUnreachable: The controller was not reached.
            JobRefused: The controller refused to answer.
        """
        return self.log_page(job_id, after=None, most=MAX_LOG_LINES).lines

    def log_page(self, job_id: str, *, after: int | None, most: int, task: int | None = None) -> LogPage:
        """Lines that the tasks of this job wrote (not those of its children), oldest first.

        Args:
            job_id: full id.
            after: cursor of an earlier page: the first lines after it. None: the last lines there are.
            most: how many lines at most. Those of children count too, unless `task` is given.
            task: index of the one task whose lines are wanted, None for all.

        Raises:
            IrisUnreachable: The controller was not reached.
            JobRefused: The controller refused to answer.
        """
        from iris.cluster.log_keys import build_log_source
        from iris.cluster.types import JobName, TaskAttempt

        job = JobName.from_wire(job_id)
        source, scope = build_log_source(job if task is None else JobName.from_wire(f"{job_id}/{task}"))
        try:
            with self._narrowed():
                answer = self._reader_of_logs().fetch_logs(
                    source, match_scope=scope, max_lines=most, cursor=after or 0, tail=after is None
                )
        except _NotFound:
            return LogPage(lines=(), cursor=after or 0)
        lines = []
        for entry in answer.entries:
            attempt = TaskAttempt.from_wire(entry.key)
            if attempt.task_id.parent == job:
                lines.append(
                    LogLine(
                        task_index=attempt.task_id.require_task()[1],
                        attempt=(attempt.attempt_id or 0) + 1,
                        at_ms=entry.timestamp.epoch_ms,
                        text=entry.data,
                    )
                )
        return LogPage(lines=tuple(lines), cursor=max(answer.cursor, after or 0))

    def logs(self, job_id: str) -> tuple[str, ...]:
        """The text of `log_lines`."""
        return tuple(line.text for line in self.log_lines(job_id))

    def cancel(self, job_id: str) -> None:
        """End a job and all jobs below it, at once.

        A job that has ended stays as it is, but what still runs below it is ended: a job that failed for good
        leaves its children running if it was submitted with `children_survive`. States change first, the
        processes are gone about a second later (both seen with marin-iris 0.2.227).

        Raises:
            IrisUnreachable: The controller was not reached.
            JobRefused: There is no such job, or it may not be cancelled.
        """
        from iris.rpc import controller_pb2

        try:
            with self._narrowed():
                self._service.terminate_job(controller_pb2.Controller.TerminateJobRequest(job_id=job_id))
        except _NotFound:
            raise JobRefused(f"no job {job_id} at {self.url}; nothing to cancel") from None

    def check_in(self) -> str:
        """Ask the one thing that every controller answers: who it takes the asker for.

        Returns:
            The user's id at the cluster.

        Raises:
            IrisUnreachable: The controller was not reached.
            LoginNeeded: It does not know who asks.
            JobRefused: The controller refused to answer.
        """
        from iris.rpc import job_pb2

        with self._narrowed():
            return str(self._service.get_current_user(job_pb2.GetCurrentUserRequest()).user_id)

    def backends(self) -> "tuple[BackendFacts, ...]":
        """What the controller runs jobs on.

        Raises:
            IrisUnreachable, LoginNeeded: as for `check_in`.
            JobRefused: The controller has no such question, or refused to answer.
        """
        from iris.rpc import controller_pb2

        with self._narrowed():
            answer = self._service.list_backends(controller_pb2.Controller.ListBackendsRequest())
        return tuple(_backend_facts(backend) for backend in answer.backends)

    def peers(self) -> "tuple[PeerFacts, ...]":
        """The clusters that the controller, a hub, hands jobs to.

        Raises:
            IrisUnreachable, LoginNeeded, JobRefused: as for `backends`.
        """
        from iris.rpc import controller_pb2

        from tools.launcher.iris.capacity import PeerFacts

        with self._narrowed():
            answer = self._service.list_peers(controller_pb2.Controller.ListPeersRequest())
        return tuple(
            PeerFacts(
                name=peer.peer_id,
                reachable=peer.reachable,
                backends=tuple(_backend_facts(backend) for backend in peer.backends),
            )
            for peer in answer.peers
        )

    def fail_this_task(self, reason: str) -> None:
        """End the task this process is, as failed: Iris does not start it again, whatever its retries.

        Args:
            reason: what the scheduler shows as the task's and the job's error.

        Raises:
            IrisUnreachable: The controller was not reached.
            JobRefused: This process is no task, or the controller refused.
        """
        from iris.rpc import controller_pb2, job_pb2

        if self._task is None:
            raise JobRefused("not inside an Iris task, so there is none to end")
        message = controller_pb2.Controller.KickTasksRequest(
            targets=[self._task.attempt_id], desired_state=job_pb2.TASK_STATE_FAILED, reason=reason
        )
        with self._narrowed():
            self._service.kick_tasks(message)

    def _listed(self, query: Any) -> list[Any]:
        """All jobs that match, page by page; raises what `_narrowed` turns into errors."""
        from iris.rpc import controller_pb2

        jobs: list[Any] = []
        while True:
            page = controller_pb2.Controller.JobQuery()
            page.CopyFrom(query)
            page.offset, page.limit = len(jobs), _PAGE_SIZE
            answer = self._service.list_jobs(controller_pb2.Controller.ListJobsRequest(query=page))
            jobs.extend(answer.jobs)
            if not answer.has_more or not answer.jobs:
                return jobs

    def _reader_of_logs(self) -> "RemoteClusterClient":
        """The cluster client, which finds the log server; nothing else needs all that it imports."""
        from iris.cluster.client.remote_client import RemoteClusterClient

        if self._log_reader is None:
            # Its logger prints to stderr by itself, and says where it found the log server.
            logging.getLogger("finelog.client.log_client").setLevel(logging.WARNING)
            self._log_reader = RemoteClusterClient(
                controller_address=self.url,
                timeout_ms=int(self._seconds * 1000),
                interceptors=self._interceptors,
                use_controller_proxy=self._task is None,
            )
        return self._log_reader

    @contextmanager
    def _narrowed(self) -> Iterator[None]:
        """Turn what the client raises into the errors of `jobs`."""
        from connectrpc.code import Code
        from connectrpc.errors import ConnectError

        try:
            yield
        except _NotReached as error:
            raise IrisUnreachable(self.url, self._seconds) from error
        except self._login_errors as error:
            if _is_transport_error(error):
                raise IrisUnreachable(self.url, self._seconds) from error
            raise LoginNeeded(self.url, brief(str(error))) from error
        except ConnectError as error:
            if error.code is Code.NOT_FOUND:
                raise _NotFound(error.message) from error
            if error.code is Code.ALREADY_EXISTS:
                raise _NameTaken(error.message) from error
            if error.code is Code.UNAUTHENTICATED:
                raise LoginNeeded(self.url, brief(error.message)) from error
            raise JobRefused(brief(error.message)) from error


def connect(url: str, *, give_up_after_seconds: float = 10.0) -> IrisGateway:
    """Open a gateway from outside a cluster: `with connect(url) as gateway`.

    Args:
        url: Address of the controller.
        give_up_after_seconds: How long a call tries to reach it, in seconds.
    """
    return IrisGateway(url, give_up_after_seconds=give_up_after_seconds)


def inside_job(*, give_up_after_seconds: float = 60.0) -> IrisGateway:
    """Open a gateway from a task: what it submits becomes a child of the task's job.

    The child gets the placement constraints of the job (its region, say), nothing of its
    environment. It waits longer than `connect` because a job should outlive a controller restart.

    Raises:
        JobRefused: This process is not an Iris task.
    """
    task = this_task(os.environ)
    if task is None:
        raise JobRefused("not inside an Iris task: IRIS_TASK_ID or IRIS_CONTROLLER_ADDRESS is not set")
    return IrisGateway(task.controller_url, give_up_after_seconds=give_up_after_seconds, task=task)


def _errors_of_logins() -> tuple[type[Exception], ...]:
    """What credentials of a cluster of others raise. Without such credentials nothing does."""
    from google.auth.exceptions import GoogleAuthError
    from rigging.auth import IapCredentialsUnavailable, IapLoginRequired

    return (IapLoginRequired, IapCredentialsUnavailable, GoogleAuthError)


def _is_transport_error(error: Exception) -> bool:
    from google.auth.exceptions import TransportError

    return isinstance(error, TransportError)


def _go_directly_to_loopback(url: str) -> None:
    """Keep a proxy configured in the environment out of the way to this machine itself.

    The client's transport obeys HTTP_PROXY and reads NO_PROXY when it is first used; the client takes
    no transport of ours.
    """
    host = urlsplit(url).hostname or ""
    if host not in ("127.0.0.1", "localhost", "::1"):
        return
    for name in ("NO_PROXY", "no_proxy"):
        hosts = [part for part in os.environ.get(name, "").split(",") if part]
        if host not in hosts and "*" not in hosts:
            os.environ[name] = ",".join([*hosts, host])


class _NotFound(Exception):
    """No such job."""


class _NameTaken(Exception):
    """A job of this name exists."""


def _job_facts(job: Any, request: Any, tasks: Any) -> JobFacts:
    state = _job_state(job)
    return JobFacts(
        job_id=job.job_id,
        name=job.job_id.rsplit("/", 1)[-1],
        state=state,
        error=job.error[-ERROR_TAIL:],
        # Iris repeats the error of an ended job here.
        pending_reason="" if is_terminal(state) else job.pending_reason,
        argv=tuple(request.entrypoint.run_command.argv),
        env=dict(request.environment.env_vars),
        tasks=tuple(sorted((_task_facts(task) for task in tasks), key=lambda facts: facts.index)),
    )


def _job_state(job: Any) -> str:
    from iris.rpc import job_pb2

    return _word(job_pb2.JobState.Name(job.state), "JOB_STATE_")


def _task_facts(task: Any) -> TaskFacts:
    from iris.rpc import job_pb2

    state = _word(job_pb2.TaskState.Name(task.state), "TASK_STATE_")
    return TaskFacts(
        index=int(task.task_id.rsplit("/", 1)[-1]),
        state=state,
        exit_code=_exit_code(state, task.exit_code),
        error=task.error[-ERROR_TAIL:],
        attempts=task.current_attempt_id + 1 if task.attempts else 0,
    )


def _backend_facts(backend: Any) -> "BackendFacts":
    from tools.launcher.iris.capacity import BackendFacts, GroupFacts, NodeFacts

    kubernetes = backend.detail.kubernetes
    return BackendFacts(
        name=backend.backend_id,
        gpu_variants=tuple(
            sorted(value.lower() for value in backend.advertised_attributes["device-variant"].values)
            if "device-variant" in backend.advertised_attributes
            else ()
        ),
        gpus=dict(backend.availability.total_amounts),
        nodes=tuple(NodeFacts(gpus=node.gpu_count) for node in kubernetes.nodes if node.gpu_count),
        nodes_to_come=sum(
            max(pool.max_nodes - pool.current_nodes, 0) for pool in kubernetes.node_pools if pool.autoscaling
        ),
        groups=tuple(
            GroupFacts(
                name=group.name,
                gpu_variant=group.device_variant.lower() if group.device_type == "gpu" else "",
            )
            for group in backend.detail.worker.autoscaler.groups
        ),
    )


def _exit_code(state: str, code: int) -> int | None:
    """The exit status where the task had one: on the wire 0 also says that there is none."""
    if state == "succeeded":
        return code
    return code if state == "failed" and code != 0 else None


def brief(message: str) -> str:
    """The beginning of what Iris says; it goes on with all groups of nodes and all constraints."""
    line = " ".join(message.split())
    return line if len(line) <= REFUSAL_LENGTH else line[:REFUSAL_LENGTH] + " ..."


def _word(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).lower()
