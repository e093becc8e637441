"""Tests of the snapshot, on trees laid out as Bazel lays them."""

import dataclasses
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tools.launcher.iris.local import runtime
from tools.launcher.iris.local.runtime import (
    _launcher_files,
    drop_other_runtimes,
    graft,
    in_bazel_tree,
    lay_down,
    plan_runtime,
)

# Bazel's own in one world, the host's in the other.
PYTHON = os.path.realpath(sys.executable)


def silent(_: str) -> None:
    pass


def wheel(folder: Path, name: str, version: str = "1.0", value: int = 1) -> Path:
    """An unpacked wheel with one module."""
    (folder / f"{name}-{version}.dist-info").mkdir(parents=True)
    (folder / f"{name}-{version}.dist-info" / "METADATA").write_text(f"Name: {name}\n")
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(f"VALUE = {value}\n")
    return folder


def linked_folder(tmp_path: Path, name: str) -> Path:
    """A wheel as one symbolic link to a folder, below runfiles."""
    real = wheel(tmp_path / "output" / "external" / f"hub_{name}" / "site-packages", name)
    link = tmp_path / "bin" / "launch.runfiles" / f"hub_{name}" / "site-packages"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    return link


def linked_files(tmp_path: Path, name: str) -> Path:
    """A wheel as folders of symbolic links to files, below runfiles."""
    real = wheel(tmp_path / "output" / "external" / f"hub_{name}" / "site-packages", name)
    tree = tmp_path / "bin" / "launch.runfiles" / f"hub_{name}" / "site-packages"
    for file in sorted(real.rglob("*")):
        if file.is_file():
            link = tree / file.relative_to(real)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)
    return tree


def plan_of(*folders: Path) -> runtime.RuntimePlan:
    return plan_runtime([str(folder) for folder in folders], PYTHON, sys.base_prefix)


def host_python(tmp_path: Path) -> Path:
    """An interpreter that is not Bazel's, in its installation."""
    python = tmp_path / "host" / "bin" / "python3.12"
    python.parent.mkdir(parents=True)
    python.touch(mode=0o755)
    return python


def test_what_is_bazels(tmp_path: Path) -> None:
    (tmp_path / "base" / "external" / "hub").mkdir(parents=True)
    (tmp_path / "plain").mkdir()
    assert not in_bazel_tree(tmp_path / "base" / "external" / "hub")
    (tmp_path / "base" / "DO_NOT_BUILD_HERE").touch()
    assert in_bazel_tree(tmp_path / "base" / "external" / "hub")
    assert in_bazel_tree(tmp_path / "x.runfiles" / "hub")
    assert not in_bazel_tree(tmp_path / "plain")
    (tmp_path / "link").symlink_to(tmp_path / "base" / "external")
    assert in_bazel_tree(tmp_path / "link")
    (tmp_path / "other" / "execroot").mkdir(parents=True)
    (tmp_path / "other" / "external" / "hub").mkdir(parents=True)
    assert in_bazel_tree(tmp_path / "other" / "external" / "hub")


