"""What `launcher new` makes is formatted and lint-free, whatever its name."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lint.ruff_program import ruff_program
from tools.launcher.cli import exit_codes
from tools.launcher.cli.commands import run
from tools.launcher.cli.new_templates import TEMPLATES


@pytest.mark.parametrize("name", ["x", ("a_long_name_" * 4)[:40]])
@pytest.mark.parametrize("template", TEMPLATES)
def test_ruff_has_nothing_to_say(
    template: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    for mark in ("MODULE.bazel", "tools/launcher/defs.bzl", "experiments/budget.yaml"):
        (tmp_path / mark).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / mark).touch()
    shutil.copy("pyproject.toml", tmp_path)
    assert run(["new", name, f"--template={template}"]) == exit_codes.OK
    for arguments in (["check"], ["format", "--check", "--diff"]):
        done = subprocess.run(
            [ruff_program(), *arguments, "--no-cache", f"experiments/{name}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    readme = (tmp_path / f"experiments/{name}/README.md").read_text(encoding="utf-8")
    assert max(map(len, readme.splitlines())) <= 120


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
