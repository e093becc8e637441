"""Paths as they are typed on a command line."""

import os
from pathlib import Path


def typed_path(path: str) -> Path:
    """Return where `path` is: `bazel run` starts a program in its runfiles, and its user stands elsewhere."""
    return Path(os.environ.get("BUILD_WORKING_DIRECTORY", "")) / path


def workspace() -> Path:
    """Return the root of the workspace that `bazel run` was called in; outside of it, the working directory."""
    return Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
