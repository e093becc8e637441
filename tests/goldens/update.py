"""Rewrites what is generated and kept under version control, from what the build makes of it now: the golden
launch documents, docs/preflight.md, docs/launching.md, docs/performance.md and docs/schemas.

tools/bazel run //tests/goldens:update
"""

import os
import sys
from pathlib import Path

from tests.bench import results_page
from tests.docs import launching_page, preflight_page, schemas
from tools.launcher.documents.files import write_atomically


def main() -> int:
    """Write each generated file over the one that is kept, and say what changed."""
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not workspace:
        sys.stderr.write("error: run it with `tools/bazel run //tests/goldens:update`\n")
        return 2
    for rendered in sorted(Path("experiments").glob("*/*.launch.yaml")):
        golden = rendered.parent / "golden" / "launch.yaml"
        _write(Path(workspace), golden, rendered.read_bytes())
    for document in (preflight_page, launching_page, results_page):
        _write(Path(workspace), document.PAGE, document.page().encode())
    for path, text in schemas.schemas().items():
        _write(Path(workspace), path, text.encode())
    return 0


def _write(workspace: Path, kept: Path, data: bytes) -> None:
    file = workspace / kept
    if file.exists() and file.read_bytes() == data:
        print(f"{kept}: unchanged")
        return
    write_atomically(file, data)
    print(f"{kept}: written")


if __name__ == "__main__":
    sys.exit(main())
