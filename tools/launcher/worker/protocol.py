"""The messages of Bazel's persistent workers, JSON form: one a line.

Source: src/main/protobuf/worker_protocol.proto of Bazel 7.7.1, and bazel.build/remote/creating. Fields that
are not known here are passed over, as the protocol asks.
"""

import dataclasses
import json
from typing import Any


class ProtocolError(Exception):
    """What came is no work request. Nobody can be answered: the worker has to end."""


@dataclasses.dataclass(frozen=True)
class WorkRequest:
    """One action to run, or one to give up.

    Attributes:
        id: which response belongs to it; 0 if requests come one at a time. Numbers come again with each build.
        arguments: of the action, those of its parameter file among them.
        folder: where its files are, from the worker's working directory; empty if they are right there.
        cancel: the request of the same id is no longer wanted.
    """

    id: int
    arguments: tuple[str, ...]
    folder: str
    cancel: bool


def parse_request(line: bytes) -> WorkRequest:
    """Read one line. Raises ProtocolError."""
    try:
        message = json.loads(line)
    except ValueError as error:
        raise ProtocolError(f"a work request is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise ProtocolError(f"a work request is a {type(message).__name__}, not an object")
    arguments = _field(message, "arguments", list, [])
    for argument in arguments:
        if not isinstance(argument, str):
            raise ProtocolError(f"an argument of a work request is {argument!r}, not a str")
    return WorkRequest(
        id=_field(message, "requestId", int, 0),
        arguments=tuple(arguments),
        folder=_field(message, "sandboxDir", str, ""),
        cancel=_field(message, "cancel", bool, False),
    )


def finished(request_id: int, *, status: int, output: str) -> bytes:
    """Return the line that answers a request: its exit status, and what a user should read."""
    return _line({"exitCode": status, "output": output, "requestId": request_id})


def cancelled(request_id: int) -> bytes:
    """Return the line that answers a request which was given up."""
    return _line({"requestId": request_id, "wasCancelled": True})


def _line(message: dict[str, Any]) -> bytes:
    return (json.dumps(message) + "\n").encode("ascii")


def _field[Value](message: dict[str, Any], name: str, kind: type[Value], default: Value) -> Value:
    value = message.get(name, default)
    if not isinstance(value, kind):
        raise ProtocolError(f"field {name} of a work request is {value!r}, not a {kind.__name__}")
    return value
