"""Tests of what the embedded cluster keeps in memory only."""

import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

from tools.launcher.iris.local.secret_memory import (
    SHARED_MEMORY,
    drop_task_files,
    forget,
    forget_unused,
    prepare,
    sealing_key,
    secret_memory,
)
from tools.launcher.iris.local.state import StateFolderUnusable


def test_it_lies_in_memory_below_a_folder_of_this_user(tmp_path: Path) -> None:
    memory = secret_memory(tmp_path)
    assert memory.folder.parent == SHARED_MEMORY / f"slipway-{os.getuid()}"
    assert not memory.folder.exists()
    other = tmp_path / "other"
    other.mkdir()
    assert secret_memory(other).folder != memory.folder
    first = secret_memory(tmp_path / "." / "other").folder
    assert first == secret_memory(other).folder
    # The name and often the inode are the same again; whoever still ends for the first one must not meet it.
    shutil.rmtree(other)
    other.mkdir()
    assert secret_memory(other).folder != first


def test_only_this_user_can_read_it_and_the_key_stays_until_it_is_forgotten(tmp_path: Path) -> None:
    memory = secret_memory(tmp_path, shared=tmp_path / "shm")
    (tmp_path / "shm").mkdir()
    prepare(memory)
    key = sealing_key(memory)
    assert stat.S_IMODE(memory.key_file.stat().st_mode) == 0o600
    for folder in (memory.folder.parent, memory.folder, memory.task_files):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (memory.task_files / "HF_TOKEN").write_text("value")
    drop_task_files(memory)
    prepare(memory)
    assert list(memory.task_files.iterdir()) == []
    assert sealing_key(memory) == key
    forget_unused(memory)
    assert sealing_key(memory) == key
    forget(memory)
    assert not memory.folder.exists()
    prepare(memory)
    forget_unused(memory)
    assert not memory.folder.exists()
    prepare(memory)
    assert sealing_key(memory) != key


@pytest.mark.parametrize("content", [b"", b"short", b"A" * 44, b"\xff"])
def test_a_spoilt_key_is_replaced(tmp_path: Path, content: bytes) -> None:
    memory = secret_memory(tmp_path, shared=tmp_path)
    prepare(memory)
    memory.key_file.write_bytes(content)
    key = sealing_key(memory)
    assert key != content
    assert sealing_key(memory) == key


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    memory = secret_memory(tmp_path, shared=tmp_path)
    memory.folder.parent.mkdir(mode=0o700)
    memory.folder.parent.chmod(0o755)
    with pytest.raises(StateFolderUnusable) as caught:
        prepare(memory)
    assert str(caught.value) == (
        f"{memory.folder.parent} is not a folder that only this user can enter. The embedded Iris keeps the "
        "credentials of its tasks there; remove it"
    )
    memory.folder.parent.rmdir()
    (tmp_path / "target").mkdir(mode=0o700)
    memory.folder.parent.symlink_to(tmp_path / "target")
    with pytest.raises(StateFolderUnusable, match="is not a folder that only this user can enter"):
        prepare(memory)


def test_no_memory_to_lie_in(tmp_path: Path) -> None:
    with pytest.raises(StateFolderUnusable) as caught:
        prepare(secret_memory(tmp_path, shared=tmp_path / "none"))
    assert str(caught.value) == (
        f"{tmp_path}/none/slipway-{os.getuid()} can't be made: No such file or directory. The embedded Iris keeps "
        f"the credentials of its tasks there, in memory; make {tmp_path}/none writable"
    )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
