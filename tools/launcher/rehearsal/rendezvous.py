"""The gang: tasks find rank 0 through a shared file and exchange bytes over loopback TCP.

There is one operation, `exchange`: every rank gives bytes and every rank gets everybody's, in rank
order. Sums, barriers and agreements are made of it, which is why they are the same bits on every
rank. Whoever waits has a deadline, and a peer that dies closes its socket: nobody waits for ever.
"""

import contextlib
import json
import secrets
import selectors
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from tools.launcher.documents.files import write_atomically
from tools.launcher.rehearsal.policy import Floats
from tools.launcher.rehearsal.problems import RehearsalProblem

LOOPBACK: Final = "127.0.0.1"
RENDEZVOUS_FILE: Final = "head.json"
_RETRY_SECONDS: Final = 0.05
_HEADER: Final = struct.Struct("!II")
_MAX_FRAME_BYTES: Final = 1 << 24
_ABORT: Final = "abort"


class GangError(RehearsalProblem):
    """The gang cannot go on. The message says who is missing and for how long it was awaited."""


class PeerLost(GangError):
    """Another task ended or reported a failure: this task is not the cause."""


class Gang:
    """The joined tasks, seen from one of them.

    Rank 0 holds a socket to every other rank, the others hold one to rank 0.
    """

    def __init__(
        self, rank: int, world_size: int, peers: dict[int, socket.socket], limit_seconds: float
    ) -> None:
        self.rank, self.world_size = rank, world_size
        self._peers, self._limit, self._operations = peers, limit_seconds, 0

    def exchange(self, payload: bytes, what: str) -> list[bytes]:
        """Give `payload`, return the payloads of all ranks in rank order.

        Args:
            payload: this rank's bytes.
            what: name of the operation; all ranks must be in the same one.

        Raises:
            PeerLost: a peer ended, failed, or reached another operation.
            GangError: a peer did not come within the limit.
        """
        tag = f"{self._operations}:{what}"
        self._operations += 1
        if self.world_size == 1:
            return [payload]
        deadline = time.monotonic() + self._limit
        if self.rank == 0:
            return self._exchange_as_head(payload, tag, deadline)
        with self._naming(0):
            _send(self._peers[0], tag, payload, deadline)
            # The head may itself wait a full limit for a third rank, and then say so: outwait it.
            joined = self._receive(0, tag, deadline + min(self._limit, 5.0))
        return _split(joined)

    def sum(self, array: Floats, what: str) -> Floats:
        """Return the sum of all ranks' arrays, added in rank order."""
        parts = self.exchange(np.ascontiguousarray(array, dtype="<f8").tobytes(), what)
        total = np.zeros(array.shape)
        for part in parts:
            total = total + np.frombuffer(part, dtype="<f8").reshape(array.shape)
        return total

    def barrier(self, what: str) -> None:
        """Wait until all ranks are here."""
        self.exchange(b"", what)

    def agree(self, value: str, what: str) -> None:
        """Check that all ranks hold the same text.

        Raises:
            GangError: they do not; the message names the ranks which differ from rank 0.
        """
        values = [part.decode() for part in self.exchange(value.encode(), what)]
        different = [rank for rank, other in enumerate(values) if other != values[0]]
        if different:
            raise GangError(
                f"{what}: ranks {different} hold {values[different[0]]!r}, rank 0 holds {values[0]!r}"
            )

    def abort(self, reason: str) -> None:
        """Tell the peers why this task ends. Best effort: they also notice the closed socket."""
        for peer in self._peers.values():
            with contextlib.suppress(OSError, GangError):
                _send(peer, _ABORT, reason.encode(), time.monotonic() + 1.0)

    def close(self) -> None:
        """Close all sockets."""
        for peer in self._peers.values():
            peer.close()

    def _exchange_as_head(self, payload: bytes, tag: str, deadline: float) -> list[bytes]:
        parts = {0: payload}
        with selectors.DefaultSelector() as selector:
            for rank, peer in self._peers.items():
                selector.register(peer, selectors.EVENT_READ, rank)
            while len(parts) < self.world_size:
                # Whoever speaks or dies first is served first: a death is seen at once although
                # another rank is slow.
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    missing = [rank for rank in range(self.world_size) if rank not in parts]
                    raise GangError(
                        f"ranks {missing} did not reach {tag.partition(':')[2]!r} within {self._limit:g} s"
                    )
                for key, _ in ready:
                    with self._naming(key.data):
                        parts[key.data] = self._receive(key.data, tag, deadline)
                    selector.unregister(key.fileobj)
        ordered = [parts[rank] for rank in range(self.world_size)]
        answer = _join(ordered)
        for rank, peer in self._peers.items():
            with self._naming(rank):
                _send(peer, tag, answer, deadline)
        return ordered

    def _receive(self, rank: int, tag: str, deadline: float) -> bytes:
        seen, payload = _receive(self._peers[rank], deadline)
        if seen == _ABORT:
            raise PeerLost(f"rank {rank} reports: {payload.decode(errors='replace')}")
        if seen != tag:
            raise PeerLost(f"rank {rank} is in operation {seen!r}, rank {self.rank} in {tag!r}")
        return payload

    @contextlib.contextmanager
    def _naming(self, rank: int) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise GangError(f"rank {rank} did not answer within {self._limit:g} s") from None
        except (OSError, EOFError) as error:
            raise PeerLost(f"lost rank {rank}: {str(error) or 'its connection was closed'}") from None


