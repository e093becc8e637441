"""Everything a case happens in: one embedded Iris, one bucket, one man in the middle, many launchers."""

import dataclasses
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.faults.experiment_for_test import Experiment, build_experiment, import_inputs
from tests.faults.iris_proxy_testlib import IrisProxy
from tests.faults.task_zygote_testlib import TaskZygote
from tests.faults.zygote_testlib import Call, Zygote
from tools.launcher.iris.gateway import IrisGateway, connect
from tools.launcher.iris.jobs import JobFacts
from tools.launcher.iris.local import processes
from tools.launcher.iris.local.cluster_for_test import plan_in_place, stopped_afterwards
from tools.launcher.iris.local.control import ensure_running
from tools.launcher.iris.local.daemon import NONCE_VARIABLE
from tools.launcher.iris.local.state import DaemonRecord, local_paths, read_record, write_record
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import PutOutcome
from tools.launcher.store.records import RunKey, RunRecord, load_record
from tools.launcher.store.testing.fake_gcs_for_test import FakeGcs

_PREFIX = "faults/"
SECONDS = 90.0
"""How long a case waits for anything. Nothing here takes as long, except on a machine that is stuck."""


class World:
    """One state folder with its embedded Iris, and a bucket.

    Attributes:
        gcs: the bucket's server.
        iris: what stands between launchers and the controller.
        gateway: to the controller itself.
    """

    def __init__(self, home: Path, gcs: FakeGcs, zygote: Zygote, tasks: TaskZygote) -> None:
        """Describe it; `world` starts it."""
        self.home, self.gcs, self._zygote, self._tasks = home, gcs, zygote, tasks
        self.state = home / "slipway"
        self.store_url = gcs.store_url(_PREFIX)
        self.iris = IrisProxy(lambda: self._daemon().port)
        self.gateway: IrisGateway

    def start_iris(self) -> None:
        """Start the embedded Iris, again if it was killed, and have launchers reach it through the proxy."""
        plan = plan_in_place()
        plan = dataclasses.replace(plan, wheel_folders=(self._tasks.site, *plan.wheel_folders))
        port_url = ensure_running(self.state, plan=plan).url
        # What a launcher believes is this record: the process and its port are checked, the address is used.
        write_record(local_paths(self.state), self._daemon().model_copy(update={"url": self.iris.url}))
        self.gateway = connect(port_url)

    def kill_iris(self) -> None:
        """End the embedded Iris with SIGKILL. Its tasks die with it, as Iris has the kernel see to."""
        daemon = self._daemon()
        os.kill(daemon.pid, signal.SIGKILL)
        assert processes.ended(daemon.pid, daemon.start_ticks, seconds=10.0)
        processes.kill_carrying(NONCE_VARIABLE, daemon.nonce, seconds=10.0)

    def launch(self, experiment: Experiment, *flags: str, user: str = "ann", **variables: str) -> Call:
        """Start a launcher with an experiment's command line and return at once.

        Args:
            experiment: what to launch.
            flags: more flags.
            user: whose environment it has.
            variables: more of that environment.
        """
        home = self.home / "people" / user
        home.mkdir(parents=True, exist_ok=True)
        return self._zygote.launcher(
            ["launch", *experiment.files, f"--store={self.store_url}", *flags],
            {
                "HOME": str(home),
                "USER": user,
                "LOGNAME": user,
                "PATH": os.environ["PATH"],
                "STORAGE_EMULATOR_HOST": self.gcs.url,
                "XDG_STATE_HOME": str(self.home),
                **variables,
            },
        )

    def key(self, experiment: Experiment, ordinal: int = 1) -> RunKey:
        """The key of an experiment's run."""
        return RunKey(experiment=experiment.name, launch_digest=experiment.launch_digest, ordinal=ordinal)

    def record(self, experiment: Experiment, ordinal: int = 1) -> RunRecord | None:
        """The record of an experiment's run, read past all faults."""
        return load_record(_Objects(self.gcs), self.key(experiment, ordinal))

    def kinds(self, experiment: Experiment) -> list[str]:
        """The kinds of the events on record, in order."""
        record = self.record(experiment)
        return [event.kind for event in record.events] if record else []

    def job_id(self, experiment: Experiment, ordinal: int = 1) -> str:
        """The id of the coordinator's job."""
        return f"/slipway/{experiment.job_name.removesuffix('1')}{ordinal}"

    def job(self, experiment: Experiment) -> JobFacts | None:
        """What the controller itself knows of the coordinator's job."""
        return self.gateway.describe(self.job_id(experiment))

    def jobs_of(self, experiment: Experiment) -> tuple[str, ...]:
        """Ids of all jobs that are named as a coordinator of this experiment is."""
        start = f"/slipway/{experiment.name}-"
        names = (job for job in self._listed() if job.startswith(start))
        return tuple(sorted(job for job in names if job.removeprefix(start).count("-") <= 1))

    def children_of(self, job_id: str) -> tuple[str, ...]:
        """Ids of all jobs below one."""
        return tuple(child.job_id for child in self.gateway.children(job_id))

    def coordinator_pid(self, experiment: Experiment) -> int:
        """The process of the coordinator, once it is there."""
        look = lambda: _task_process(self.job_id(experiment), b"tools.launcher.coordinator.main")  # noqa: E731
        return until(look, "a coordinator process")

    def kill_coordinator(self, experiment: Experiment) -> None:
        """End the coordinator's process with SIGKILL."""
        self._signal(self.coordinator_pid(experiment), signal.SIGKILL)

    def terminate_coordinator(self, experiment: Experiment) -> None:
        """Ask the coordinator's process to end, with SIGTERM."""
        self._signal(self.coordinator_pid(experiment), signal.SIGTERM)

    def kill_runtime_launcher(self, experiment: Experiment) -> None:
        """End what the coordinator launches the document with, by SIGKILL."""
        look = lambda: _task_process(self.job_id(experiment), b"\0iris\0launch\0")  # noqa: E731
        self._signal(until(look, "a runtime launcher"), signal.SIGKILL)

    def has_checkpoint(self, experiment: Experiment) -> bool:
        """Whether the gang has written the checkpoint of a step."""
        latest = (self.state / "objects").rglob("latest_ckpt_global_step.txt")
        return any(f"/{experiment.artifact}/" in str(file) for file in latest)

    def _signal(self, pid: int, number: signal.Signals) -> None:
        forked = self._tasks.forked(pid)
        ticks = processes.start_ticks(forked)
        os.kill(forked, number)
        if number is signal.SIGKILL:
            assert ticks is None or processes.ended(forked, ticks, seconds=10.0)

    def _listed(self) -> list[str]:
        from iris.rpc import controller_pb2

        query = controller_pb2.Controller.JobQuery(scope=controller_pb2.Controller.JOB_QUERY_SCOPE_ROOTS)
        return [job.job_id for job in self.gateway._listed(query)]

    def _daemon(self) -> DaemonRecord:
        record = read_record(local_paths(self.state))
        assert record is not None, "the embedded Iris has no record"
        return record


