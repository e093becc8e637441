"""Every package of the checkout is in packages.bzl, so that no file escapes the checks."""

import ast
import sys
from pathlib import Path

import pytest

from tests.lint.workspace_files import workspace_paths

LIST = Path("tests/lint/packages.bzl")


def listed() -> list[str]:
    """The value of PACKAGES."""
    for node in ast.parse(LIST.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PACKAGES":
            packages = ast.literal_eval(node.value)
            assert isinstance(packages, list)
            return packages
    raise AssertionError(f"{LIST} has no PACKAGES")


def checkout() -> Path:
    """The checkout itself: runfiles are links into it."""
    return LIST.resolve().parents[2]


def packages_of_checkout() -> set[str]:
    """Folders with a BUILD.bazel, '' for the root."""
    paths = workspace_paths(checkout())
    return {
        "" if path.parent == Path() else path.parent.as_posix()
        for path in paths
        if path.name == "BUILD.bazel"
    }


def test_every_package_is_listed() -> None:
    missing = sorted(packages_of_checkout() - set(listed()))
    assert not missing, f"add to PACKAGES in {LIST}: {missing}"


def test_no_listed_package_is_gone() -> None:
    gone = sorted(set(listed()) - packages_of_checkout())
    assert not gone, f"remove from PACKAGES in {LIST}: {gone}"


def test_the_list_is_sorted() -> None:
    assert listed() == sorted(set(listed())), f"sort PACKAGES in {LIST}, each once"


def test_every_python_file_of_the_checkout_is_linted() -> None:
    # a folder without BUILD.bazel belongs to the package above it, whose
    # `sources` may leave it out
    python = {path for path in workspace_paths(checkout()) if path.suffix == ".py"}
    unseen = sorted(str(path) for path in python - set(workspace_paths(Path.cwd())))
    assert not unseen, f"in no `sources` filegroup of a listed package: {unseen}"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
