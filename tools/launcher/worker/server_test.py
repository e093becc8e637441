"""A worker process and what its actions do to it: nothing."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tools.launcher.worker.server import MOST_OUTPUT
from tools.launcher.worker.worker_process_for_test import Alive, WorkerProcess

COMMAND = ("tools/launcher/worker/code_action_for_test.py",)
HANG = "import signal\nwhile True: signal.pause()\n"


def linux_only(reason):
    return pytest.mark.skipif(sys.platform != "linux", reason=f"not Linux: {reason}")


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    with WorkerProcess(COMMAND, tmp_path_factory.mktemp("worker") / "log") as process:
        yield process
        process.close_input()
        assert process.ended() == 0


@pytest.fixture
def own_worker(tmp_path):
    """One for tests that end it."""
    with WorkerProcess(COMMAND, tmp_path / "log") as process:
        yield process


@pytest.fixture
def alive(tmp_path):
    return Alive(tmp_path)


def test_status_and_all_that_was_printed_are_the_answer(worker):
    code = "import sys\nprint('out')\nsys.stdout.flush()\nprint('err', file=sys.stderr)\nprint('end')\nstatus = 3"
    assert worker.call(code) == {"requestId": 1, "exitCode": 3, "output": "out\nerr\nend\n"}
    assert "prepared 1" in worker.log.read_text()  # and not in the protocol


@pytest.mark.parametrize(
    ("code", "status", "output"),
    [
        ("raise SystemExit", 0, ""),
        ("raise SystemExit(7)", 7, ""),
        ("print('usage'); raise SystemExit(2)", 2, "usage\n"),
        ("raise SystemExit('why')", 1, "why\n"),
        ("raise SystemExit(2**70 + 5)", 5, ""),
        ("status = -1", 255, ""),
        ("import os; os._exit(9)", 9, ""),
        ("import os; os.write(1, b'\\xff\\x00z'); os._exit(0)", 0, "\ufffd\x00z"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137, "the action was ended by SIGKILL\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143, "the action was ended by SIGTERM\n"),
        ("import os; os.abort()", 134, "the action was ended by SIGABRT\n"),
    ],
)
def test_every_end_of_an_action_is_an_answer(worker, code, status, output):
    assert worker.call(code) == {"requestId": 1, "exitCode": status, "output": output}


@linux_only("other systems have a name for each of their signals")
def test_a_signal_without_a_name_is_an_end_too(worker):
    answer = worker.call("import os, signal; os.kill(os.getpid(), signal.SIGRTMIN + 3)")
    assert answer["output"] == f"the action was ended by signal {signal.SIGRTMIN + 3}\n"


@pytest.mark.parametrize(
    "code",
    [
        "1 // 0",
        "import sys; sys.stderr.close(); sys.stdout.close(); 1 // 0",
        "import sys; sys.stdout = sys.stderr = None; 1 // 0",
        "raise KeyboardInterrupt",
    ],
)
def test_an_error_ends_the_action_alone(worker, code):
    assert worker.call(code)["exitCode"] == 1
    assert worker.call("print('next')")["output"] == "next\n"


PROBE = """
import builtins, gc, json, os, resource, signal, sys
mask = os.umask(0)
print(json.dumps([
    os.getcwd(), sorted(os.environ.items()), mask, resource.getrlimit(resource.RLIMIT_NOFILE), sys.path,
    sorted(sys.modules), sorted(vars(builtins)), gc.isenabled(), gc.get_threshold(), sys.getrecursionlimit(),
    sorted(map(str, (signal.getsignal(signal.Signals(n)) for n in (2, 13, 15, int(signal.SIGCHLD))))),
    signal.set_wakeup_fd(-1), os.getpriority(0, 0), sys.stdin.read(), os.listdir('/dev/fd')[:-1],
]))
"""
SPOIL = """
import builtins, gc, os, resource, signal, sys
os.chdir('/'); os.environ['LEAK'] = '1'; os.umask(0o777); resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
sys.path.insert(0, 'leak'); sys.modules['leak'] = sys; builtins.leak = 1; gc.disable(); gc.set_threshold(1)
sys.setrecursionlimit(100); signal.signal(15, signal.SIG_IGN); signal.signal(2, signal.SIG_IGN)
os.nice(5); del sys.modules['json']; builtins.len = None; os.read = None
"""


def test_nothing_of_one_action_reaches_the_next(worker):
    before = worker.call(PROBE)["output"]
    assert worker.call(SPOIL)["exitCode"] == 0
    assert worker.call(PROBE)["output"] == before
    modules = json.loads(before)[5]
    assert "leak" not in modules and "json" in modules


def test_signals_are_as_in_a_process_of_its_own(worker):
    code = (
        "import signal\nprint(*(signal.getsignal(n) for n in (signal.SIGCHLD, signal.SIGTERM)),"
        "signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.set_wakeup_fd(-1))"
    )
    assert worker.call(code)["output"] == "0 0 True -1\n"


def test_the_action_runs_in_the_folder_of_its_request(worker, tmp_path):
    here = os.fspath(Path.cwd())
    assert worker.call("import os; print(os.getcwd())", sandboxDir=str(tmp_path))["output"] == f"{tmp_path}\n"
    assert worker.call("import os; print(os.getcwd())")["output"] == f"{here}\n"
    answer = worker.call("pass", sandboxDir=str(tmp_path / "none"))
    assert answer["exitCode"] == 1 and "No such file or directory" in answer["output"]


def test_what_is_printed_beyond_the_limit_is_dropped(worker):
    output = worker.call(f"import sys; sys.stdout.write('x' * {3 * MOST_OUTPUT})")["output"]
    assert output[:MOST_OUTPUT] == "x" * MOST_OUTPUT
    assert output[MOST_OUTPUT:] == f"\n(more than {MOST_OUTPUT} bytes were printed; the rest is dropped)\n"


def test_a_full_pipe_is_an_answer_to_the_last_byte(worker):
    assert len(worker.call("import sys; sys.stdout.write('x' * 400_000)")["output"]) == 400_000


def test_an_action_that_never_stops_printing_keeps_nobody_waiting(worker, alive):
    worker.send(requestId=1, arguments=[alive.code + "import os\nwhile True: os.write(1, b'x' * 65536)"])
    flooding = alive.seen()
    worker.send(requestId=2, arguments=["print('here')"])
    assert worker.answer() == {"requestId": 2, "exitCode": 0, "output": "here\n"}
    worker.send(requestId=1, cancel=True)
    assert worker.answer() == {"requestId": 1, "wasCancelled": True}
    assert alive.gone(flooding)


def test_an_action_that_closes_its_output_is_answered_when_it_ends(worker, alive):
    code = alive.code + "import os\nos.write(1, b'before'); os.close(1); os.close(2); os.read(0, 1)\n" + HANG
    worker.send(requestId=1, arguments=[code])
    closed = alive.seen()
    worker.send(requestId=2, arguments=["print(2)"])
    assert worker.answer()["requestId"] == 2
    worker.send(requestId=1, cancel=True)
    assert worker.answer() == {"requestId": 1, "wasCancelled": True}
    assert alive.gone(closed)


def test_what_an_action_leaves_running_ends_with_it(worker, alive):
    code = f"import os\nif os.fork() == 0:\n    {alive.code}    exec({HANG!r})\nprint('parent')"
    code += f"\nos.close(os.open({str(alive.pipe)!r}, os.O_WRONLY))"  # not before the test looks
    worker.send(requestId=1, arguments=[code])
    left = alive.seen()
    assert worker.answer() == {"requestId": 1, "exitCode": 0, "output": "parent\n"}
    assert alive.gone(left)


def test_a_process_that_left_the_group_and_goes_on_printing_delays_nothing(worker, alive):
    code = (
        "import os\nif os.fork() == 0:\n    os.setsid()\n    " + alive.code.strip() + "\n"
        "    os.read(0, 1)\n    while True: os.write(1, b'x' * 65536)\n"
    )
    # The pipe is closed when the action has ended, and SIGPIPE or its error ends the process.
    code += f"os.close(os.open({str(alive.pipe)!r}, os.O_WRONLY))"
    worker.send(requestId=1, arguments=[code])
    left = alive.seen()
    assert worker.answer()["exitCode"] == 0
    assert alive.gone(left)


def test_a_cancelled_action_is_killed_and_answered_once(worker, alive):
    for _ in range(2):  # the same id again, as in the next build
        hanging = alive.code + "import os\nos.fork()\n" + HANG
        worker.send(requestId=1, arguments=[hanging])
        both = alive.seen()
        worker.send(requestId=1, cancel=True)
        worker.send(requestId=1, cancel=True)
        assert worker.answer() == {"requestId": 1, "wasCancelled": True}
        worker.send(requestId=1, cancel=True)  # too late
        worker.send(requestId=99, cancel=True)  # of nobody
        assert alive.gone(both)
        assert worker.call("print('next')") == {"requestId": 1, "exitCode": 0, "output": "next\n"}


def test_a_number_that_comes_again_ends_the_action_that_had_it(worker, alive):
    # As after Ctrl-C, if Bazel sends no cancellation.
    worker.send(requestId=1, arguments=[alive.code + HANG])
    forgotten = alive.seen()
    assert worker.call("print('new')") == {"requestId": 1, "exitCode": 0, "output": "new\n"}
    assert alive.gone(forgotten)
    assert worker.call("print('newer')") == {"requestId": 1, "exitCode": 0, "output": "newer\n"}


def test_an_action_that_ignores_signals_and_left_its_group_is_cancelled(worker, alive):
    code = "import os, signal\nfor n in (2, 15): signal.signal(n, signal.SIG_IGN)\n"
    code += "os.setpgid(0, os.getpgid(os.getppid()))\n" + alive.code + HANG
    worker.send(requestId=1, arguments=[code])
    hanging = alive.seen()
    worker.send(requestId=1, cancel=True)
    assert worker.answer() == {"requestId": 1, "wasCancelled": True}
    assert alive.gone(hanging)


def test_actions_run_side_by_side(worker, tmp_path):
    # Each opens one end of a pipe, which blocks until the other does.
    os.mkfifo(tmp_path / "meeting")
    for number, mode in ((1, "r"), (2, "w")):
        worker.send(requestId=number, arguments=[f"open({str(tmp_path / 'meeting')!r}, {mode!r}).close()"])
    assert {worker.answer()["requestId"], worker.answer()["requestId"]} == {1, 2}


def test_requests_come_in_pieces_or_many_at_once(worker):
    worker.send_bytes(b'\n{"requestId": 5, "argum')
    worker.send_bytes(b'ents": ["print(5)"], "unknown": [1]}')
    worker.send_bytes(
        b'\n\n{"requestId": 6, "arguments": ["print(6)"]}\n{"requestId": 7, "arguments": ["print(7)"]}\n{'
    )
    assert sorted(worker.answer()["output"] for _ in range(3)) == ["5\n", "6\n", "7\n"]
    worker.send_bytes(b'"requestId": 8, "arguments": ["print(8)"]}\n')
    assert worker.answer() == {"requestId": 8, "exitCode": 0, "output": "8\n"}


def test_a_request_may_be_long(worker):
    size = 8 << 20
    assert worker.call("print(len(arguments[1]))", "x" * size)["output"] == f"{size}\n"


def test_ctrl_c_is_for_bazel(worker):
    worker.signal(signal.SIGINT)
    assert worker.call("print('still')")["output"] == "still\n"


@linux_only("what the worker holds is read from /proc")
def test_hundreds_of_requests_leave_no_descriptor_process_or_memory(worker):
    def held():
        status = Path(f"/proc/{worker.pid}/status").read_text()
        resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
        children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text()
        return len(list(Path(f"/proc/{worker.pid}/fd").iterdir())), children, resident

    worker.call("pass")
    descriptors, children, resident = held()
    for _ in range(75):
        for number in range(1, 5):
            worker.send(requestId=number, arguments=["print('x' * 10_000)", "y" * 10_000])
        assert sorted(worker.answer()["requestId"] for _ in range(4)) == [1, 2, 3, 4]
    after = held()
    assert after[:2] == (descriptors, children) and children == ""
    assert after[2] - resident < 3_000  # kB; the texts alone are 6 MB


def test_what_is_no_request_ends_the_worker_and_its_children(own_worker, alive):
    own_worker.send(requestId=1, arguments=[alive.code + HANG])
    running = alive.seen()
    own_worker.send_bytes(b"what?\n")
    assert own_worker.ended() == 1
    assert alive.gone(running)
    assert "a work request is not JSON" in own_worker.log.read_text()


def test_the_end_of_input_ends_worker_and_children(own_worker, alive):
    own_worker.send(requestId=1, arguments=[alive.code + HANG])
    running = alive.seen()
    own_worker.close_input()
    assert own_worker.ended() == 0
    assert alive.gone(running)


def test_sigterm_ends_worker_and_children(own_worker, alive):
    own_worker.send(requestId=1, arguments=[alive.code + HANG])
    running = alive.seen()
    own_worker.signal(signal.SIGTERM)
    assert own_worker.ended() == 128 + signal.SIGTERM
    assert alive.gone(running)


@linux_only("there nothing tells a child that its parent was killed, and it runs to its end")
def test_children_of_a_killed_worker_end(own_worker, alive):
    own_worker.send(requestId=1, arguments=[alive.code + HANG])
    running = alive.seen()
    own_worker.signal(signal.SIGKILL)
    assert alive.gone(running)


@linux_only("there the worker cannot count its threads, which stand in /proc")
def test_a_process_with_threads_serves_nobody(tmp_path):
    thread = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
    with WorkerProcess((*COMMAND, thread), tmp_path / "log") as process:
        assert process.ended() == 1
    assert "a worker that forks has one thread, this one has 2" in process.log.read_text()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
