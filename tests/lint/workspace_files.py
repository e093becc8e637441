"""The committed files, as a test sees them: in its runfiles, or in a checkout."""

import os
import re
from pathlib import Path

# What lies in a checkout and is not committed.
SKIPPED_FOLDERS = frozenset({".git", ".venv", "__pycache__", "node_modules", ".hypothesis"})

# What the real rules_python lays into a test's runfiles: the standard library and
# wheels below the root's `external`, a name that Bazel keeps for itself, and a virtual
# environment and a start script for each program.
EXTERNAL = "external"
GENERATED_FOLDER = re.compile(r"_.+\.venv")
GENERATED_FILE = re.compile(r"_.+_stage2_bootstrap\.py")


def workspace_paths(root: Path) -> list[Path]:
    """Paths of all files below the workspace root, relative to it, sorted."""
    found = []
    for folder, names, files in os.walk(root):
        names[:] = [
            name
            for name in names
            if not _is_skipped(name) and not (name == EXTERNAL and Path(folder) == root)
        ]
        found += [
            Path(folder, file).relative_to(root) for file in files if not GENERATED_FILE.fullmatch(file)
        ]
    return sorted(found)


def _is_skipped(folder: str) -> bool:
    return (
        folder in SKIPPED_FOLDERS
        or folder.startswith("bazel-")
        or "_cache" in folder
        or GENERATED_FOLDER.fullmatch(folder) is not None
    )


def workspace_files(root: Path) -> dict[str, str]:
    """Text by path of the workspace's text files."""
    texts = {}
    for path in workspace_paths(root):
        try:
            texts[path.as_posix()] = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a binary file holds no code
    return texts


def python_files(root: Path) -> list[Path]:
    """Paths of the Python files, relative to the root."""
    return [path for path in workspace_paths(root) if path.suffix == ".py"]
