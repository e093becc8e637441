"""The committed files are found among what lies beside them."""

import sys
from pathlib import Path

import pytest

from tests.lint.workspace_files import python_files, workspace_files, workspace_paths

COMMITTED = [
    "MODULE.bazel",
    "tests/external/a.py",
    "tools/_private.py",
    "tools/stage2_bootstrap.py",
    "tools/x.py",
]
OTHERS = [
    # of a checkout
    ".git/config",
    ".venv/lib/a.py",
    ".mypy_cache/a.json",
    "bazel-bin/a.py",
    "tools/__pycache__/x.pyc",
    # of the runfiles that the real rules_python makes
    "external/rules_python~~python~python_3_12/lib/python3.12/os.py",
    "tests/lint/_ruff_test.venv/lib/python3.12/site-packages/_bazel_site_init.py",
    "tests/lint/_ruff_test_stage2_bootstrap.py",
]


@pytest.fixture(name="root")
def fixture_root(tmp_path: Path) -> Path:
    for name in COMMITTED + OTHERS:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return tmp_path


def test_only_what_is_committed_is_found(root: Path) -> None:
    assert [path.as_posix() for path in workspace_paths(root)] == COMMITTED


def test_texts_are_read_and_binary_files_are_not(root: Path) -> None:
    (root / "binary").write_bytes(b"\xff\xfe")
    assert workspace_files(root) == {name: name for name in COMMITTED}


def test_python_files_are_those_by_name(root: Path) -> None:
    assert [path.as_posix() for path in python_files(root)] == COMMITTED[1:]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
