"""The program as a shell sees it: closed output, signals, missing streams."""

import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from tools.launcher.cli import exit_codes

BOUNDARY = "from tools.launcher.cli.process_boundary import run_as_process\n"


def started(code, **streams):
    body = f"import sys, time\ndef command():\n{code}\n    return 0\nsys.exit(run_as_process(command))"
    return subprocess.Popen(
        [sys.executable, "-c", BOUNDARY + body],
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
        **streams,
    )


@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_reader_that_stops_reading_is_no_error(lines):
    process = started(f"    time.sleep(0.2)\n    print('x\\n' * {lines})", stdout=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == exit_codes.OUTPUT_CLOSED


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_full_disk_is_a_sentence(lines):
    with Path("/dev/full").open("w") as full:
        process = started(f"    print('x\\n' * {lines})", stdout=full)
    assert process.communicate()[1] == (
        "error: what this prints cannot be written: No space left on device. Free some space, or print elsewhere\n"
    )
    assert process.returncode == exit_codes.UNKNOWN


def test_without_streams_nothing_is_written_into_other_files(tmp_path):
    kept = tmp_path / "kept"
    script = tmp_path / "script.py"
    script.write_text(
        BOUNDARY + "import sys\n"
        "def command():\n"
        f"    with open({str(kept)!r}, 'w'):\n"
        "        print(1)\n"
        "        sys.stderr.write('2')\n"
        "    return 7\n"
        "sys.exit(run_as_process(command))"
    )
    close = "import os, sys; os.closerange(0, 3); os.execv(sys.executable, [sys.executable, sys.argv[1]])"
    done = subprocess.run(
        [sys.executable, "-c", close, str(script)], env={"PYTHONPATH": ":".join(sys.path)}, check=False
    )
    assert done.returncode == 7
    assert kept.read_text() == ""


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, exit_codes.TERMINATED), (signal.SIGINT, exit_codes.INTERRUPTED)],
)
def test_a_signal_ends_it_in_order(number, status):
    process = started(
        "    try:\n        print('up', flush=True)\n        time.sleep(60)\n"
        "    finally:\n        print('put back', flush=True)",
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == "up\n"
    began = time.monotonic()
    process.send_signal(number)
    assert process.communicate() == ("put back\n", "")
    assert process.returncode == status and time.monotonic() - began < 20


def test_the_user_s_locale_need_not_know_a_letter():
    code = BOUNDARY + "import sys\nsys.exit(run_as_process(lambda: print('/\\u65e5') or 0))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path), "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"/\\u65e5\n", b"")


def python(code):
    return subprocess.run(
        [sys.executable, "-c", BOUNDARY + code],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )


PLUGIN = """
import sys
def command():
    if {looked_up}:
        sys.modules.pop("pydantic.plugin._loader")
    import pydantic
    class Model(pydantic.BaseModel):
        field: int
    print(Model(field=1), "importlib.metadata" in sys.modules)
    return 0
sys.exit(run_as_process(command))
"""


@pytest.mark.parametrize("looked_up", [False, True])
def test_no_plugin_changes_a_model_and_none_is_looked_for(looked_up):
    done = python(PLUGIN.format(looked_up=looked_up))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"field=1 {looked_up}\n", "")


def test_modules_of_python_itself_are_looked_for_in_its_library_first():
    code = "import os, sys\nsys.exit(run_as_process(lambda: print(*sys.path, sep='\\n') or 0))"
    path = python(code).stdout.splitlines()
    library = sysconfig.get_path("stdlib")
    assert path[:2] == [library, f"{library}/lib-dynload"]
    assert path[2:] == [entry for entry in path if entry not in path[:2]] and len(path) > 2


def test_a_program_can_end_at_once_with_all_it_printed():
    code = (
        "from tools.launcher.cli.process_boundary import leave\n"
        "import atexit, sys\natexit.register(print, 'taken apart')\n"
        "leave(run_as_process(lambda: print('done') or (sys.stderr.write('said') and 3)))"
    )
    done = python(code)
    assert (done.returncode, done.stdout, done.stderr) == (3, "done\n", "said")


INTERRUPTED_AT_THE_END = """
import atexit, os, signal
atexit.register(os.kill, os.getpid(), signal.SIGINT)
end = os._exit
def interrupted(status):
    os.kill(os.getpid(), signal.SIGINT)
    end(status)
os._exit = interrupted
"""


@pytest.mark.parametrize("program", ["launcher", "lint", "pin", "plan", "report"])
def test_ctrl_c_just_as_a_program_ends_changes_nothing(tmp_path, program):
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED_AT_THE_END)
    done = subprocess.run(
        [sys.executable, "-m", f"tools.launcher.cli.{program}_main", "--help"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join([str(tmp_path), *sys.path])},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: " in done.stdout


def test_what_an_interrupted_program_has_printed_is_not_lost():
    code = (
        "from tools.launcher.cli.process_boundary import leave\n"
        "import os, signal, sys\n"
        "def command():\n"
        "    print('so far')\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "leave(run_as_process(command))"
    )
    done = python(code)
    assert (done.returncode, done.stdout, done.stderr) == (exit_codes.INTERRUPTED, "so far\n", "")


def test_an_end_by_exception_is_a_status_and_a_reader_may_be_gone():
    code = (
        "import sys\ndef command():\n    print('x' * 9)\n    sys.exit(5)\nsys.exit(run_as_process(command))"
    )
    assert python(code).returncode == 5
    process = started("    time.sleep(0.2)\n    print('help')\n    sys.exit(0)", stdout=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == exit_codes.OUTPUT_CLOSED


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
