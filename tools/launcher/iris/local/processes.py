"""Facts about processes, read from /proc: is this still the process meant, and what does it listen on."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_LISTEN = "0A"  # include/net/tcp_states.h


@dataclass(frozen=True)
class Listener:
    """A listening TCP socket: address as /proc shows it (hexadecimal), port, and whether IPv6."""

    address: str
    port: int
    ipv6: bool

    @property
    def loopback(self) -> bool:
        """True if only this machine can connect."""
        if self.ipv6:
            # ::1, or ::ffff:127.x.x.x; each 32-bit word is in host order, here little-endian.
            mapped = self.address.startswith("0000000000000000FFFF0000") and self.address.endswith("7F")
            return self.address == "00000000000000000000000001000000" or mapped
        return self.address.endswith("7F")


def boot_id() -> str:
    """Identity of this boot: process start times of another boot mean nothing."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int) -> int | None:
    """When a process began, in clock ticks since boot; None if it does not run (or is a zombie)."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the command in parentheses, which may hold spaces and parentheses.
    fields = text[text.rindex(")") + 2 :].split()
    if fields[0] in ("Z", "X"):
        return None
    return int(fields[19])


def listeners(pid: int) -> tuple[Listener, ...]:
    """The listening TCP sockets of a process of this user, by port."""
    inodes = set()
    try:
        for link in (_PROC / str(pid) / "fd").iterdir():
            try:
                target = str(link.readlink())
            except FileNotFoundError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
        tables = [
            ((_PROC / str(pid) / "net" / name).read_text(), name == "tcp6")
            for name in ("tcp", "tcp6")
            if (_PROC / str(pid) / "net" / name).exists()
        ]
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return ()
    found = set()
    for table, ipv6 in tables:
        for line in table.splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN and fields[9] in inodes:
                address, port = fields[1].split(":")
                found.add(Listener(address, int(port, 16), ipv6))
    return tuple(sorted(found, key=lambda item: (item.port, item.address)))


def carrying(variable: str, value: str) -> tuple[int, ...]:
    """Ids of the processes of this user that were started with `variable=value` in their environment.

    The environment is handed down, so this finds what a task started too, whatever became of its parent.
    """
    wanted = f"{variable}={value}".encode()
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
        if wanted in environment.split(b"\0"):
            found.append(int(entry.name))
    return tuple(sorted(found))


def kill_carrying(variable: str, value: str, *, seconds: float, spare: int | None = None) -> int:
    """Kill all processes `carrying` finds, again until none is left. The caller is never one of them.

    Args:
        variable: Name of the environment variable.
        value: Its value; has to be unique to what is to be killed.
        seconds: When to give up.
        spare: Id of a process to leave alone.

    Returns:
        How many were killed.
    """
    killed: set[int] = set()
    end = time.monotonic() + seconds
    while pids := [
        pid
        for pid in carrying(variable, value)
        if pid not in (os.getpid(), spare) and start_ticks(pid) is not None
    ]:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            except ProcessLookupError:
                continue
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    return len(killed)


def ended(pid: int, ticks: int, *, seconds: float) -> bool:
    """Wait until the process that began at `ticks` has ended; False if it has not in `seconds`."""
    end = time.monotonic() + seconds
    while start_ticks(pid) == ticks:
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
