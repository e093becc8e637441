"""A worker whose actions are Python code: the first argument is run, a number in `status` is its exit status."""

import sys
from collections.abc import Sequence
from typing import Any

from tools.launcher.worker.protocol import WorkRequest
from tools.launcher.worker.server import serve


def run_code(arguments: Sequence[str]) -> int:
    """Run the code."""
    names: dict[str, Any] = {"status": 0, "arguments": arguments}
    exec(arguments[0], names)
    status: int = names["status"]
    return status


def prepare(request: WorkRequest) -> None:
    """Print, as something that is imported might: it must not reach the protocol."""
    print("prepared", request.id)


if __name__ == "__main__":
    exec(" ".join(sys.argv[1:]))
    serve(run_code, prepare)
