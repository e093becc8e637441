"""Every Python file is free of type errors by mypy, with the settings of pyproject.toml."""

import sys
from pathlib import Path

import mypy.api
import pytest

from tests.lint.workspace_files import python_files

# A test function needs no annotations, and is checked where it has them.
TEST_OPTIONS = (
    "--allow-untyped-defs",
    "--allow-incomplete-defs",
    "--allow-untyped-calls",
    "--allow-untyped-decorators",
    "--no-warn-return-any",
    "--no-check-untyped-defs",
)


def check(files: list[Path], cache: Path, *options: str) -> tuple[str, int]:
    """What mypy says, and its exit code. In this process, since it finds wheels by sys.path."""
    arguments = ["--config-file=pyproject.toml", f"--cache-dir={cache}", *options, *map(str, files)]
    output, errors, code = mypy.api.run(arguments)
    return output + errors, code


def modules() -> tuple[list[Path], list[Path]]:
    """(modules, tests). A module's name starts at the root, and .ci is none."""
    files = [file for file in python_files(Path.cwd()) if not file.parts[0].startswith(".")]
    tests = [file for file in files if file.stem.endswith("_test") or file.name == "conftest.py"]
    return [file for file in files if file not in tests], tests


def test_modules(tmp_path: Path) -> None:
    text, code = check(modules()[0], tmp_path)
    assert code == 0, text


def test_tests(tmp_path: Path) -> None:
    text, code = check(modules()[1], tmp_path, *TEST_OPTIONS)
    assert code == 0, text


def test_it_would_complain(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("import yaml\n\n\ndef f(x) -> int:\n    return yaml.safe_load(x)\n")
    text, code = check([bad], tmp_path / "cache")
    assert code == 1
    assert "no-untyped-def" in text


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