class _Objects:
    """The bucket as a store that only reads, past all faults."""

    def __init__(self, gcs: FakeGcs) -> None:
        self._objects = {name.removeprefix(_PREFIX): data for name, data in gcs.objects.items()}
        self.url = gcs.store_url(_PREFIX)

    def put_if_absent(self, key: str, data: bytes) -> PutOutcome:
        raise AssertionError(f"this view of the bucket only reads, and {key} was to be written")

    def get(self, key: str) -> bytes:
        return self._objects[key]

    def exists(self, key: str) -> bool:
        return key in self._objects

    def list(self, prefix: str) -> tuple[str, ...]:
        return tuple(sorted(key for key in self._objects if key.startswith(prefix)))


@contextmanager
def world(home: Path, gcs: FakeGcs, zygote: Zygote, tasks: TaskZygote) -> Iterator[World]:
    """A running world, with the inputs of all experiments in its object root; killed at the end.

    Args:
        home: for its files.
        gcs: its bucket's server.
        zygote: starts its launchers.
        tasks: starts its tasks.
    """
    made = World(home, gcs, zygote, tasks)
    with ExitStack() as stack:
        stack.enter_context(made.iris)
        stack.enter_context(stopped_afterwards(made.state))
        made.start_iris()
        import_inputs(build_experiment(home / "inputs", "inputs"), ObjectRoot(made.state / "objects"))
        yield made
        made.kill_iris()  # An orderly end takes seconds.


def until[Found](look: Callable[[], Found | None], what: str, seconds: float = SECONDS) -> Found:
    """Look until there is something, and return it; AssertionError naming `what` if there never is."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def _task_process(job_id: str, word: bytes) -> int | None:
    task = f"IRIS_TASK_ID={job_id}/0".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if word not in (entry / "cmdline").read_bytes():
                continue
            environment = (entry / "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
        if any(line == task or line.startswith(task + b":") for line in environment):
            return int(entry.name)
    return None
