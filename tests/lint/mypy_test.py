"""Every Python file is free of type errors by mypy, with the settings of pyproject.toml."""

import sys
from pathlib import Path

import mypy.api
import pytest

from tests.lint.workspace_files import python_files

# A test function needs no annotations, and is checked where it has them.
OF_TESTS = """
[[tool.mypy.overrides]]
module = [{modules}]
disallow_untyped_defs = false
disallow_incomplete_defs = false
disallow_untyped_calls = false
disallow_untyped_decorators = false
warn_return_any = false
check_untyped_defs = false
"""


def settings(tests: list[Path], folder: Path) -> Path:
    """Those of pyproject.toml, and milder ones for `tests`, so that all is checked in one run."""
    names = ", ".join(f'"{".".join(test.with_suffix("").parts)}"' for test in tests)
    file = folder / "pyproject.toml"
    file.write_text(Path("pyproject.toml").read_text() + OF_TESTS.format(modules=names))
    return file


def check(files: list[Path], folder: Path, tests: list[Path]) -> tuple[str, int]:
    """What mypy says, and its exit code. In this process, since it finds wheels by sys.path."""
    arguments = [
        f"--config-file={settings(tests, folder)}",
        f"--cache-dir={folder / 'cache'}",
        *map(str, files),
    ]
    output, errors, code = mypy.api.run(arguments)
    return output + errors, code


def modules() -> tuple[list[Path], list[Path]]:
    """(modules, tests). A module's name starts at the root, and .ci is none."""
    files = [file for file in python_files(Path.cwd()) if not file.parts[0].startswith(".")]
    tests = [file for file in files if file.stem.endswith("_test") or file.name == "conftest.py"]
    return [file for file in files if file not in tests], tests


def test_all_files(tmp_path: Path) -> None:
    files, tests = modules()
    text, code = check([*files, *tests], tmp_path, tests)
    assert code == 0, text


def test_it_would_complain(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("import yaml\n\n\ndef f(x) -> int:\n    return yaml.safe_load(x)\n")
    text, code = check([bad], tmp_path, [])
    assert code == 1
    assert "no-untyped-def" in text


def test_it_would_complain_of_a_test(tmp_path: Path) -> None:
    bad = tmp_path / "bad_test.py"
    bad.write_text("def test_x():\n    pass\n\n\ndef test_y() -> int:\n    return 'y'\n")
    text, code = check([bad], tmp_path, [Path("bad_test.py")])
    assert code == 1
    assert ("no-untyped-def" in text, "return-value" in text) == (False, True)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