@pytest.mark.parametrize("lay", [linked_folder, linked_files])
def test_a_copy_outlives_bazels_trees(tmp_path: Path, lay: object) -> None:
    folder = lay(tmp_path, "alpha")  # type: ignore[operator]
    plan = plan_of(folder)
    assert plan.copied
    made = lay_down(plan, tmp_path / "runtimes", on_progress=silent)
    shutil.rmtree(tmp_path / "bin")
    shutil.rmtree(tmp_path / "output")
    assert [path for path in (tmp_path / "runtimes").rglob("*") if path.is_symlink()] == []
    code = "import alpha; print(alpha.VALUE, alpha.__file__)"
    (only,) = made.python_path
    result = subprocess.run(
        [str(made.python), "-c", code],
        env={"PYTHONPATH": str(only), "PATH": os.defpath},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == ["1", str(only / "alpha" / "__init__.py")]


def test_files_are_linked_not_copied(tmp_path: Path) -> None:
    folder = linked_files(tmp_path, "alpha")
    made = lay_down(plan_of(folder), tmp_path / "runtimes", on_progress=silent)
    assert (made.python_path[0] / "alpha" / "__init__.py").stat().st_nlink == 2


def test_files_are_copied_where_linking_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    source = tmp_path / "source"
    wheel(source, "alpha")
    program = source / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    graft(source, tmp_path / "target")
    assert (tmp_path / "target" / "alpha" / "__init__.py").read_text() == "VALUE = 1\n"
    assert (tmp_path / "target" / "tool").stat().st_mode & stat.S_IXUSR
    assert (tmp_path / "target" / "tool").stat().st_mtime_ns == program.stat().st_mtime_ns


def test_the_first_folder_wins_and_namespaces_merge(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder, value in ((first, "1"), (second, "2")):
        (folder / "google").mkdir(parents=True)
        (folder / "google" / "shared.py").write_text(value)
        (folder / "google" / f"only{value}.py").write_text(value)
        graft(folder, tmp_path / "target")
    assert (tmp_path / "target" / "google" / "shared.py").read_text() == "1"
    assert (tmp_path / "target" / "google" / "only2.py").read_text() == "2"


def test_folders_without_wheels_are_left_out(tmp_path: Path) -> None:
    folder = linked_folder(tmp_path, "alpha")
    runfiles = folder.parents[1]
    (runfiles / "_main" / "tools").mkdir(parents=True)
    in_place = wheel(tmp_path / "host" / "site-packages", "beta")
    plan = plan_of(runfiles, runfiles / "_main", runfiles / "missing", folder, in_place)
    assert plan.wheel_folders == (folder,)


def test_without_bazel_folders_are_used_in_place(tmp_path: Path) -> None:
    in_place = wheel(tmp_path / "venv" / "site-packages", "beta")
    python = host_python(tmp_path)
    plan = plan_runtime([str(in_place)], str(python), str(python.parents[1]))
    assert not plan.copied
    made = lay_down(plan, tmp_path / "runtimes", on_progress=silent)
    assert made.python_path == (in_place,)
    assert made.python == python


def test_an_interpreter_of_bazel_is_copied_with_its_prefix(tmp_path: Path) -> None:
    prefix = tmp_path / "output" / "external" / "python"
    (tmp_path / "output" / "execroot").mkdir(parents=True)
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib").mkdir()
    (prefix / "lib" / "os.py").write_text("")
    (prefix / "bin" / "python3.12").write_text("#!/bin/sh\necho copied\n")
    (prefix / "bin" / "python3.12").chmod(0o755)
    link = tmp_path / "bin" / "launch.runfiles" / "python" / "bin" / "python3"
    link.parent.mkdir(parents=True)
    link.symlink_to(prefix / "bin" / "python3.12")
    plan = plan_runtime([str(linked_folder(tmp_path, "alpha"))], str(link), str(prefix))
    assert plan.python_prefix == prefix
    made = lay_down(plan, tmp_path / "runtimes", on_progress=silent)
    shutil.rmtree(tmp_path / "output")
    assert subprocess.run([made.python], capture_output=True, text=True, check=True).stdout == "copied\n"
    assert (made.python.parents[1] / "lib" / "os.py").exists()


def test_a_link_of_bazel_to_the_hosts_interpreter_is_followed(tmp_path: Path) -> None:
    python = host_python(tmp_path)
    link = tmp_path / "launch.runfiles" / "_main" / "venv" / "bin" / "python3"
    link.parent.mkdir(parents=True)
    link.symlink_to(python)
    plan = plan_runtime([str(linked_folder(tmp_path, "alpha"))], str(link), str(python.parents[1]))
    assert plan.python == python
    assert plan.python_prefix is None


def test_a_virtual_environment_counts_only_where_its_wheels_do(tmp_path: Path) -> None:
    host = host_python(tmp_path)
    python = tmp_path / "venv" / "bin" / "python3"
    python.parent.mkdir(parents=True)
    python.symlink_to(host)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    in_place = wheel(tmp_path / "venv" / "lib" / "site-packages", "beta")
    prefix = str(host.parents[1])
    assert plan_runtime([str(in_place)], str(python), prefix).python == python
    of_bazel = linked_folder(tmp_path, "alpha")
    assert plan_runtime([str(of_bazel), str(in_place)], str(python), prefix).python == host


def test_the_digest_names_versions_not_places(tmp_path: Path) -> None:
    first = plan_of(linked_folder(tmp_path / "one", "alpha")).digest
    assert plan_of(linked_files(tmp_path / "two", "alpha")).digest == first
    newer = tmp_path / "three" / "x.runfiles" / "site-packages"
    wheel(newer, "alpha", "1.1")
    assert plan_of(newer).digest != first


def test_the_launcher_is_copied_without_its_tests(tmp_path: Path) -> None:
    made = lay_down(plan_of(linked_folder(tmp_path, "alpha")), tmp_path / "runtimes", on_progress=silent)
    names = {path.relative_to(made.launcher).as_posix() for path in made.launcher.rglob("*.py")}
    assert "tools/launcher/iris/local/daemon.py" in names
    assert "tools/launcher/documents/files.py" in names
    assert not any(name.endswith("_test.py") for name in names)
    assert made.launcher not in made.python_path


def test_what_rules_python_lays_beside_the_launcher_is_no_part_of_it(tmp_path: Path) -> None:
    for name in (
        "daemon.py",
        "_daemon_stage2_bootstrap.py",
        "_daemon.venv/lib/python3.12/site-packages/_bazel_site_init.py",
    ):
        file = tmp_path / "tools" / "launcher" / "iris" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert [name for name in _launcher_files(tmp_path) if name.startswith("tools/launcher/iris")] == [
        "tools/launcher/iris/daemon.py"
    ]


def test_bytecode_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    cache = tmp_path / "from" / "__pycache__"
    cache.mkdir(parents=True)
    for name in ("a.cpython-312.pyc", "a.cpython-312.pyc.140234"):
        (cache / name).touch()
    graft(tmp_path / "from", tmp_path / "to")
    assert [path.name for path in (tmp_path / "to" / "__pycache__").iterdir()] == ["a.cpython-312.pyc"]


def test_a_runtime_half_made_is_made_again(tmp_path: Path) -> None:
    plan = plan_of(linked_folder(tmp_path, "alpha"))
    runtimes = tmp_path / "runtimes"
    for leftover in (f"{plan.digest[:16]}.part", plan.digest[:16]):
        (runtimes / leftover / "wheels" / "lib" / "site-packages" / "alpha").mkdir(parents=True)
        (runtimes / leftover / "wheels" / "lib" / "site-packages" / "alpha" / "torn.py").touch()
    told: list[str] = []
    made = lay_down(plan, runtimes, on_progress=told.append)
    assert (made.python_path[0] / "alpha" / "__init__.py").exists()
    assert not (made.python_path[0] / "alpha" / "torn.py").exists()
    assert told == ["Keeping a copy of this build for the embedded Iris (once for each build) ..."]
    assert lay_down(plan, runtimes, on_progress=told.append) == made
    assert len(told) == 1


def test_other_runtimes_are_dropped(tmp_path: Path) -> None:
    plan = plan_of(linked_folder(tmp_path, "alpha"))
    made = lay_down(plan, tmp_path / "runtimes", on_progress=silent)
    other = lay_down(dataclasses.replace(plan, digest="f" * 64), tmp_path / "runtimes", on_progress=silent)
    drop_other_runtimes(tmp_path / "runtimes", plan.digest)
    assert made.launcher.exists()
    assert not other.launcher.exists()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
