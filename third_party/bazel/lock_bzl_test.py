"""lock.bzl reads hash-locked requirements. It keeps to what Starlark and Python share, so Python runs it."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

LOCK_BZL = Path("third_party/bazel/overlay/rules_python/python/air_gapped/lock.bzl")
LOCK = Path("third_party/python/requirements_lock.txt")


class Failed(Exception):
    """What Starlark's fail() does."""


def fail(text: str) -> None:
    raise Failed(text)


def function(name: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"fail": fail, "struct": SimpleNamespace}
    exec(compile(LOCK_BZL.read_text(), LOCK_BZL, "exec"), namespace)
    loaded: Callable[..., Any] = namespace[name]
    return loaded


def parse(text: str) -> dict[str, SimpleNamespace]:
    locked = function("parse_lock")(text, "lock.txt")
    assert isinstance(locked, dict)
    return locked


def test_name_extras_marker_hashes_and_comments() -> None:
    text = """\
# a comment
--index-url https://example.org/simple
Ruamel.yaml-clib[a,b]==0.2.1 ; python_version < "3.13" \\
    --hash=sha256:11 \\
    --hash=sha256:22
    # via
    #   other-package
plain==1 --hash=sha256:33  # why
"""
    locked = parse(text)
    assert list(locked) == ["ruamel_yaml_clib", "plain"]
    assert locked["ruamel_yaml_clib"] == SimpleNamespace(
        requirement='Ruamel.yaml-clib[a,b]==0.2.1 ; python_version < "3.13"',
        extras=["a", "b"],
        hashes=["sha256:11", "sha256:22"],
    )
    assert locked["plain"] == SimpleNamespace(requirement="plain==1", extras=[], hashes=["sha256:33"])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a>=1 --hash=sha256:11\n", "lock.txt: 'a>=1' has no exact version. Write the lock anew."),
        ("a==1\n", "lock.txt: 'a==1' has no hash. Write the lock anew with hashes."),
        ("a-b==1 --hash=sha256:1\nA_b==1 --hash=sha256:1\n", "lock.txt: 'A_b' is locked twice."),
    ],
)
def test_refusals(text: str, error: str) -> None:
    with pytest.raises(Failed) as failed:
        parse(text)
    assert str(failed.value) == error


def test_label_names() -> None:
    assert function("label_name")("Google-Cloud.Storage") == "google_cloud_storage"


def test_our_lock() -> None:
    locked = parse(LOCK.read_text())
    assert len(locked) == LOCK.read_text().count("==")
    assert locked["marin_iris"].extras == ["controller"]
    assert all(len(digest) == len("sha256:") + 64 for package in locked.values() for digest in package.hashes)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
