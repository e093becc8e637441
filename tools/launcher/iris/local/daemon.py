"""The process behind the embedded cluster: Iris's controller and workers on the loopback interface.

Started by `control`, from a snapshot of the runtime, with an environment of its own. It holds a lock
as long as it lives, writes itself down, and ends on SIGTERM or SIGINT.
"""

import argparse
import datetime
import faulthandler
import fcntl
import logging
import os
import shutil
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.launcher.iris.launch_message import GANG_GROUP_BY
from tools.launcher.iris.local import processes
from tools.launcher.iris.local.sealing import deliver_secrets_below, replace_function, seal_stored_secrets
from tools.launcher.iris.local.secret_memory import (
    SecretMemory,
    drop_task_files,
    forget,
    prepare,
    sealing_key,
    secret_memory,
)
from tools.launcher.iris.local.shapes import (
    CPU_NODE,
    CPU_NODES_MAX,
    GANG_SIZES,
    NODE_KINDS,
    SLICES_MAX,
    NodeKind,
)
from tools.launcher.iris.local.state import DaemonRecord, LocalPaths, read_record, write_record

if TYPE_CHECKING:
    from iris.cluster.config import IrisClusterConfig, ScaleGroupConfig, ScaleGroupResources

NONCE_VARIABLE = "SLIPWAY_LOCAL_CLUSTER"
ALREADY_RUNNING = 3
"""Exit status: another daemon of this state folder lives."""

WATCH_SECONDS = 2.0
"""How often a daemon looks whether it is still the one written down. One that is not ends: somebody
removed the state folder, and nobody could find or stop it any more."""

ORDERLY_SECONDS = 3.0
"""How long stopping may take before processes that tasks left are killed, and then before the daemon
ends regardless. Iris needs 1 s without GPU workers."""

TAKE_OVER_SECONDS = 20.0
"""How long a new daemon waits for one without a record to end."""

# The CPU group goes first whenever both could take a job.
_CPU_PRIORITY = 10
_GPU_PRIORITY = 100


class _KeptFolder:
    """Stands where Iris wants a TemporaryDirectory that it may not delete."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.name = str(path)

    def cleanup(self) -> None:
        """Keep the folder."""


def main(arguments: list[str]) -> int:
    """Run the daemon until it is told to end.

    Args:
        arguments: `--root`, the folder of `LocalPaths`, `--digest` of the runtime, `--nonce`.

    Returns:
        Exit status: 0, or ALREADY_RUNNING.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--digest", required=True)
    parser.add_argument("--nonce", required=True)
    options = parser.parse_args(arguments)
    paths = LocalPaths(options.root)
    os.umask(0o077)
    # Tasks inherit it; the caller's is a tree of Bazel's.
    os.chdir(paths.root)

    if not _lock_for_life(paths):
        print("another daemon of this folder is running", file=sys.stderr)
        return ALREADY_RUNNING

    previous = read_record(paths)
    ticks = processes.start_ticks(os.getpid())
    if ticks is None:
        raise RuntimeError("/proc does not show this process")
    record = DaemonRecord(
        schema_version=1,
        pid=os.getpid(),
        start_ticks=ticks,
        boot_id=processes.boot_id(),
        url="",
        port=0,
        runtime_digest=options.digest,
        started_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        nonce=options.nonce,
    )
    write_record(paths, record)

    faulthandler.register(signal.SIGUSR1)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    shutil.rmtree(paths.scratch, ignore_errors=True)
    paths.scratch.mkdir(mode=0o700, parents=True)
    memory = secret_memory(paths.root)
    drop_task_files(memory)
    prepare(memory)

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname).1s %(name)s %(message)s")
    for noisy in ("uvicorn.access", "iris.cluster.controller.autoscaler"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    port = free_port(previous.port if previous is not None else 0)
    set_half_made_aside(paths)
    cluster = _cluster(paths, port, memory)
    try:
        # Inside the try: a start that fails half-way leaves threads that keep the process alive.
        url = cluster.start()
        paths.controller_made.touch()
        write_record(paths, record.model_copy(update={"url": url, "port": port}))
        while not stop.wait(WATCH_SECONDS):
            written = read_record(paths)
            if written is None or written.nonce != options.nonce:
                print("the record of this daemon is gone; ending", file=sys.stderr)
                forget(memory)
                break
    finally:
        _stop(cluster, options.nonce)
    return 0


def set_half_made_aside(paths: LocalPaths) -> None:
    """Move the controller's folder away if no controller has ever come up with it.

    A first start that was killed, or met a full disk, leaves a database without some of its tables, and
    no later start would get past it. No job can have been submitted to it.
    """
    if paths.controller.exists() and not paths.controller_made.exists():
        shutil.rmtree(paths.controller_half_made, ignore_errors=True)
        paths.controller.rename(paths.controller_half_made)


def _stop(cluster: Any, nonce: str) -> None:
    """Stop the cluster, in bounded time.

    What a task left running holds on to a pipe that Iris reads, and a task that has just ended sends its
    last lines to a log server that is ending too; each would hold the end up.
    """
    stopping = threading.Thread(target=cluster.stop, name="stop", daemon=True)
    stopping.start()
    stopping.join(timeout=ORDERLY_SECONDS)
    if stopping.is_alive():
        processes.kill_carrying(NONCE_VARIABLE, nonce, seconds=1.0)
        stopping.join(timeout=ORDERLY_SECONDS)
    if stopping.is_alive():
        # The database is written in transactions; only lines of log not yet sent are lost.
        print("some threads did not end in time; ending without them", file=sys.stderr, flush=True)
        os._exit(0)


def _lock_for_life(paths: LocalPaths) -> bool:
    """Take the lock of the living, and keep it; a daemon without a record is given time to end."""
    lock = os.open(paths.life_lock, os.O_RDWR | os.O_CREAT, 0o600)
    end = time.monotonic() + TAKE_OVER_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.1)


