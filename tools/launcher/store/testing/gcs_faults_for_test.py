"""What goes wrong in the fake of Google Cloud Storage, and when: faults and holds by request."""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Method = Literal["insert", "get", "list", "stat", "start", "chunk"]
"""Kinds of request.

insert: the request that creates an object (a multipart upload, or the last chunk of a resumable one).
get: the bytes of an object. stat: its metadata. list: one page of names.
start, chunk: the requests of a resumable upload before its last.
"""

Kind = Literal["answer", "delay", "cut", "lose_reply", "truncate", "damage"]


@dataclass(frozen=True)
class Request:
    """What a rule is matched against: the key is the object's name, of a list its prefix."""

    method: Method
    key: str


@dataclass
class Fault:
    """One thing that goes wrong for the next `left` matching requests (None: for all)."""

    kind: Kind
    method: Method | None
    key: str
    left: int | None
    status: int = 0
    seconds: float = 0.0


class Hold:
    """Stops the next requests that match until the test lets them go.

    A request held `before` has arrived and changed nothing; one held `after` has been carried out
    and is not answered. A client may time out or be killed meanwhile: `release` still carries out
    what it asked for, as a network would that delivers late; `cut` drops it.
    """

    def __init__(self, method: Method, key: str, when: Literal["before", "after"], count: int) -> None:
        self._method, self._key, self._when, self._count = method, key, when, count
        self._held = 0
        self._cut = False
        self._change = threading.Condition()
        self._let_go = threading.Event()

    def wait_reached(self, seconds: float) -> None:
        """Return as soon as all `count` requests are held.

        Raises:
            TimeoutError: they are not after `seconds`.
        """
        with self._change:
            if not self._change.wait_for(lambda: self._held >= self._count, seconds):
                raise TimeoutError(
                    f"{self._held} of {self._count} requests {self._method} {self._key!r} arrived in {seconds} s"
                )

    @property
    def reached(self) -> int:
        """How many requests were held so far."""
        with self._change:
            return self._held

    def release(self) -> None:
        """Let the held requests go on; later ones are no longer held."""
        self._let_go.set()

    def cut(self) -> None:
        """Close the connections of the held requests without a reply; later ones are no longer held."""
        self._cut = True
        self._let_go.set()

    def pass_through(self, request: Request, when: Literal["before", "after"]) -> bool:
        """Block `request` if it is to be held here.

        Returns:
            False if its connection is to be closed.
        """
        with self._change:
            mine = (
                when == self._when
                and request.method == self._method
                and re.search(self._key, request.key) is not None
                and self._held < self._count
                and not self._let_go.is_set()
            )
            if not mine:
                return True
            self._held += 1
            self._change.notify_all()
        self._let_go.wait()
        return not self._cut


class Faults:
    """The faults and holds of one server. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._holds: list[Hold] = []

    def add(self, fault: Fault) -> Fault:
        """Have `fault` happen from now on, and return it."""
        with self._lock:
            self._faults.append(fault)
        return fault

    def hold(self, method: Method, key: str, when: Literal["before", "after"], count: int) -> Hold:
        """Return a new hold; see `Hold`."""
        hold = Hold(method, key, when, count)
        with self._lock:
            self._holds.append(hold)
        return hold

    def take(self, request: Request) -> Fault | None:
        """Return the fault that happens to `request`, the first that was added, and count it."""
        with self._lock:
            for fault in self._faults:
                matches = fault.method in (None, request.method) and re.search(fault.key, request.key)
                if matches and fault.left != 0:
                    if fault.left is not None:
                        fault.left -= 1
                    return fault
        return None

    def pass_holds(self, request: Request, when: Literal["before", "after"]) -> bool:
        """Wait in every hold for `request`; False if its connection is to be closed."""
        return all(hold.pass_through(request, when) for hold in self._snapshot())

    def clear(self) -> None:
        """Forget all faults and let held requests go on."""
        with self._lock:
            self._faults.clear()
        self._end_holds(Hold.release)

    def close(self) -> None:
        """Cut everything that is held."""
        self._end_holds(Hold.cut)

    def _snapshot(self) -> list[Hold]:
        with self._lock:
            return list(self._holds)

    def _end_holds(self, end: Callable[[Hold], None]) -> None:
        for hold in self._snapshot():
            end(hold)
        with self._lock:
            self._holds.clear()
