"""The program as a shell sees it: closed output, signals, missing streams."""

import signal
import subprocess
import sys
import time

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


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
