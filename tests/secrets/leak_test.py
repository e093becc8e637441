"""No value of a credential is in any file, argument list, environment or log of a launch.

A real launch through the command line, on a real embedded Iris, with credentials set to random values. That
they did arrive is told by the tasks, which write the names of what they found in their hands; that a value
would be found is told by the last tests, which plant some.
"""

import base64
import json
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.parse
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.secrets.finder_testlib import Finder, files_below
from tools.launcher.iris.gateway import IrisGateway, connect
from tools.launcher.iris.local.cluster_for_test import plan_in_place, stopped_afterwards, wait_until
from tools.launcher.iris.local.control import ensure_running, stop
from tools.launcher.iris.local.daemon import NONCE_VARIABLE
from tools.launcher.iris.local.sealing import SEALED
from tools.launcher.iris.local.secret_memory import secret_memory
from tools.launcher.iris.local.state import local_paths, read_record
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunRecord, list_records

NAMES = ("DAYTONA_API_KEY", "HF_TOKEN", "WANDB_API_KEY")
CORES = {name: secrets.token_hex(16).translate(str.maketrans("0123456789", "ghijklmnop")) for name in NAMES}
# What quoting, escaping and encoding change stands around the core.
VALUES = {
    "DAYTONA_API_KEY": f"dtn_{CORES['DAYTONA_API_KEY']}",
    "HF_TOKEN": f"hf_{CORES['HF_TOKEN']}=/+ %",
    "WANDB_API_KEY": f"\"'\\ü{CORES['WANDB_API_KEY']}$(id)&<",
}
FINDER = Finder(CORES)
SECONDS = 240


@dataclass
class Launch:
    """What was seen of one launch while it ran and at its end.

    Attributes:
        state: state folder, with store and objects.
        process: the command.
        output: what it wrote.
        processes: how many processes of the cluster's were looked at.
        leaks: what was found while it ran.
        in_memory: names of files in memory that held a value while it ran.
    """

    state: Path
    process: subprocess.Popen[str]
    output: str = ""
    processes: set[int] = field(default_factory=set)
    leaks: set[str] = field(default_factory=set)
    in_memory: set[str] = field(default_factory=set)

    @property
    def record(self) -> RunRecord:
        (record,) = list_records(FileStore(self.state / "store"), "cat_count")
        return record


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    home = tmp_path_factory.mktemp("home")
    with stopped_afterwards(home / "slipway") as state:
        seen = Launch(state, launcher(home, home / "built"))
        with seen.process:
            try:
                # The cluster is started while the launcher loads; whoever does it has the credentials in its
                # environment.
                ensure_running(state, plan=plan_in_place(), environ={**os.environ, **VALUES})
                look_on(seen)
                seen.output = seen.process.communicate(timeout=SECONDS)[0]
            finally:
                seen.process.kill()
        assert seen.process.returncode == 0, seen.output
        yield seen


