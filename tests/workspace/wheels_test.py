"""Wheels of the hub work however they are laid out: as links to folders, or file by file."""

import importlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

LOCK = Path("third_party/python/requirements_lock.txt")


@pytest.mark.parametrize(
    "distribution", ["google-cloud-storage", "marin-iris", "numpy", "protobuf", "pydantic"]
)
def test_metadata_has_the_locked_version(distribution: str) -> None:
    locked = re.search(rf"^{distribution}(?:\[.*\])?==(\S+)", LOCK.read_text(), re.MULTILINE)
    assert locked is not None
    assert importlib.metadata.version(distribution) == locked[1]


@pytest.mark.parametrize(
    "module",
    ["grpc._cython.cygrpc", "numpy._core._multiarray_umath", "pyarrow.lib", "pydantic_core._pydantic_core"],
)
def test_compiled_modules_load(module: str) -> None:
    file = importlib.import_module(module).__file__
    assert file is not None and file.endswith(".so")


def test_one_namespace_over_several_wheels() -> None:
    for module in ("google.protobuf", "google.cloud.storage", "google.auth", "google.api_core"):
        assert importlib.import_module(module).__name__ == module


def test_entry_points_are_found() -> None:
    assert "normalizer" in {entry.name for entry in importlib.metadata.entry_points(group="console_scripts")}


def test_wheels_of_preflight_are_there_file_by_file() -> None:
    # A sandboxed worker of many requests is given files; a folder that is one link is not among them.
    code = "import sys, tools.launcher.cli.preflight_worker\nfor m in sys.modules.values(): print(getattr(m, '__file__', ''))"
    files = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    folders = {
        Path(start) / name for start, name, _ in (file.partition("site-packages") for file in files) if name
    }
    modules = {Path(file).parent.name for file in files}
    assert folders and modules >= {"pydantic", "pydantic_core", "yaml", "flags"}
    assert [folder for folder in folders if folder.is_symlink()] == []


@pytest.mark.skipif(
    "runfiles" not in str(LOCK.absolute()), reason="not run by Bazel, which gives each test its own wheels"
)
def test_a_wheel_that_is_no_dependency_is_not_there() -> None:
    assert importlib.util.find_spec("hypothesis") is None


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
