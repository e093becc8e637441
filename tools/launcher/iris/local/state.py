"""Where the embedded cluster keeps its things, and the record of the running daemon."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from tools.launcher.documents.files import write_atomically

APPLICATION = "slipway"


class LocalClusterError(Exception):
    """The embedded cluster can't do what was asked; the text says why and what helps."""


class StateFolderUnusable(LocalClusterError):
    """The environment names a folder that can't hold the state; nothing was done."""


# In a file:/// address or an address of the controller's database these would mean something else.
_NOT_IN_ADDRESSES = "%?#"


def state_dir(environ: Mapping[str, str]) -> Path:
    """Slipway's state folder of this user: $XDG_STATE_HOME/slipway, else ~/.local/state/slipway.

    A relative XDG_STATE_HOME is ignored, as the XDG base directory specification asks.

    Args:
        environ: The process environment.

    Raises:
        StateFolderUnusable: Neither variable names a folder, or its path can't be part of an address.
    """
    configured = environ.get("XDG_STATE_HOME", "")
    home = environ.get("HOME", "")
    if Path(configured).is_absolute():
        folder = Path(configured) / APPLICATION
    elif Path(home).is_absolute():
        folder = Path(home) / ".local" / "state" / APPLICATION
    else:
        raise StateFolderUnusable(
            f"no place for local state: XDG_STATE_HOME is {configured!r} and HOME is {home!r}; "
            "set one of them to an absolute path"
        )
    if ".." in folder.parts or any(
        sign in _NOT_IN_ADDRESSES or not sign.isprintable() for sign in str(folder)
    ):
        raise StateFolderUnusable(
            f"the state folder {str(folder)!r} can't be part of an address: its path has '..', one of "
            f"{_NOT_IN_ADDRESSES}, or a character that can't be printed; set XDG_STATE_HOME to a folder "
            "without them"
        )
    return folder


@dataclass(frozen=True)
class LocalPaths:
    """Files of one embedded cluster, below `root` (`<state folder>/local`)."""

    root: Path

    @property
    def daemon_record(self) -> Path:
        """What is known of the daemon; a `DaemonRecord`."""
        return self.root / "daemon.json"

    @property
    def start_lock(self) -> Path:
        """Held by whoever starts or stops a daemon."""
        return self.root / "lock"

    @property
    def life_lock(self) -> Path:
        """Held by the daemon as long as it lives: there is never a second one."""
        return self.root / "daemon.lock"

    @property
    def log(self) -> Path:
        """What the daemon prints."""
        return self.root / "daemon.log"

    @property
    def home(self) -> Path:
        """HOME of the daemon and of its tasks; Iris puts its login token here."""
        return self.root / "home"

    @property
    def scratch(self) -> Path:
        """TMPDIR of the daemon: work folders of tasks. Emptied at each start."""
        return self.root / "tmp"

    @property
    def controller(self) -> Path:
        """Database and logs of the controller; kept."""
        return self.root / "controller"

    @property
    def controller_made(self) -> Path:
        """Exists once a controller has come up with its database: then that is whole."""
        return self.root / "controller.made"

    @property
    def controller_half_made(self) -> Path:
        """Where a database goes that was never whole."""
        return self.root / "controller.half-made"

    @property
    def bundles(self) -> Path:
        """Files sent with jobs, and checkpoints of the database; kept."""
        return self.root / "bundles"

    @property
    def runtimes(self) -> Path:
        """Snapshots of the code a daemon runs, one folder for each digest."""
        return self.root / "runtimes"


def local_paths(state: Path) -> LocalPaths:
    """The files of the cluster whose state folder is `state`."""
    return LocalPaths(state / "local")


class DaemonRecord(BaseModel):
    """One daemon, as it wrote itself down.

    Attributes:
        pid: Its process id, which another process may have by now: compare `start_ticks` too.
        start_ticks: When the process began, in clock ticks since the machine booted.
        boot_id: The boot those ticks count from.
        url: Address of the controller; "" while it starts.
        port: Port of the controller; 0 while it starts.
        runtime_digest: The snapshot it runs.
        started_at: RFC 3339, UTC.
        nonce: Stands in the environment of the daemon and of every process of its tasks.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    schema_version: Literal[1]
    pid: int
    start_ticks: int
    boot_id: str
    url: str
    port: int
    runtime_digest: str
    started_at: str
    nonce: str


def read_record(paths: LocalPaths) -> DaemonRecord | None:
    """The record of the last daemon; None if there is none or it can't be understood."""
    try:
        return DaemonRecord.model_validate_json(paths.daemon_record.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def write_record(paths: LocalPaths, record: DaemonRecord) -> None:
    """Replace the record of the daemon."""
    write_atomically(paths.daemon_record, record.model_dump_json(indent=1).encode() + b"\n")
