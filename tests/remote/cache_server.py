"""A real remote cache of our own: BuildGrid, on a port of the loopback device."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
# Blobs and results in memory, as little as a cache can be: no execution, no compression of transfers.
CONFIGURATION = """\
server:
  - !channel
    address: 127.0.0.1:{port}
    insecure-mode: true
authorization:
  method: none
monitoring:
  enabled: false
storages:
  - !lru-storage &blobs
    size: 512mb
caches:
  - !lru-action-cache &results
    storage: *blobs
    max-cached-refs: 10000
    cache-failed-actions: false
    allow-updates: true
instances:
  - name: ''
    storages: [*blobs]
    caches: [*results]
    services:
      - !cas
        storage: *blobs
      - !bytestream
        storage: *blobs
      - !action-cache
        cache: *results
thread-pool-size: 20
"""
START_SECONDS = 120


def install(checkout: Path, folder: Path) -> Path:
    """Install BuildGrid into `folder`, from the package index that pip is set to use.

    Args:
        checkout: its scripts find the Python 3.12.
        folder: made if it is not there.

    Returns:
        The interpreter to run it with.
    """
    scripts = checkout / "third_party" / "bazel"
    found = subprocess.run(
        ["bash", "-c", '. "$0/report.sh"; . "$0/python.sh"; find_python_3_12', str(scripts)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if found.returncode:
        sys.exit(
            "remote_cache.py: the cache server needs Python 3.12; or name your own with --server=grpc://..."
        )
    python = Path(found.stdout.strip())
    # No bytecode: most of it is never imported. No resolving: the file names everything.
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    done = subprocess.run(
        [*pip, "--no-deps", "--target", str(folder), "--requirement", str(REQUIREMENTS)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(done.stderr)
        sys.exit(
            f"remote_cache.py: pip cannot install {REQUIREMENTS}; or name your own with --server=grpc://..."
        )
    return python


@contextmanager
def running(python: Path, installed: Path, folder: Path) -> Iterator[str]:
    """Run the server that `install` installed and yield its address; its log is in `folder`."""
    port = free_port()
    configuration, log = folder / "buildgrid.yaml", folder / "buildgrid.log"
    configuration.write_text(CONFIGURATION.format(port=port), encoding="utf-8")
    with log.open("w", encoding="utf-8") as output:
        server = subprocess.Popen(
            [str(python), str(installed / "bin" / "bgd"), "server", "start", str(configuration)],
            env=os.environ | {"PYTHONPATH": str(installed)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(port, server, log)
        yield f"grpc://127.0.0.1:{port}"
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    """Return when the server takes connections; end the program, with its log, where it does not."""
    end = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < end:
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    shutil.copyfileobj(log.open(encoding="utf-8"), sys.stderr)
    sys.exit("remote_cache.py: the cache server does not start; its log is above")


def free_port() -> int:
    """Return a port of the loopback device that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
