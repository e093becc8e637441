"""For tests: an Iris gateway which starts a job's tasks as plain subprocesses.

It keeps the rules of Iris that a gang depends on: a task that fails takes the rest with it, a retry
restarts all of them, a name is used once, and the tasks see the variables Iris sets.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.launcher.iris.delivered_secrets import DIRECTORY_VARIABLE
from tools.launcher.iris.jobs import JobFacts, JobNameTaken, JobRequest, TaskFacts
from tools.launcher.iris.task_bootstrap import CODE_ARCHIVE
from tools.launcher.store.deterministic_zip import write_zip

PARENT = "/tester/coordinator"


def code_archive() -> bytes:
    """Return the launcher's sources as the archive that tasks get."""
    root = Path(__file__).absolute().parents[3]
    files = {}
    for path in sorted((root / "tools").rglob("*.py")):
        if not path.name.endswith(("_test.py", "_stage2_bootstrap.py")):
            files[path.relative_to(root).as_posix()] = path.read_bytes()
    files.setdefault("tools/__init__.py", b"")
    files.setdefault("tools/launcher/__init__.py", b"")
    return write_zip(files)


class ProcessGateway:
    """Jobs as processes of this machine; use as a context manager, which ends them all."""

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self.requests: list[JobRequest] = []
        self.cancelled: list[str] = []
        self._environment = environment or {}
        self._jobs: dict[str, _Job] = {}

    def __enter__(self) -> "ProcessGateway":
        return self

    def __exit__(self, *_: object) -> None:
        for job in self._jobs.values():
            job.stop()

    def job_id_of(self, user: str, name: str) -> str:
        return f"{PARENT}/{name}"

    def submit(self, request: JobRequest) -> str:
        job_id = self.job_id_of(request.user, request.name)
        if job_id in self._jobs:
            raise JobNameTaken(job_id)
        self.requests.append(request)
        self._jobs[job_id] = _Job(job_id, request, self._environment)
        return job_id

    def describe(self, job_id: str) -> JobFacts | None:
        job = self._jobs.get(job_id)
        return None if job is None else job.facts()

    def cancel(self, job_id: str) -> None:
        self.cancelled.append(job_id)
        self._jobs[job_id].stop()
        self._jobs[job_id].state = "killed"

    def pids(self, job_id: str) -> list[int]:
        """Return the process ids of the job's tasks, by index."""
        return [process.pid for process in self._jobs[job_id].processes]

    def logs(self, job_id: str) -> str:
        """Return all that the tasks wrote."""
        return self._jobs[job_id].logs()


class _Job:
    def __init__(self, job_id: str, request: JobRequest, environment: dict[str, str]) -> None:
        self.job_id, self.request, self.environment = job_id, request, environment
        self.state, self.starts = "running", 0
        self.folder = Path(tempfile.mkdtemp(prefix="process-job-", dir=os.environ.get("TEST_TMPDIR")))
        self.processes: list[subprocess.Popen[bytes]] = []
        self.tasks: list[TaskFacts] = []
        self._start()

    def _start(self) -> None:
        self.processes = []
        for index in range(self.request.replicas):
            workdir = self.folder / str(self.starts) / str(index)
            workdir.mkdir(parents=True)
            for name, data in self.request.files.items():
                (workdir / name).write_bytes(data)
            secrets = workdir / "secrets"
            secrets.mkdir()
            for name, value in self.request.secrets.items():
                (secrets / name).write_text(value.get_secret_value())
            variables = {
                **{name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ},
                "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
                **self.environment,
                **self.request.env,
                "IRIS_TASK_ID": f"{self.job_id}/{index}:{self.starts}",
                "IRIS_NUM_TASKS": str(self.request.replicas),
                "IRIS_WORKDIR": str(workdir),
                DIRECTORY_VARIABLE: str(secrets),
            }
            with (workdir / "stdout").open("wb") as out, (workdir / "stderr").open("wb") as err:
                self.processes.append(
                    subprocess.Popen(
                        [sys.executable, *self.request.argv[1:]],
                        env=variables,
                        stdout=out,
                        stderr=err,
                        start_new_session=True,
                    )
                )
        self.starts += 1

    def facts(self) -> JobFacts:
        codes = [process.poll() for process in self.processes]
        if self.state == "running" and any(code not in (None, 0) for code in codes):
            self.stop()
            self.tasks = [
                self._task(index, "failed" if code not in (None, 0) else "cosched_failed", code)
                for index, code in enumerate(codes)
            ]
            if self.starts <= self.request.max_task_retries:
                self._start()
            else:
                self.state = "failed"
        elif self.state == "running":
            done = all(code == 0 for code in codes)
            self.state = "succeeded" if done else "running"
            self.tasks = [
                self._task(index, "running" if code is None else "succeeded", code)
                for index, code in enumerate(codes)
            ]
        return JobFacts(
            job_id=self.job_id,
            name=self.request.name,
            state=self.state,
            error="",
            pending_reason="",
            argv=self.request.argv,
            env=self.request.env,
            tasks=tuple(self.tasks),
        )

    def _task(self, index: int, state: str, code: int | None) -> TaskFacts:
        error = (self.folder / str(self.starts - 1) / str(index) / "stderr").read_text()[-4000:]
        code = 128 - code if code is not None and code < 0 else code
        return TaskFacts(index=index, state=state, exit_code=code, error=error, attempts=self.starts)

    def stop(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=10)

    def logs(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.rglob("std*")))


__all__ = ["CODE_ARCHIVE", "PARENT", "ProcessGateway", "code_archive"]
