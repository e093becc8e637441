"""Start, look at and stop the embedded cluster.

One daemon for each state folder. Whoever starts or stops it holds a lock meanwhile; the daemon holds
another as long as it lives. A daemon is believed to be ours and well only if the process written down
still is that process, owns the listening socket of its port, and answers /health.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from tools.launcher.iris.gateway import connect
from tools.launcher.iris.jobs import IrisError
from tools.launcher.iris.local import processes
from tools.launcher.iris.local.daemon import ALREADY_RUNNING, NONCE_VARIABLE
from tools.launcher.iris.local.runtime import RuntimePlan, drop_other_runtimes, lay_down, plan_runtime
from tools.launcher.iris.local.secret_memory import forget, forget_unused, prepare, secret_memory
from tools.launcher.iris.local.shapes import GangShape, check_offered
from tools.launcher.iris.local.state import (
    DaemonRecord,
    LocalClusterError,
    LocalPaths,
    StateFolderUnusable,
    local_paths,
    read_record,
)

START_SECONDS = 90.0
"""How long a daemon may take to answer. It takes 3 s on two free cores; a loaded machine takes more."""

STOP_SECONDS = 15.0
"""How long a daemon may take to end by itself. It gives itself 7 s."""

DRAIN_SECONDS = 3.0
"""How long cancelled tasks have to end."""

HEALTH_SECONDS = 3.0
"""How long one health question may take."""

LOG_TAIL_LINES = 20

FREE_BYTES_LEAST = 64 * 2**20
"""Free space without which none is started. The state of a few runs has 5 MiB; a disk that fills up while
Iris makes its database leaves half of one."""

UNHEALTHY_FRACTION, UNHEALTHY_BYTES = 0.05, 10 * 2**30
"""A worker of Iris whose disk has less than both free is given no task, and loses those it runs
(marin-iris 0.2.227, iris/cluster/worker/env_probe.py)."""

# What the daemon, and so every task, gets of the caller's environment: nothing that could be a secret.
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")

_BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from tools.launcher.iris.local.daemon import main; sys.exit(main(sys.argv[1:]))"
)


class StartFailed(LocalClusterError):
    """The daemon did not come up."""

    def __init__(self, why: str, log: Path) -> None:
        self.log = log
        tail = "\n".join(f"    {line}" for line in _tail(log)) or "    (empty)"
        super().__init__(f"the embedded Iris did not start: {why}. End of its log, {log}:\n{tail}")


@dataclass(frozen=True)
class LocalCluster:
    """A running embedded cluster.

    Attributes:
        url: Address of its controller.
        pid: Process id of the daemon.
        runtime_digest: The build it runs.
        reused: It was running before.
        note: One line on what was found and done; "" if there is nothing to say.
    """

    url: str
    pid: int
    runtime_digest: str
    reused: bool
    note: str


@dataclass(frozen=True)
class LocalStatus:
    """What there is of an embedded cluster.

    Attributes:
        running: It runs and answers.
        url: Address of its controller; "" if it does not run.
        pid: Process id of the daemon; None if it does not run.
        runtime_digest: The build it runs; "" if it does not run.
        started_at: RFC 3339, UTC; "" if it does not run.
        unfinished_jobs: Ids of its unfinished top-level jobs.
        log: What the daemon printed.
        note: One line on what was found.
    """

    running: bool
    url: str
    pid: int | None
    runtime_digest: str
    started_at: str
    unfinished_jobs: tuple[str, ...]
    log: Path
    note: str


@dataclass(frozen=True)
class StopOutcome:
    """What `stop` did.

    Attributes:
        was_running: There was a daemon to end.
        pid: Its process id; None if there was none.
        ended_jobs: Ids of the top-level jobs that were unfinished and are cancelled now.
        forced: It had to be killed.
        killed_processes: Processes of tasks that were left and were killed.
    """

    was_running: bool
    pid: int | None
    ended_jobs: tuple[str, ...]
    forced: bool
    killed_processes: int


class _Condition(Enum):
    """What became of the daemon written down."""

    NONE = auto()
    DEAD = auto()
    STARTING = auto()
    MUTE = auto()
    WELL = auto()


def quiet(_: str) -> None:
    """Progress callback that says nothing."""


def ensure_running(
    state: Path,
    *,
    environ: Mapping[str, str] | None = None,
    shape: GangShape | None = None,
    plan: RuntimePlan | None = None,
    on_progress: Callable[[str], None] = quiet,
) -> LocalCluster:
    """Give the embedded cluster of a state folder, starting it if need be.

    A daemon of another build is replaced if it has no unfinished job, else kept. A dead or mute one is
    replaced; jobs it was running are run again if they have retries left, and fail otherwise. Finished
    jobs are known across starts.

    Args:
        state: Slipway's state folder, from `state_dir`.
        environ: The caller's environment; of this process if not given.
        shape: The gang that is going to be asked for.
        plan: What to run; what this process runs if not given.
        on_progress: Told what takes more than two seconds.

    Raises:
        ShapeNotOffered: The cluster has no room for such a gang.
        StartFailed: The daemon did not come up; the text has the end of its log.
        StateFolderUnusable: The state folder can't be used.
    """
    if shape is not None:
        check_offered(shape)
    plan = plan_runtime() if plan is None else plan
    paths = _prepared(state)
    with _start_lock(paths, on_progress):
        condition, record = _settled(paths, on_progress)
        note = ""
        if record is not None and condition is _Condition.WELL:
            if record.runtime_digest == plan.digest:
                return _cluster_of(record, note="")
            unfinished = _unfinished(record)
            if unfinished:
                return _cluster_of(
                    record,
                    note=f"The embedded Iris runs another build; kept, because {_some(unfinished)} "
                    "has not finished. To replace it, wait or stop it.",
                )
            note = "The embedded Iris ran another build and had nothing to do; replaced."
            on_progress("Replacing the embedded Iris by one of this build ...")
            _end(record, paths)
        elif record is not None and condition is _Condition.MUTE:
            note = f"The embedded Iris (process {record.pid}) did not answer; replaced."
            _end(record, paths)
        elif record is not None and condition is _Condition.DEAD:
            note = f"The last embedded Iris (process {record.pid}) ended without being stopped; replaced."
            processes.kill_carrying(NONCE_VARIABLE, record.nonce, seconds=5.0)
        try:
            started = _start(paths, plan, os.environ if environ is None else environ, on_progress)
        except StartFailed:
            forget_unused(secret_memory(paths.root))
            raise
        return LocalCluster(
            url=started.url, pid=started.pid, runtime_digest=started.runtime_digest, reused=False, note=note
        )


def status(state: Path) -> LocalStatus:
    """Look at the embedded cluster of a state folder; changes nothing."""
    paths = local_paths(state)
    record = read_record(paths)
    condition = _condition(record)
    if record is None or condition in (_Condition.NONE, _Condition.DEAD):
        note = (
            "not running"
            if record is None
            else f"not running; process {record.pid} ended without being stopped"
        )
        return LocalStatus(False, "", None, "", "", (), paths.log, note)
    if condition is not _Condition.WELL:
        word = "is starting" if condition is _Condition.STARTING else "does not answer"
        return LocalStatus(
            False,
            record.url,
            record.pid,
            record.runtime_digest,
            record.started_at,
            (),
            paths.log,
            f"process {record.pid} {word}",
        )
    try:
        unfinished = _unfinished(record)
        note = "running"
    except IrisError as error:
        unfinished = ()
        note = f"running, but its jobs are not known: {error}"
    return LocalStatus(
        True, record.url, record.pid, record.runtime_digest, record.started_at, unfinished, paths.log, note
    )


def stop(state: Path, *, on_progress: Callable[[str], None] = quiet) -> StopOutcome:
    """End the embedded cluster of a state folder and every process its tasks left.

    Unfinished jobs are cancelled first, so that the next start does not run them again, and the credentials
    they were given are forgotten.

    Args:
        state: Slipway's state folder, from `state_dir`.
        on_progress: Told what takes more than two seconds.

    Raises:
        StateFolderUnusable: The state folder can't be used.
    """
    paths = _prepared(state)
    with _start_lock(paths, on_progress):
        record = read_record(paths)
        condition = _condition(record)
        if record is None:
            _outwait_one_without_record(paths, on_progress)
            forget(secret_memory(paths.root))
            return StopOutcome(False, None, (), False, 0)
        ended: tuple[str, ...] = ()
        forced = False
        killed = 0
        running = condition is not _Condition.DEAD
        if running:
            on_progress("Stopping the embedded Iris ...")
            if condition is _Condition.WELL:
                ended = _cancel_all(record)
                killed = _drain(record) if ended else 0
            forced = not _terminate(record)
        killed += processes.kill_carrying(NONCE_VARIABLE, record.nonce, seconds=5.0)
        # Cancelled jobs need no credentials. One that a dead daemon left unfinished finds them empty.
        forget(secret_memory(paths.root))
        paths.daemon_record.unlink(missing_ok=True)
        return StopOutcome(running, record.pid if running else None, ended, forced, killed)


def _prepared(state: Path) -> LocalPaths:
    paths = local_paths(state.absolute())
    try:
        for folder in (paths.root, paths.home):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
    except OSError as error:
        raise StateFolderUnusable(
            f"the state folder {paths.root} can't be used: {error.strerror}; "
            "set XDG_STATE_HOME to a folder you may write to"
        ) from None
    return paths


@contextlib.contextmanager
def _start_lock(paths: LocalPaths, on_progress: Callable[[str], None]) -> Iterator[None]:
    descriptor = os.open(paths.start_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_progress("Waiting for another command that starts or stops the embedded Iris ...")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _condition(record: DaemonRecord | None) -> _Condition:
    if record is None:
        return _Condition.NONE
    if record.boot_id != processes.boot_id() or processes.start_ticks(record.pid) != record.start_ticks:
        return _Condition.DEAD
    if not record.url:
        return _Condition.STARTING
    owns_port = any(listener.port == record.port for listener in processes.listeners(record.pid))
    return _Condition.WELL if owns_port and _answers(record.port) else _Condition.MUTE


def _answers(port: int) -> bool:
    # Only here: it brings the email and ssl packages, which a command without a local cluster has no use for.
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HEALTH_SECONDS)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _settled(paths: LocalPaths, on_progress: Callable[[str], None]) -> tuple[_Condition, DaemonRecord | None]:
    """The condition of the daemon, once one that is starting has started and a slow one had its time."""
    end = time.monotonic() + START_SECONDS
    mute = 0
    while True:
        record = read_record(paths)
        condition = _condition(record)
        mute = mute + 1 if condition is _Condition.MUTE else 0
        if condition is _Condition.STARTING and time.monotonic() < end:
            on_progress("Waiting for the embedded Iris, which another command started ...")
        elif not 0 < mute < 4:
            return (_Condition.MUTE if condition is _Condition.STARTING else condition), record
        time.sleep(0.5)


def _start(
    paths: LocalPaths, plan: RuntimePlan, environ: Mapping[str, str], on_progress: Callable[[str], None]
) -> DaemonRecord:
    disk = shutil.disk_usage(paths.root)
    least = max(FREE_BYTES_LEAST, min(UNHEALTHY_BYTES, int(disk.total * UNHEALTHY_FRACTION)))
    if disk.free < least:
        raise StateFolderUnusable(
            f"the disk of the state folder {paths.root} has {disk.free // 2**20} MiB free, the embedded Iris "
            f"needs {least // 2**20} MiB; free some, or set XDG_STATE_HOME to a folder on another disk"
        )
    prepare(secret_memory(paths.root))
    drop_other_runtimes(paths.runtimes, plan.digest)
    runtime = lay_down(plan, paths.runtimes, on_progress=on_progress)
    on_progress("Starting the embedded Iris ...")
    nonce = uuid.uuid4().hex
    environment = {
        **{name: environ[name] for name in _PASSED_ON if name in environ},
        # rigging fixes ~/.config/marin/credentials when it is imported, so HOME has to be right by then.
        "HOME": str(paths.home),
        "TMPDIR": str(paths.scratch),
        "PYTHONPATH": os.pathsep.join(str(folder) for folder in runtime.python_path),
        "PYTHONSAFEPATH": "1",
        "PYTHONNOUSERSITE": "1",
        NONCE_VARIABLE: nonce,
    }
    environment.setdefault("PATH", os.defpath)
    if paths.log.exists():
        paths.log.replace(paths.log.with_suffix(".log.1"))
    arguments = [str(runtime.python), "-c", _BOOT, str(runtime.launcher)]
    arguments += [f"--root={paths.root}", f"--digest={plan.digest}", f"--nonce={nonce}"]
    # Not Popen: nobody waits for this child, and Popen complains when it is dropped.
    pid = os.posix_spawn(
        runtime.python,
        arguments,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(paths.log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        done, raw = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(raw)
            if code == ALREADY_RUNNING:
                raise StartFailed(
                    f"another daemon holds {paths.life_lock}, but its record {paths.daemon_record} is gone; "
                    "end that process",
                    paths.log,
                )
            raise StartFailed(f"its process ended with exit status {code}", paths.log)
        record = read_record(paths)
        if record is not None and record.nonce == nonce and _condition(record) is _Condition.WELL:
            return record
        time.sleep(0.05)
    processes.kill_carrying(NONCE_VARIABLE, nonce, seconds=5.0)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    raise StartFailed(f"it did not answer within {START_SECONDS:g} s", paths.log)


def _end(record: DaemonRecord, paths: LocalPaths) -> None:
    _terminate(record)
    processes.kill_carrying(NONCE_VARIABLE, record.nonce, seconds=5.0)
    paths.daemon_record.unlink(missing_ok=True)


def _terminate(record: DaemonRecord) -> bool:
    """End the daemon; True if it ended by itself."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(record.pid, signal.SIGTERM)
    if processes.ended(record.pid, record.start_ticks, seconds=STOP_SECONDS):
        return True
    with contextlib.suppress(ProcessLookupError):
        os.kill(record.pid, signal.SIGKILL)
    processes.ended(record.pid, record.start_ticks, seconds=5.0)
    return False


