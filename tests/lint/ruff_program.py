"""Where ruff is."""

import sys
from pathlib import Path

import ruff


def ruff_program() -> Path:
    """The program of the wheel, which lies beside site-packages or in it."""
    folder = Path(ruff.__file__).parent
    for base in (folder, folder.resolve()):
        for candidate in (base.parent / "bin" / "ruff", base.parents[1] / "bin" / "ruff"):
            if candidate.exists():
                return candidate
    beside_python = Path(sys.executable).parent / "ruff"
    assert beside_python.exists(), f"the wheel of ruff at {folder} has no program"
    return beside_python