def join_gang(
    folder: Path, *, token: str, rank: int, world_size: int, join_seconds: float, step_seconds: float
) -> Gang:
    """Join the gang; returns when every rank has joined.

    Args:
        folder: shared folder through which the ranks find rank 0.
        token: what all tasks of this gang share (the attempt id): keeps strangers out.
        rank: this task's index.
        world_size: how many tasks must join.
        join_seconds: deadline for all to join.
        step_seconds: deadline of each later operation.

    Raises:
        GangError: not everybody joined in time; the message lists the missing ranks.
    """
    deadline = time.monotonic() + join_seconds
    if rank == 0:
        peers = _gather_peers(folder, token, world_size, deadline, join_seconds)
    else:
        peers = {0: _find_head(folder, token, rank, deadline, join_seconds)}
    joining = Gang(rank, world_size, peers, join_seconds)
    try:
        joining.barrier("all tasks joined")
    except GangError:
        joining.close()
        raise
    return Gang(rank, world_size, peers, step_seconds)


def _gather_peers(
    folder: Path, token: str, world_size: int, deadline: float, join_seconds: float
) -> dict[int, socket.socket]:
    peers: dict[int, socket.socket] = {}
    if world_size == 1:
        return peers
    # The file outlives the process, so every start of rank 0 has its own nonce: a task which still
    # reads an older file is turned away and reads again.
    nonce = secrets.token_hex(16)
    with socket.create_server((LOOPBACK, 0), backlog=world_size) as server:
        port = server.getsockname()[1]
        write_atomically(
            folder / RENDEZVOUS_FILE, json.dumps({"host": LOOPBACK, "port": port, "nonce": nonce}).encode()
        )
        while len(peers) < world_size - 1:
            server.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                connection, _ = server.accept()
            except TimeoutError:
                missing = [rank for rank in range(1, world_size) if rank not in peers]
                for peer in peers.values():
                    with contextlib.suppress(OSError, TimeoutError):
                        _send(peer, _ABORT, f"ranks {missing} never joined".encode(), time.monotonic() + 1.0)
                    peer.close()
                raise GangError(
                    f"{len(peers) + 1} of {world_size} tasks joined within {join_seconds:g} s; "
                    f"missing ranks: {missing}"
                ) from None
            other = _greeted_rank(connection, token, nonce, world_size)
            if other is None:
                connection.close()
            else:
                if other in peers:  # It came again because its first connection broke.
                    peers[other].close()
                peers[other] = connection
    return peers


def _greeted_rank(connection: socket.socket, token: str, nonce: str, world_size: int) -> int | None:
    try:
        tag, payload = _receive(connection, time.monotonic() + 2.0)
        greeting = json.loads(payload)
        rank = greeting["rank"]
        ours = tag == "join" and greeting["token"] == token and greeting["nonce"] == nonce
        if not ours or type(rank) is not int or not 0 < rank < world_size:
            return None
        _send(connection, "welcome", b"", time.monotonic() + 2.0)
    except (OSError, EOFError, ValueError, KeyError, TypeError):
        return None
    return rank


def _find_head(folder: Path, token: str, rank: int, deadline: float, join_seconds: float) -> socket.socket:
    problem = "rank 0 has not published its address"
    while time.monotonic() < deadline:
        try:
            head = json.loads((folder / RENDEZVOUS_FILE).read_bytes())
            connection = socket.create_connection((head["host"], head["port"]), timeout=2.0)
        except FileNotFoundError:
            time.sleep(_RETRY_SECONDS)
            continue
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = f"rank 0's published address does not answer ({error})"
            time.sleep(_RETRY_SECONDS)
            continue
        try:
            greeting = {"token": token, "nonce": head.get("nonce"), "rank": rank}
            _send(connection, "join", json.dumps(greeting).encode(), time.monotonic() + 2.0)
            if _receive(connection, time.monotonic() + 4.0)[0] == "welcome":
                return connection
            problem = "what answers at rank 0's published address is not this gang"
        except (OSError, EOFError, ValueError):
            problem = "rank 0's published address belongs to another gang or an earlier start"
        connection.close()
        time.sleep(_RETRY_SECONDS)
    raise GangError(f"rank {rank} could not join rank 0 within {join_seconds:g} s: {problem}")


def _send(connection: socket.socket, tag: str, payload: bytes, deadline: float) -> None:
    connection.settimeout(max(0.001, deadline - time.monotonic()))
    name = tag.encode()
    connection.sendall(_HEADER.pack(len(name), len(payload)) + name + payload)


def _receive(connection: socket.socket, deadline: float) -> tuple[str, bytes]:
    name_size, size = _HEADER.unpack(_receive_exactly(connection, _HEADER.size, deadline))
    if name_size > 1024 or size > _MAX_FRAME_BYTES:
        raise EOFError(f"a frame of {size} bytes, the limit is {_MAX_FRAME_BYTES}")
    name = _receive_exactly(connection, name_size, deadline).decode()
    return name, _receive_exactly(connection, size, deadline)


def _receive_exactly(connection: socket.socket, size: int, deadline: float) -> bytes:
    parts, missing = [], size
    while missing:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        part = connection.recv(min(missing, 1 << 16))
        if not part:
            raise EOFError("its connection was closed")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _join(parts: list[bytes]) -> bytes:
    return b"".join(struct.pack("!I", len(part)) + part for part in parts)


def _split(joined: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(joined):
        size = struct.unpack_from("!I", joined, at)[0]
        parts.append(joined[at + 4 : at + 4 + size])
        at += 4 + size
    return parts