def launcher(home: Path, built: Path) -> subprocess.Popen[str]:
    """Start the launcher on cat_count, whose graph says that it needs the credentials."""
    shutil.copytree("experiments/cat_count", built, ignore=shutil.ignore_patterns("*.runfiles*", "*.py"))
    graph = built / "cat_count.graph.json"
    declared = {**json.loads(graph.read_bytes()), "credentials": list(NAMES)}
    graph.chmod(0o644)
    graph.write_text(json.dumps(declared))
    outputs = {"launch": "launch.yaml", "digest": "digest", "graph": "graph.json", "plan": "plan.json"}
    return subprocess.Popen(
        [sys.executable, "-m", "tools.launcher.cli.launcher_main", "launch"]
        + [f"--{flag}={built}/cat_count.{ending}" for flag, ending in outputs.items()]
        + ["--cluster=third_party/clusters/local.yaml"],
        env={
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(sys.path),
            "XDG_STATE_HOME": str(home),
            **VALUES,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def look_on(seen: Launch) -> None:
    """Look at processes and files as long as the launch runs."""
    record = read_record(local_paths(seen.state))
    assert record is not None
    carried = f"{NONCE_VARIABLE}={record.nonce}".encode()
    memory = secret_memory(local_paths(seen.state).root)
    end = time.monotonic() + SECONDS
    while seen.process.poll() is None:
        assert time.monotonic() < end, "the launch does not end"
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit() or int(folder.name) == os.getpid():
                continue
            try:
                command, environ = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
            except OSError:
                continue
            seen.leaks.update(FINDER.in_bytes(command, f"the arguments of {command!r:.300}"))
            if carried in environ.split(b"\0"):
                seen.processes.add(int(folder.name))
                seen.leaks.update(FINDER.in_bytes(environ, f"the environment of {command!r:.300}"))
        seen.in_memory.update(path.name for path in files_below(memory.task_files) if FINDER.in_file(path))
        seen.leaks.update(FINDER.below(seen.state)[1])
        # A look takes a tenth of a second of a core that the launch could have.
        time.sleep(0.5)


@pytest.fixture(scope="module")
def gateway(launch: Launch) -> Iterator[IrisGateway]:
    record = read_record(local_paths(launch.state))
    assert record is not None
    with connect(record.url) as opened:
        yield opened


def test_the_launch_succeeds_and_every_task_had_every_credential(launch: Launch) -> None:
    assert "verified: yes" in launch.output.splitlines()
    joined = sorted((launch.state / "objects").rglob("joined/*.json"))
    assert [json.loads(path.read_bytes())["credentials"] for path in joined] == [list(NAMES)] * 2
    # Iris's own delivery: files in memory, while the tasks run.
    assert launch.in_memory == set(NAMES)


def test_no_argument_and_no_environment_had_a_value(launch: Launch) -> None:
    # The daemon, the coordinator, the stand-in's launcher and two tasks at least.
    assert len(launch.processes) >= 5
    assert launch.leaks == set()


def test_nothing_it_wrote_has_a_value(launch: Launch) -> None:
    assert FINDER.in_bytes(launch.output.encode(), "the output") == []


def test_no_file_has_a_value(launch: Launch) -> None:
    count, found = FINDER.below(launch.state.parent)
    assert found == []
    names = {path.name for path in (launch.state / "local").rglob("*")}
    assert {"controller.sqlite3", "daemon.log"} <= names
    assert count > 50


def test_what_iris_tells_has_no_value(launch: Launch, gateway: IrisGateway) -> None:
    from iris.rpc import controller_pb2

    coordinator = launch.record.coordinator_job_id
    assert coordinator is not None
    jobs = (coordinator, *launch.record.child_job_ids)
    assert len(jobs) == 2
    for job in jobs:
        answer = gateway._service.get_job_status(controller_pb2.Controller.GetJobStatusRequest(job_id=job))
        assert set(answer.request.environment.secrets) == set(NAMES)
        assert FINDER.in_bytes(answer.SerializeToString(), f"the request of {job}") == []
        tasks = gateway._service.list_tasks(controller_pb2.Controller.ListTasksRequest(job_id=job))
        assert FINDER.in_bytes(tasks.SerializeToString(), f"the tasks of {job}") == []
        wait_until(lambda job=job: bool(gateway.logs(job)), seconds=10, what="lines of log")  # type: ignore[misc]
        assert FINDER.in_bytes("\n".join(gateway.logs(job)).encode(), f"the log of {job}") == []


def test_the_database_has_them_sealed(launch: Launch) -> None:
    file = local_paths(launch.state).controller / "controller.sqlite3"
    (database,) = [file] if file.is_file() else list((launch.state / "local").rglob("controller.sqlite3"))
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        rows = connection.execute("select environment_json from job_config").fetchall()
    kept = [json.loads(row[0]).get("secrets", {}) for row in rows]
    assert [sorted(values) for values in kept] == [list(NAMES)] * 2
    assert all(value.startswith(SEALED) for values in kept for value in values.values())


def test_afterwards_the_memory_holds_the_key_alone_and_after_a_stop_nothing(launch: Launch) -> None:
    memory = secret_memory(local_paths(launch.state).root)
    wait_until(
        lambda: [path.name for path in files_below(memory.folder)] == ["key"],
        seconds=10,
        what="the removal of the tasks' files",
    )
    stop(launch.state)
    assert not memory.folder.exists()
    assert FINDER.below(launch.state.parent)[1] == []


def plant_zip(path: Path, value: str) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("member", "x" * 1000 + value)


def plant_row(path: Path, value: str) -> None:
    with sqlite3.connect(path) as connection:
        # As Iris's, whose freed pages keep what was in them.
        connection.execute("pragma secure_delete = off")
        connection.execute("create table t (c text)")
        connection.execute("insert into t values (?)", (json.dumps({"v": value}),))
    with connection:
        connection.execute("delete from t")
    connection.close()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "plant",
    [
        lambda path, value: path.write_text(value),
        lambda path, value: path.write_text(f"prefix {value} suffix"),
        lambda path, value: path.write_text(json.dumps({"v": value})),
        lambda path, value: path.write_text(repr(value)),
        lambda path, value: path.write_text(urllib.parse.quote(value)),
        lambda path, value: path.write_bytes(base64.b64encode(value.encode())),
        lambda path, value: path.write_bytes(base64.urlsafe_b64encode(b"12" + value.encode() + b"3")),
        lambda path, value: path.write_text(value.encode().hex()),
        lambda path, value: path.write_text(value[::-1]),
        lambda path, value: path.with_name(urllib.parse.quote(value, safe="")).touch(),
        lambda path, value: path.symlink_to(value.replace("/", "")),
        plant_zip,
        plant_row,
    ],
)
def test_a_planted_value_is_found(tmp_path: Path, plant: object, name: str) -> None:
    assert callable(plant)
    assert FINDER.below(tmp_path) == (0, [])
    plant(tmp_path / "planted", VALUES[name])
    count, found = FINDER.below(tmp_path)
    assert count == 1
    assert found and all(sentence.startswith(name) for sentence in found)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
