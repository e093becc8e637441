"""Wheels of the hub work however they are laid out: as links to folders, or file by file."""

import importlib
import importlib.metadata
import importlib.util
import re
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


@pytest.mark.skipif(
    "runfiles" not in str(LOCK.absolute()), reason="not run by Bazel, which gives each test its own wheels"
)
def test_a_wheel_that_is_no_dependency_is_not_there() -> None:
    assert importlib.util.find_spec("hypothesis") is None


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
