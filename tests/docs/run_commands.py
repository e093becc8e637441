#!/usr/bin/env python3
"""Runs every command that the documents show, as a reader would, with a state folder of its own.

    tests/docs/run_commands.py

`tools/bazel test` commands are left to the caller, who runs `tools/bazel test //...`. Ends with
`N passed, N failed`.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.docs.markdown import commands, documents  # noqa: E402

SECONDS = 900


def main() -> int:
    shown = [command for document in documents(ROOT) for command in commands(document)]
    # In order of first appearance: status and verify come after a launch, `local stop` is repeated last.
    unique = [command for command in dict.fromkeys(shown) if not command.startswith("tools/bazel test ")]
    unique.sort(key=lambda command: command.endswith("local stop"))
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="slipway-docs-") as state:
        for command in unique:
            done = subprocess.run(
                command.split(),
                cwd=ROOT,
                env=os.environ | {"XDG_STATE_HOME": state},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            print(f"{'ok' if done.returncode == 0 else 'FAILED'}: {command}", flush=True)
            passed, failed = (passed + 1, failed) if done.returncode == 0 else (passed, failed + 1)
            if done.returncode:
                print(done.stdout[-3000:], done.stderr[-3000:], sep="\n", flush=True)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0 or passed == 0)


if __name__ == "__main__":
    sys.exit(main())