def free_port(wanted: int) -> int:
    """A free TCP port of 127.0.0.1: `wanted` if it is one, so that addresses written down stay true."""
    for candidate in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", candidate))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise RuntimeError("no free TCP port on 127.0.0.1")


def _cluster(paths: LocalPaths, port: int, memory: SecretMemory) -> Any:
    from iris.cluster.local_cluster import LocalCluster

    _give_workers_the_size_of_their_group()
    _advertise_loopback()
    seal_stored_secrets(sealing_key(memory))
    deliver_secrets_below(memory.task_files)
    cluster = LocalCluster(cluster_config(paths, port))
    # LocalCluster keeps its database in a temporary folder; ours outlives the process.
    cluster._db_dir.cleanup()
    cluster._db_dir = _KeptFolder(paths.controller)
    return cluster


def _give_workers_the_size_of_their_group() -> None:
    """Local workers report 1000 GiB of memory and 100 GiB of disk, whatever their group has.

    A plan's request for 2 TB of disk would pass the check at submission and then wait for ever. The
    sizes are written into `InMemoryGcpService`, so the function it builds a worker's report with is
    wrapped, in this process only.
    """
    from iris.cluster.platforms.gcp import fake

    build: Any = getattr(fake, "build_worker_metadata", None)

    def sized(*args: Any, **kwargs: Any) -> Any:
        metadata = build(*args, **kwargs)
        variant = kwargs.get("accelerator_variant", "")
        node = next((kind for kind in NODE_KINDS if kind.gpu_variant == variant), CPU_NODE)
        metadata.memory_bytes = node.memory_bytes
        metadata.disk_bytes = node.disk_bytes
        return metadata

    replace_function(fake, "build_worker_metadata", sized)


def _advertise_loopback() -> None:
    """Tasks are told that others reach them at 127.0.0.1.

    Iris asks the routing table for the way to a public address instead, and every task fails on a
    machine that has no network at all.
    """
    from iris.cluster.worker import task_attempt

    replace_function(task_attempt, "probe_outbound_ip", lambda: "127.0.0.1")


def cluster_config(paths: LocalPaths, port: int) -> "IrisClusterConfig":
    """The configuration of the embedded cluster: one CPU group and a group for each gang.

    Args:
        paths: Where it keeps its things.
        port: Port of the controller.
    """
    from iris.cluster.config import IrisClusterConfig, ScaleGroupConfig, make_local_config
    from iris.cluster.types import AcceleratorType
    from rigging.timing import Duration

    groups = [
        ScaleGroupConfig(
            name="cpu",
            # One CPU node is always there: a coordinator need not wait for the autoscaler.
            buffer_slices=1,
            max_slices=CPU_NODES_MAX,
            num_vms=1,
            priority=_CPU_PRIORITY,
            resources=_resources(CPU_NODE, AcceleratorType.CPU),
        ),
        *(_gang_group(kind, size) for kind in NODE_KINDS for size in GANG_SIZES),
    ]
    config = make_local_config(
        IrisClusterConfig(name="slipway-local", scale_groups={group.name: group for group in groups})
    )
    config.controller.local.port = port
    config.storage.remote_state_dir = paths.bundles.as_uri()
    config.defaults.autoscaler.scale_down_delay = Duration.from_seconds(10)
    return config


def _gang_group(kind: NodeKind, size: int) -> "ScaleGroupConfig":
    from iris.cluster.config import LocalSliceConfig, ScaleGroupConfig, SliceConfig, WorkerSettings
    from iris.cluster.types import AcceleratorType

    name = f"{kind.gpu_variant.lower()}x{kind.gpus}-n{size:02d}"
    return ScaleGroupConfig(
        name=name,
        buffer_slices=0,
        max_slices=SLICES_MAX,
        num_vms=size,
        priority=_GPU_PRIORITY,
        resources=_resources(kind, AcceleratorType.GPU),
        worker=WorkerSettings(attributes={GANG_GROUP_BY: name}),
        # Without a template of this kind the workers offer no GPU, and jobs wait for ever.
        slice_template=SliceConfig(num_vms=size, local=LocalSliceConfig()),
    )


def _resources(kind: NodeKind, device: Any) -> "ScaleGroupResources":
    from iris.cluster.config import ScaleGroupResources

    return ScaleGroupResources(
        cpu_millicores=kind.cpu * 1000,
        memory_bytes=kind.memory_bytes,
        disk_bytes=kind.disk_bytes,
        device_type=device,
        device_variant=kind.gpu_variant,
        device_count=kind.gpus,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
