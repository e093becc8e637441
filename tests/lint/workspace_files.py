"""The committed files, as a test sees them: in its runfiles, or in a checkout."""

import os
from pathlib import Path

# What lies in a checkout and is not committed.
SKIPPED_FOLDERS = frozenset({".git", ".venv", "__pycache__", "node_modules", ".hypothesis"})


def workspace_paths(root: Path) -> list[Path]:
    """Paths of all files below the workspace root, relative to it, sorted."""
    found = []
    for folder, names, files in os.walk(root):
        names[:] = [
            name
            for name in names
            if name not in SKIPPED_FOLDERS and not name.startswith("bazel-") and "_cache" not in name
        ]
        found += [Path(folder, file).relative_to(root) for file in files]
    return sorted(found)


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
