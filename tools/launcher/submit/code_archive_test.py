import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools.launcher.store.deterministic_zip import write_zip
from tools.launcher.submit.code_archive import MAX_BYTES, CodeIncomplete, archive_of, make_code_archive

SOURCES = {
    "coordinator/__init__.py": "",
    "coordinator/main.py": "print('main')\n",
    "coordinator/main_test.py": "raise SystemExit('a test was shipped')\n",
    "coordinator/conftest.py": "",
    "coordinator/fakes_testlib.py": "",
    "coordinator/notes.md": "",
    "coordinator/_main_stage2_bootstrap.py": "raise SystemExit('a start script was shipped')\n",
    "coordinator/_main.venv/lib/python3.12/site-packages/_bazel_site_init.py": "",
    "coordinator/gateway_for_test.py": "",
    "graph/tool.py": "VALUE = 7\n",
    "cli/launch_command.py": "raise SystemExit('a room that no job runs was shipped')\n",
    "lint_program.py": "raise SystemExit('a file outside the rooms was shipped')\n",
    "not-a-package/x.py": "",
    "coordinator/__pycache__/main.cpython-312.py": "",
}
MEMBERS = [
    "tools/__init__.py",
    "tools/launcher/__init__.py",
    "tools/launcher/coordinator/__init__.py",
    "tools/launcher/coordinator/main.py",
    "tools/launcher/graph/__init__.py",
    "tools/launcher/graph/tool.py",
]


@pytest.fixture
def checkout(tmp_path):
    for name, text in SOURCES.items():
        path = tmp_path / "checkout" / "tools" / "launcher" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "checkout" / "tools" / "launcher"


def names_of(archive, tmp_path):
    path = tmp_path / "made.zip"
    path.write_bytes(archive.data)
    return zipfile.ZipFile(path).namelist()


def test_sources_are_in_it_and_tests_are_not(checkout, tmp_path):
    assert names_of(archive_of(checkout, []), tmp_path) == MEMBERS


def test_links_and_files_and_the_archive_itself_give_the_same_bytes(checkout, tmp_path):
    made = archive_of(checkout, [])
    linked = tmp_path / "runfiles" / "tools" / "launcher"
    for path in sorted(checkout.rglob("*"), reverse=True):
        if path.is_file():
            link = linked / path.relative_to(checkout)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    assert archive_of(linked, []) == made
    (tmp_path / "slipway.zip").write_bytes(made.data)
    inside = zipfile.Path(tmp_path / "slipway.zip", "tools/launcher/")
    assert archive_of(inside, []) == made


def test_a_program_without_the_coordinator_says_so(checkout):
    with pytest.raises(CodeIncomplete) as raised:
        archive_of(checkout, ["tools/launcher/coordinator/main.py", "tools/launcher/rehearsal/__main__.py"])
    assert str(raised.value) == (
        "this program does not carry tools/launcher/rehearsal/__main__.py, which the job would run. "
        "Add their targets to the program's deps, or run it from a complete checkout"
    )


def test_a_job_finds_in_it_all_that_its_programs_import(tmp_path):
    """Started as a job starts it: from the archive alone, with the packages and without the checkout."""
    archive = make_code_archive()
    assert not any(name.endswith("_test.py") for name in names_of(archive, tmp_path))
    path = tmp_path / "slipway.zip"
    path.write_bytes(archive.data)
    others = [entry for entry in sys.path if not (Path(entry or ".") / "tools" / "launcher").exists()]
    for module in ("tools.launcher.coordinator.main", "tools.launcher.rehearsal"):
        done = subprocess.run(
            [sys.executable, "-P", "-m", module, "--help"],
            env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join([str(path), *others])},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "usage: " in done.stdout


def test_an_archive_that_no_cluster_hands_on_is_refused(checkout):
    (checkout / "graph" / "large.py").write_bytes(b"#" * MAX_BYTES)
    with pytest.raises(CodeIncomplete) as raised:
        archive_of(checkout, [])
    assert re.fullmatch(
        r"the launcher's code for a job has \d{7} bytes, and a cluster hands on at most 1048576\. Run the "
        r"launcher "
        r"from a checkout without other large files below tools/launcher",
        str(raised.value),
    )


def test_zip_bytes_do_not_depend_on_the_order_of_members():
    assert write_zip({"a": b"1", "b": b"2"}) == write_zip({"b": b"2", "a": b"1"})


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
