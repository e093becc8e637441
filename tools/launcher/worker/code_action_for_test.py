"""A worker whose actions are Python code: the first argument is run, a number in `status` is its exit status."""

import sys
from typing import Any

from tools.launcher.worker.protocol import WorkRequest
from tools.launcher.worker.server import serve


def run_code(request: WorkRequest) -> int:
    """Run the code."""
    names: dict[str, Any] = {"status": 0, "arguments": request.arguments}
    exec(request.arguments[0], names)
    status: int = names["status"]
    return status


def prepare(request: WorkRequest) -> None:
    """Print, as something that is imported might: it must not reach the protocol."""
    print("prepared", request.id)


def finish(request: WorkRequest) -> None:
    """Print as well."""
    print("finished", request.id)


if __name__ == "__main__":
    exec(" ".join(sys.argv[1:]))
    serve(run_code, prepare, finish)
