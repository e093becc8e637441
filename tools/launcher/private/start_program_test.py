"""The start script of programs, with the places filled in as program_start.bzl does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TEMPLATE = Path(__file__).with_name("start_program.sh")
MAIN = "_main/tools/seen.py"
SEEN = """\
import json, os, sys
names = ("RUNFILES_DIR", "RUNFILES_MANIFEST_FILE", "PYTHONSAFEPATH")
json.dump({"arguments": sys.argv[1:], "path": sys.path, "env": {name: os.environ.get(name) for name in names}}, sys.stdout)
sys.exit(7)
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def runfiles(folder):
    """Make runfiles with the program, a wheel and another repository, and return their folder."""
    write(folder / MAIN, SEEN)
    write(folder / "pip~wheel/site-packages/wheel.py", "")
    write(folder / "rules~lib/python/runfiles.py", "")
    return folder


def program(path, python=sys.executable):
    """Write the start script to `path` and return it."""
    text = TEMPLATE.read_text()
    for name, value in (("main", MAIN), ("python", python), ("imports", "pip~wheel/site-packages")):
        assert f"%{name}%" in text
        text = text.replace(f"%{name}%", value)
    write(path, text)
    return path


@pytest.fixture
def built(tmp_path):
    """A program as the build leaves it, its runfiles beside it."""
    runfiles(tmp_path / "bin/seen.runfiles")
    return program(tmp_path / "bin/seen")


def run(script, *arguments, status=7, cwd=None, **env):
    done = subprocess.run(
        [script, *arguments], capture_output=True, text=True, env={"PATH": os.environ["PATH"], **env}, cwd=cwd
    )
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout) if status == 7 else done.stderr


def test_arguments_and_status_are_those_of_the_program(built):
    assert run(built, "a b", "", "$HOME;*", "--x='1'")["arguments"] == ["a b", "", "$HOME;*", "--x='1'"]


def test_modules_come_from_the_runfiles_and_not_from_the_machine(built):
    seen = run(built)
    folder = Path(f"{built}.runfiles")
    ours = [str(folder / "_main"), str(folder / "pip~wheel/site-packages"), str(folder / "rules~lib")]
    assert seen["path"][:3] == ours
    assert not [entry for entry in seen["path"][3:] if "site-packages" in entry]
    assert seen["env"] == {
        "RUNFILES_DIR": str(folder),
        "RUNFILES_MANIFEST_FILE": None,
        "PYTHONSAFEPATH": "1",
    }


def test_the_callers_module_path_comes_last(built):
    assert "/theirs" in run(built, PYTHONPATH="/theirs")["path"][3:]


@pytest.mark.parametrize("name", ["seen", "./seen"])
def test_it_is_found_from_the_folder_it_lies_in(built, name):
    place = {"PATH": f"{built.parent}:{os.environ['PATH']}"} if name == "seen" else {}
    done = subprocess.run(
        ["sh", "-c", name], capture_output=True, text=True, cwd=built.parent, env={**os.environ, **place}
    )
    assert done.returncode == 7, done.stderr


def test_links_to_it_lead_to_its_runfiles(built, tmp_path):
    (tmp_path / "links").mkdir()
    (tmp_path / "links/relative").symlink_to("../bin/seen")
    (tmp_path / "links/absolute").symlink_to(tmp_path / "links/relative")
    for name in ("relative", "absolute"):
        seen = run(tmp_path / "links" / name)
        assert Path(seen["env"]["RUNFILES_DIR"]).samefile(f"{built}.runfiles")


def test_a_program_inside_the_runfiles_of_another_uses_those(tmp_path):
    folder = runfiles(tmp_path / "test.runfiles")
    script = program(folder / "_main/tools/bin")
    assert run(script)["env"]["RUNFILES_DIR"] == str(folder)


def test_runfiles_that_the_caller_names_are_used_if_they_have_the_program(built, tmp_path):
    other = runfiles(tmp_path / "other place")
    assert run(built, RUNFILES_DIR=str(other))["env"]["RUNFILES_DIR"] == str(other)
    seen = run(built, RUNFILES_DIR=str(tmp_path), RUNFILES_MANIFEST_FILE="/theirs.runfiles_manifest")
    assert seen["env"]["RUNFILES_DIR"] == f"{built}.runfiles"
    assert seen["env"]["RUNFILES_MANIFEST_FILE"] is None


def test_the_interpreter_may_lie_in_the_runfiles(tmp_path):
    folder = runfiles(tmp_path / "seen.runfiles")
    (folder / "python/bin").mkdir(parents=True)
    (folder / "python/bin/python3").symlink_to(sys.executable)
    run(program(tmp_path / "seen", "$runfiles/python/bin/python3"))


def test_missing_runfiles_are_named(tmp_path):
    script = program(tmp_path / "seen")
    assert run(script, status=1) == (
        f"{script}: {script}.runfiles does not have {MAIN}. Build this program with tools/bazel\n"
    )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