def _unfinished(record: DaemonRecord) -> tuple[str, ...]:
    with connect(record.url) as gateway:
        return gateway.unfinished_jobs()


def _outwait_one_without_record(paths: LocalPaths, on_progress: Callable[[str], None]) -> None:
    """Wait for a daemon whose record was removed or spoilt: it notices and ends by itself.

    Raises:
        LocalClusterError: It does not end.
    """
    descriptor = os.open(paths.life_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + STOP_SECONDS
        told = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > end:
                    raise LocalClusterError(
                        f"a daemon holds {paths.life_lock}, its record {paths.daemon_record} is gone, and it "
                        f"did not end within {STOP_SECONDS:g} s; end that process"
                    ) from None
            if not told:
                on_progress("Waiting for an embedded Iris whose record is gone to end ...")
                told = True
            time.sleep(0.1)
    finally:
        os.close(descriptor)


def _cancel_all(record: DaemonRecord) -> tuple[str, ...]:
    try:
        with connect(record.url) as gateway:
            unfinished = gateway.unfinished_jobs()
            for job_id in unfinished:
                gateway.cancel(job_id)
            return unfinished
    except IrisError:
        # It has to end all the same; its jobs end with it.
        return ()


def _drain(record: DaemonRecord) -> int:
    """Let cancelled tasks end and send their last lines; kill what they left. How many were killed."""
    end = time.monotonic() + DRAIN_SECONDS
    while set(processes.carrying(NONCE_VARIABLE, record.nonce)) - {record.pid} and time.monotonic() < end:
        time.sleep(0.1)
    return processes.kill_carrying(NONCE_VARIABLE, record.nonce, seconds=5.0, spare=record.pid)


def _cluster_of(record: DaemonRecord, *, note: str) -> LocalCluster:
    return LocalCluster(
        url=record.url, pid=record.pid, runtime_digest=record.runtime_digest, reused=True, note=note
    )


def _some(jobs: tuple[str, ...]) -> str:
    more = f" (and {len(jobs) - 1} more)" if len(jobs) > 1 else ""
    return f"job {jobs[0]}{more}"


def _tail(log: Path) -> list[str]:
    try:
        return _without_frames(log.read_text(errors="replace").splitlines())[-LOG_TAIL_LINES:]
    except FileNotFoundError:
        return []


def _without_frames(lines: list[str]) -> list[str]:
    """Of a traceback only what it ends with: the frames are for who reads the log itself."""
    kept = []
    in_frames = False
    for line in lines:
        in_frames = line.startswith("Traceback (most recent call last)") or (
            in_frames and line.startswith(" ")
        )
        if not in_frames:
            kept.append(line)
    return kept
