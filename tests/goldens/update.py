"""Rewrites the golden launch documents from what the build renders now.

tools/bazel run //tests/goldens:update
"""

import os
import sys
from pathlib import Path

from tools.launcher.documents.files import write_atomically


def main() -> int:
    """Copy each rendered document over its golden and say what changed."""
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not workspace:
        sys.stderr.write("error: run it with `tools/bazel run //tests/goldens:update`\n")
        return 2
    for rendered in sorted(Path("experiments").glob("*/*.launch.yaml")):
        golden = Path(workspace) / rendered.parent / "golden" / "launch.yaml"
        data = rendered.read_bytes()
        if golden.exists() and golden.read_bytes() == data:
            print(f"{rendered.parent}: unchanged")
            continue
        write_atomically(golden, data)
        print(f"{rendered.parent}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
