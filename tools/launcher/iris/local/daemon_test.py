"""Tests of what the daemon decides before it starts Iris."""

import socket
import sys
from pathlib import Path

import pytest

from tools.launcher.iris.launch_message import GANG_GROUP_BY
from tools.launcher.iris.local.daemon import cluster_config, free_port, set_half_made_aside
from tools.launcher.iris.local.shapes import GANG_SIZES, NODE_KINDS
from tools.launcher.iris.local.state import LocalPaths


def test_the_port_of_before_is_taken_again() -> None:
    port = free_port(0)
    assert port != 0
    assert free_port(port) == port


def test_a_port_of_somebody_else_is_passed_by() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        port = free_port(taken)
        assert port not in (0, taken)


def test_every_offered_gang_has_a_group(tmp_path: Path) -> None:
    config = cluster_config(LocalPaths(tmp_path), 12345)
    assert config.controller.local.port == 12345
    assert config.storage.remote_state_dir == f"file://{tmp_path}/bundles"
    gangs = {
        (group.resources.device_variant, group.resources.device_count, group.num_vms)
        for group in config.scale_groups.values()
        if group.resources.device_count
    }
    assert gangs == {(kind.gpu_variant, kind.gpus, size) for kind in NODE_KINDS for size in GANG_SIZES}
    for group in config.scale_groups.values():
        if group.resources.device_count:
            assert group.worker.attributes == {GANG_GROUP_BY: group.name}
            assert group.slice_template.num_vms == group.num_vms
            assert group.buffer_slices == 0


def test_a_cpu_node_is_always_there_and_goes_first(tmp_path: Path) -> None:
    groups = cluster_config(LocalPaths(tmp_path), 1).scale_groups
    cpu = groups.pop("cpu")
    assert cpu.buffer_slices == 1
    # A coordinator: 4 CPU, 16 GB, 64 GB of disk.
    assert cpu.resources.cpu_millicores >= 4000
    assert cpu.resources.memory_bytes >= 16 * 10**9
    assert cpu.resources.disk_bytes >= 64 * 10**9
    assert all(cpu.priority < group.priority for group in groups.values())


def test_a_database_that_was_never_whole_is_set_aside(tmp_path: Path) -> None:
    paths = LocalPaths(tmp_path)
    set_half_made_aside(paths)
    assert list(tmp_path.iterdir()) == []
    for content in ("first", "second"):
        paths.controller.mkdir()
        (paths.controller / "controller.sqlite3").write_text(content)
        set_half_made_aside(paths)
        assert not paths.controller.exists()
        assert (paths.controller_half_made / "controller.sqlite3").read_text() == content


def test_the_database_of_a_controller_that_came_up_is_kept(tmp_path: Path) -> None:
    paths = LocalPaths(tmp_path)
    paths.controller.mkdir()
    paths.controller_made.touch()
    set_half_made_aside(paths)
    assert paths.controller.is_dir() and not paths.controller_half_made.exists()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
