"""What the processes of a launch import, counted: each pays for it before it does anything.

Times differ from machine to machine, counts do not. A launch from submission to `verified` is measured by
tests/bench/submit_to_verified.py.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.launcher.iris.task_bootstrap import CODE_ARCHIVE
from tools.launcher.submit.code_archive import make_code_archive

ASKS_IRIS = """
from tools.launcher.iris.gateway import connect
from tools.launcher.iris.jobs import IrisUnreachable, JobRequest

request = JobRequest(
    name="a", user="b", argv=("python",), cpu=1.0, memory="1GB", disk="1GB", replicas=2, gpu_variant="H100",
    gpus_per_task=8, files={}, env={}, timeout_seconds=1, max_task_retries=0, coscheduled=True,
)
with connect("http://127.0.0.1:1", give_up_after_seconds=0.1) as gateway:
    try:
        gateway.submit(request)
    except IrisUnreachable:
        pass
"""

# Iris's own client brings these, 1.5 CPU seconds in each process.
OF_THE_CLIENT = {
    "aiohttp",
    "botocore",
    "cloudpickle",
    "duckdb",
    "finelog",
    "google.auth",
    "google.cloud",
    "grpc",
}
OF_THE_CLIENT |= {"iris.cluster", "pyarrow", "requests", "rigging.auth", "rigging.filesystem", "s3fs"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / CODE_ARCHIVE
    path.write_bytes(make_code_archive().data)
    return path


def imported(archive: Path, code: str) -> set[str]:
    """The modules of a process that has run `code` out of the archive of a job."""
    print_them = "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code + print_them],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(archive), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    modules = set(json.loads(done.stdout.splitlines()[-1]))
    assert any(name.startswith("tools.launcher.") for name in modules)
    return modules


@pytest.mark.parametrize(
    ("code", "most", "unwanted"),
    [
        pytest.param(
            "import tools.launcher.coordinator.main",
            325,
            OF_THE_CLIENT | {"absl", "asyncio", "connectrpc", "iris", "numpy"},
            id="a coordinator",
        ),
        pytest.param(
            f"import tools.launcher.coordinator.main{ASKS_IRIS}",
            490,
            OF_THE_CLIENT | {"absl", "numpy"},
            id="a coordinator that asks Iris",
        ),
        pytest.param(
            f"import tools.launcher.rehearsal.__main__, tools.launcher.rehearsal.launch{ASKS_IRIS}",
            470,
            OF_THE_CLIENT | {"absl", "numpy"},
            id="the stand-in's launcher",
        ),
        pytest.param(
            "import tools.launcher.rehearsal.__main__, tools.launcher.rehearsal.task",
            410,
            OF_THE_CLIENT | {"absl", "asyncio", "connectrpc", "iris"},
            id="the stand-in's task",
        ),
    ],
)
def test_a_process_of_a_job_imports_no_more_than_it_uses(
    archive: Path, code: str, most: int, unwanted: set[str]
) -> None:
    modules = imported(archive, code)
    brought = {name for name in unwanted if any(f"{module}.".startswith(f"{name}.") for module in modules)}
    assert not brought
    assert len(modules) <= most, (
        f"{len(modules)} modules, at most {most}: what is new, and can it be imported late?"
    )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
