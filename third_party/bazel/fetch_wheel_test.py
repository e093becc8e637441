"""fetch_wheel.py on wheels made here, through pip, without a network."""

import hashlib
import importlib.util
import json
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest

SCRIPT = Path("third_party/bazel/overlay/rules_python/python/air_gapped/fetch_wheel.py")

WHEEL = "demo_pkg-1.0-py3-none-any.whl"

METADATA = """\
Metadata-Version: 2.1
Name: Demo.Pkg
Version: 1.0
Provides-Extra: fast
Provides-Extra: slow
Requires-Dist: Always-There>=1
Requires-Dist: on-windows; sys_platform == "win32"
Requires-Dist: fast.lib; extra == "fast"
Requires-Dist: slow-lib; extra == "slow"
Requires-Dist: demo-pkg[fast]; extra == "slow"
"""

MEMBERS = {
    "demo/__init__.py": "VALUE = 1\n",
    "demo/broken.py": "print 'Python 2'\n",
    "demo/BUILD.bazel": "exports_files([])\n",
    "demo_pkg-1.0.data/purelib/pure.py": "",
    "demo_pkg-1.0.data/scripts/demo-tool": "#!/bin/sh\n",
    "demo_pkg-1.0.data/headers/demo.h": "",
    "demo_pkg-1.0.dist-info/METADATA": METADATA,
    "demo_pkg-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}


def python_with_pip() -> str | None:
    """An interpreter that has pip: this one, or the one behind its environment."""
    for python in (sys.executable, getattr(sys, "_base_executable", sys.executable)):
        if (
            subprocess.run([python, "-c", "import pip"], env={}, capture_output=True, check=False).returncode
            == 0
        ):
            return str(python)
    return None


PYTHON = python_with_pip()
needs_pip = pytest.mark.skipif(PYTHON is None, reason="no pip beside the test's interpreter")


def make_wheel(folder: Path, members: dict[str, str], mode: int = 0o644) -> str:
    """Writes demo_pkg-1.0 and returns its locked requirement."""
    wheel = folder / WHEEL
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(info, text)
        record = "".join(f"{name},,\n" for name in members)
        archive.writestr("demo_pkg-1.0.dist-info/RECORD", record)
    return f"demo-pkg==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def fetch(folder: Path, requirement: str, *extras: str) -> subprocess.CompletedProcess[str]:
    """Runs the script in `folder`, on the wheels in `folder`/index."""
    assert PYTHON is not None
    (folder / "requirement.txt").write_text(requirement)
    options = ["--no-index", f"--find-links={folder / 'index'}"]
    return subprocess.run(
        [PYTHON, "-B", SCRIPT.resolve(), "requirement.txt", *options, "--", *extras],
        env={"PATH": os.defpath, "PIP_CONFIG_FILE": os.devnull},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fetch_wheel", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fetch_wheel = load_script()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "index").mkdir()
    return tmp_path


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel was fetched with one extra."""
    folder = tmp_path_factory.mktemp("fetched")
    (folder / "index").mkdir()
    result = fetch(folder, make_wheel(folder / "index", MEMBERS), "fast")
    assert result.returncode == 0, result.stderr
    return folder


@needs_pip
def test_files_go_where_pip_puts_them(fetched: Path) -> None:
    site = fetched / "site-packages"
    files = {
        path.relative_to(site).as_posix()
        for path in site.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert files == {
        "demo/__init__.py",
        "demo/broken.py",
        "pure.py",
        "bin/demo-tool",
        "demo_pkg-1.0.dist-info/METADATA",
        "demo_pkg-1.0.dist-info/WHEEL",
        "demo_pkg-1.0.dist-info/RECORD",
    }
    assert os.access(site / "bin" / "demo-tool", os.X_OK)
    assert not (fetched / "wheels").exists()


@needs_pip
def test_bytecode_is_there_and_has_no_path_of_this_machine(fetched: Path) -> None:
    (code,) = (fetched / "site-packages" / "demo" / "__pycache__").glob("__init__.*.pyc")
    content = code.read_bytes()
    flags = int.from_bytes(content[4:8], "little")
    assert flags == 0b01, "unchecked hash: Python never compares with the source"
    assert str(fetched).encode() not in content


@needs_pip
def test_nothing_in_the_folder_is_writable(fetched: Path) -> None:
    site = fetched / "site-packages"
    assert [path for path in (site, *site.rglob("*")) if path.stat().st_mode & 0o222] == []


@needs_pip
def test_dependencies_follow_markers_and_extras(fetched: Path) -> None:
    # not on-windows, not slow-lib, not the package itself
    assert json.loads((fetched / "deps.json").read_text()) == ["always_there", "fast_lib"]


@pytest.mark.parametrize(
    "member", ["../evil.py", "demo/../../evil.py", "/evil.py", "demo/./x.py", "demo\\evil.py"]
)
def test_a_member_that_leaves_the_wheel_is_refused(tmp_path: Path, member: str) -> None:
    make_wheel(tmp_path, {**MEMBERS, member: "x"})
    with pytest.raises(fetch_wheel.WheelError) as refused:
        fetch_wheel.unpack(tmp_path / WHEEL, tmp_path / "in" / "site-packages")
    assert str(refused.value) == (
        f"{WHEEL}: member '{member}' leaves the wheel; refuse this wheel and report it to its index"
    )
    assert not list(tmp_path.rglob("evil.py"))


@pytest.mark.parametrize(
    ("member", "path"),
    [
        ("a/b.py", "a/b.py"),
        ("x-1.data/platlib/a/b.so", "a/b.so"),
        ("x-1.data/scripts/tool", "bin/tool"),
        ("x-1.data/headers/x.h", None),
        ("a/BUILD", None),
    ],
)
def test_where_a_member_goes(member: str, path: str | None) -> None:
    assert fetch_wheel.installed_path(member) == (PurePosixPath(path) if path else None)


def test_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    make_wheel(tmp_path, MEMBERS)
    with zipfile.ZipFile(tmp_path / WHEEL, "a") as archive:
        info = zipfile.ZipInfo("demo/link.py")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(fetch_wheel.WheelError) as refused:
        fetch_wheel.unpack(tmp_path / WHEEL, tmp_path / "site-packages")
    assert str(refused.value) == f"{WHEEL}: member 'demo/link.py' is a symbolic link; wheels hold none"


@needs_pip
def test_another_hash_is_refused(folder: Path) -> None:
    make_wheel(folder / "index", MEMBERS)
    result = fetch(folder, f"demo-pkg==1.0 --hash=sha256:{'0' * 64}\n")
    assert result.returncode == 1
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in result.stderr
    assert result.stderr.endswith(
        "error: pip cannot download demo-pkg==1.0, see above; check the network and pip's settings\n"
    )


@needs_pip
def test_wheels_that_were_carried_over_are_found_by_the_users_own_configuration(folder: Path) -> None:
    """As docs/maintainer.md has it: a folder of wheels, named in pip.conf, and no index."""
    requirement = make_wheel(folder / "index", MEMBERS)
    configuration = folder / ".config/pip/pip.conf"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(f"[global]\nno-index = true\nfind-links = {folder / 'index'}\n")
    (folder / "requirement.txt").write_text(requirement)
    assert PYTHON is not None
    command = [PYTHON, "-B", str(SCRIPT.resolve()), "requirement.txt", "--"]
    # no proxy and no index: nothing but the folder can have it
    subprocess.run(command, env={"PATH": os.defpath, "HOME": str(folder)}, cwd=folder, check=True)
    assert (folder / "site-packages/demo/__init__.py").read_text() == MEMBERS["demo/__init__.py"]


@needs_pip
def test_a_marker_that_excludes_this_machine(folder: Path) -> None:
    requirement = make_wheel(folder / "index", MEMBERS).replace("==1.0", '==1.0 ; sys_platform == "win32"')
    result = fetch(folder, requirement)
    assert result.returncode == 1
    assert "expected one wheel, pip gave none; does the marker exclude this machine?" in result.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
