"""`//tools/launcher:lint` as scripts call it: the built program by its path."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tools/launcher/lint"
SMOKE = "tests/contract/examples/smoke-fsdp.yaml"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="only Bazel builds the program")


def lint(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, cwd=ROOT, timeout=120)


def test_the_program_judges_with_the_manifests_it_ships():
    done = lint("--format=json", SMOKE)
    assert (done.returncode, done.stderr) == (0, b"")
    (entry,) = json.loads(done.stdout)["documents"]
    assert (entry["path"], entry["verdict"]) == (SMOKE, "accept")
    assert entry["runtime"]["file"] == "81ae0ef7.yaml"


def test_help_and_wrong_usage():
    done = lint("--help")
    assert done.returncode == 0 and b"--runtime_manifest" in done.stdout
    assert lint("nowhere.yaml").returncode == 2


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
