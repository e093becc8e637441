"""What is packed runs, is the same each time, and is all that is needed."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import websockets.speedups

NATIVE = Path(websockets.speedups.__file__)
PACKER = Path(__file__).with_name("pack_program.py")
MAIN = """
import sys
from wheel.value import VALUE
from fast import apply_mask

def main():
    print(VALUE, apply_mask(b"abcd", b"    ").decode(), *sys.argv[1:])
    return 7
"""


@pytest.fixture
def files(tmp_path):
    """A program of this repository, a pure wheel, and a wheel with native code."""
    texts = {
        "tools/start.py": MAIN,
        "tools/__init__.py": "",
        "tools/notes.txt": "no module",
        "wheels/pure/site-packages/wheel/__init__.py": "",
        "wheels/pure/site-packages/wheel/value.py": "VALUE = 'value'\n",
        "wheels/pure/site-packages/wheel-1.dist-info/METADATA": "Name: wheel\n",
        "wheels/native/site-packages/fast/__init__.py": "from fast.speedups import apply_mask\n",
        "wheels/python/lib/python3/left_out.py": "raise ValueError\n",
    }
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    shutil.copy(NATIVE, tmp_path / "wheels/native/site-packages/fast")
    return tmp_path


def packed(files, place="out", hash_seed="0", module="tools.start", wheel="wheels/pure/site-packages"):
    """Pack the program; return the finished process. Short paths are as Bazel has them."""
    (files / place).mkdir()
    flags = [
        f"--archive={place}/program.zip",
        f"--native={place}/program.native",
        f"--module={module}",
        "--import=pure/site-packages",
        "--import=native/site-packages",
        *(
            f"--file={path}={path.replace('wheels/', '../', 1)}"
            for path in sorted(
                str(file.relative_to(files))
                for file in files.rglob("*")
                if file.is_file() and file.parts[len(files.parts)] in ("tools", "wheels")
            )
            if not path.startswith("wheels/pure/site-packages/wheel/")
        ),
        # One of several files, or one folder.
        f"--file={wheel}={wheel.replace('wheels/', '../', 1)}",
    ]
    (files / f"{place}/flags").write_text("\n".join(flags))
    return subprocess.run(
        [sys.executable, PACKER, f"@{place}/flags"],
        cwd=files,
        env={"PATH": os.defpath, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )


def written(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "flags"
    }


def test_what_is_packed_runs_from_any_folder(files, tmp_path):
    assert packed(files).returncode == 0
    # Nothing of the sources is needed any more.
    shutil.rmtree(files / "wheels")
    shutil.rmtree(files / "tools")
    ran = subprocess.run(
        [sys.executable, "-S", "-s", "-B", "out/program.zip", "said"],
        cwd=tmp_path,
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("value ABCD said\n", "", 7)


def test_the_same_files_give_the_same_bytes(files):
    for place, seed in (("a", "1"), ("b", "2")):
        assert packed(files, place, seed).returncode == 0
    first, second = written(files / "a"), written(files / "b")
    assert first == second and first


def test_modules_alone_are_packed_native_packages_beside_the_rest(files):
    assert packed(files).returncode == 0
    with zipfile.ZipFile(files / "out/program.zip") as archive:
        names = archive.namelist()
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
    sources = ["__main__.py", "tools/__init__.py", "tools/start.py", "wheel/__init__.py", "wheel/value.py"]
    assert names == [name for source in sources for name in (source, source + "c")]
    tag = sys.implementation.cache_tag
    assert list(written(files / "out/program.native")) == [
        "fast/__init__.py",
        f"fast/__pycache__/__init__.{tag}.pyc",
        f"fast/{NATIVE.name}",
    ]


def test_a_module_that_is_not_there_is_named(files):
    done = packed(files, module="tools.begin")
    assert done.returncode == 1
    assert done.stderr == "error: tools/begin.py is not among the files of the program. Correct `module`\n"
    assert written(files / "out") == {}


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
