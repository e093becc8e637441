"""Every Python file is formatted and lint-free by ruff, with the settings of pyproject.toml."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lint.ruff_program import ruff_program
from tests.lint.workspace_files import python_files


@pytest.mark.parametrize(
    ("arguments", "repair"),
    [
        (["check", "--output-format=concise"], "ruff check --fix"),
        (["format", "--check", "--quiet", "--diff"], "ruff format"),
    ],
)
def test_ruff(arguments: list[str], repair: str) -> None:
    files = python_files(Path.cwd())
    result = subprocess.run(
        [ruff_program(), *arguments, "--no-cache", "--config=pyproject.toml", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"repair with `{repair}`, or by hand:\n{result.stdout}{result.stderr}"


def test_it_would_complain(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("import os\nx = 'a'\n")
    for arguments in (["check"], ["format", "--check"]):
        command: list[str | Path] = [ruff_program(), *arguments, "--no-cache", "--config=pyproject.toml", bad]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 1


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
