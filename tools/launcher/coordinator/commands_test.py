import sys
import time

import pytest

from tools.launcher.coordinator.commands import MAX_STDOUT_BYTES, TAIL_LINES, CommandProblem, run_command


def _python(code, tick=lambda: None):
    return run_command((sys.executable, "-c", code), tick=tick)


def test_streams_are_kept_apart_and_the_tail_is_kept(capfd):
    code = "import sys\nprint('out')\nfor n in range(100): print('line', n, file=sys.stderr)\nsys.exit(3)"
    done = _python(code)
    assert (done.exit_code, done.stdout) == (3, "out\n")
    assert done.stderr_tail.splitlines() == [f"line {n}" for n in range(100 - TAIL_LINES, 100)]
    assert "line 0\n" in capfd.readouterr().err


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(CommandProblem) as caught:
        run_command(("marinskyrl-absent", "iris"), tick=lambda: None)
    assert str(caught.value) == (
        "marinskyrl-absent cannot be started: No such file or directory. Install it where jobs run"
    )


def test_ticks_come_while_it_runs():
    ticks = []
    _python("import time; time.sleep(1.2)", lambda: ticks.append(time.monotonic()))
    assert len(ticks) >= 3


def test_what_a_tick_raises_ends_the_program(tmp_path):
    marker = tmp_path / "ended"
    code = (
        "import signal, sys, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (open({str(marker)!r}, 'w').close(), sys.exit(0)))\n"
        f"open({str(tmp_path / 'ready')!r}, 'w').close()\n"
        "time.sleep(60)\n"
    )

    def stop():
        if (tmp_path / "ready").exists():
            raise KeyError("stop")

    with pytest.raises(KeyError):
        _python(code, stop)
    assert marker.exists()


def test_output_without_end_is_refused_and_does_not_block():
    with pytest.raises(CommandProblem, match=f"wrote more than {MAX_STDOUT_BYTES} bytes on standard output"):
        _python(f"import sys; sys.stdout.write('x' * {MAX_STDOUT_BYTES * 3})")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
