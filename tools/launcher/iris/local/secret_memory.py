"""What the embedded cluster keeps in memory only: the key of sealed values, and the files of its tasks.

Both lie in /dev/shm, which is memory and ends with the machine's run, so that no value of a credential ever
reaches a disk. The folder outlives a daemon, because one that is started again needs the key for the jobs
it runs again; `forget` removes it when the cluster is stopped.
"""

import base64
import binascii
import os
import secrets
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from tools.launcher.documents.files import write_once
from tools.launcher.iris.local.state import StateFolderUnusable

SHARED_MEMORY = Path("/dev/shm")

_KEY_BYTES = 32
_NAME_FILE = "memory-name"


@dataclass(frozen=True)
class SecretMemory:
    """Files of one embedded cluster, below `folder`, which only its user can enter."""

    folder: Path

    @property
    def key_file(self) -> Path:
        """Key that the values in the controller's database are sealed with."""
        return self.folder / "key"

    @property
    def task_files(self) -> Path:
        """Where Iris writes the credentials of running tasks, one folder for each attempt."""
        return self.folder / "tasks"


def secret_memory(root: Path, *, shared: Path = SHARED_MEMORY) -> SecretMemory:
    """The memory of the cluster whose files lie in `root`; the memory's folder is not made.

    Args:
        root: `LocalPaths.root`, which exists. A name in it, drawn at the first call, names the memory: path and
            inode of a folder may be another's the next day, and whoever is removed must not take its memory.
        shared: folder in memory.

    Raises:
        FileNotFoundError: there is no such root.
    """
    name = root / _NAME_FILE
    root.stat()
    if not name.exists():
        write_once(name, secrets.token_hex(16).encode())
    return SecretMemory(shared / f"slipway-{os.getuid()}" / name.read_text(encoding="ascii"))


def prepare(memory: SecretMemory) -> None:
    """Make the folders, and see that nobody else can read them.

    Raises:
        StateFolderUnusable: they can't be made, or somebody else has made them.
    """
    for folder in (memory.folder.parent, memory.folder, memory.task_files):
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            found = folder.lstat()
        except OSError as error:
            raise StateFolderUnusable(
                f"{folder} can't be made: {error.strerror}. The embedded Iris keeps the credentials of its tasks "
                f"there, in memory; make {memory.folder.parent.parent} writable"
            ) from None
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise StateFolderUnusable(
                f"{folder} is not a folder that only this user can enter. The embedded Iris keeps the credentials "
                "of its tasks there; remove it"
            )


def sealing_key(memory: SecretMemory) -> bytes:
    """The key of this cluster, made if there is none: 32 bytes in URL-safe base64.

    Without its key what was sealed before can't be opened again; its jobs are then told so.

    Args:
        memory: prepared.

    Raises:
        OSError: the file can't be read or written.
    """
    try:
        key = memory.key_file.read_bytes()
        if len(base64.urlsafe_b64decode(key)) == _KEY_BYTES:
            return key
    except (FileNotFoundError, binascii.Error):
        pass
    key = base64.urlsafe_b64encode(secrets.token_bytes(_KEY_BYTES))
    memory.key_file.unlink(missing_ok=True)
    with open(memory.key_file, "xb", opener=_private) as file:
        file.write(key)
    return key


def drop_task_files(memory: SecretMemory) -> None:
    """Remove the credentials of tasks that no daemon runs any more."""
    shutil.rmtree(memory.task_files, ignore_errors=True)


def forget(memory: SecretMemory) -> None:
    """Remove everything; what was sealed can never be opened again."""
    shutil.rmtree(memory.folder, ignore_errors=True)


def forget_unused(memory: SecretMemory) -> None:
    """Remove the folders of a cluster that never came to make a key."""
    if not memory.key_file.exists():
        forget(memory)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
