import os
import subprocess
import sys
import zipfile

import pytest

from tools.launcher.iris.task_bootstrap import CODE_ARCHIVE, bootstrap_argv


def _run(argv, **environment):
    # Iris itself replaces the first word by its own interpreter.
    return subprocess.run(
        [sys.executable, *argv[1:]],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def _archive(tmp_path):
    with zipfile.ZipFile(tmp_path / CODE_ARCHIVE, "w") as archive:
        archive.writestr("shipped/__init__.py", "")
        archive.writestr(
            "shipped/main.py",
            "import os, subprocess, sys\n"
            "if __name__ == '__main__':\n"
            "    print(sys.argv[1:], __file__)\n"
            "    code = 'import shipped; print(shipped.__file__)'\n"
            "    print(subprocess.check_output([sys.executable, '-c', code], text=True))\n",
        )
    return str(tmp_path)


def test_it_runs_a_module_of_the_archive_and_its_subprocesses_find_it_too(tmp_path):
    done = _run(bootstrap_argv("shipped.main", ["--store=file:///tmp/x"]), IRIS_WORKDIR=_archive(tmp_path))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split("\n")[:2]
    assert first.startswith("['--store=file:///tmp/x'] ")
    assert CODE_ARCHIVE in first
    assert CODE_ARCHIVE in second


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({}, "slipway: IRIS_WORKDIR is not set"),
        ({"IRIS_WORKDIR": "/nowhere"}, "slipway: the task has no slipway.zip"),
    ],
)
def test_outside_a_task_it_says_what_is_missing(environment, sentence):
    done = _run(bootstrap_argv("shipped.main", []), **environment)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_arguments_iris_would_rewrite_are_refused():
    with pytest.raises(ValueError, match="Pass it as --flag=file:///tmp/x"):
        bootstrap_argv("shipped.main", ["/tmp/x"])


def test_leaving_ends_at_once_and_loses_nothing_that_was_printed():
    code = (
        "import atexit, sys\n"
        "from tools.launcher.iris.task_bootstrap import leave\n"
        "atexit.register(print, 'taken down')\n"
        "sys.stdout.write('out'), sys.stderr.write('err')\n"
        "leave(3)\n"
    )
    done = _run(["python", "-c", code], PYTHONPATH=os.pathsep.join(sys.path))
    assert (done.returncode, done.stdout, done.stderr) == (3, "out", "err")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
