"""`logs`: what is read, shown and hidden; a real Iris is asked in tests/e2e/launch_test.py."""

import contextlib
import sys

import pytest

from tools.launcher.cli import exit_codes, logs_command
from tools.launcher.cli.commands import run
from tools.launcher.cli.log_reading import LogReader, NoJobYet, sources_of
from tools.launcher.iris.jobs import LogLine, LogPage
from tools.launcher.observe.log_view import Source
from tools.launcher.observe.run_testlib import CHILD_ID, COORDINATOR_ID, FakeIris, Run

SECRET = "hunter2-hunter2"


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    """No test may see or touch the user's own runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("SLIPWAY_STORE", "SLIPWAY_CONTROLLER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cats(tmp_path):
    return Run(tmp_path / "state" / "slipway", credentials=["WANDB_API_KEY"])


class Log:
    """A log that grows; what `IrisGateway.log_page` says of one."""

    def __init__(self):
        self.lines, self.asked = [], []

    def write(self, *texts, task=0, attempt=1):
        for text in texts:
            at = len(self.lines) + 1
            self.lines.append(LogLine(task_index=task, attempt=attempt, at_ms=at, text=text))

    def log_page(self, job_id, *, after, most, task=None):
        self.asked.append((job_id, after, most, task))
        if after is None:
            return LogPage(lines=tuple(self.lines[-most:]), cursor=len(self.lines))
        page = self.lines[after : after + most]
        return LogPage(lines=tuple(page), cursor=after + len(page))


def texts(found):
    return [line.text for _, line in found]


SOURCE = Source(name="task", job_id=CHILD_ID, task=None)


def test_what_comes_is_read_once():
    log = Log()
    log.write("1", "2", "3")
    reader = LogReader(log, None)
    assert texts(reader.latest([SOURCE], 2)) == ["2", "3"] and log.asked == [(CHILD_ID, None, 2, None)]
    assert texts(reader.news([SOURCE])) == []
    log.write(*map(str, range(4, 20_010)))
    assert texts(reader.news([SOURCE])) == [*map(str, range(4, 20_010))]
    assert texts(reader.news([SOURCE])) == []


def test_an_empty_log_is_followed_from_its_beginning():
    log = Log()
    reader = LogReader(log, None)
    assert reader.latest([SOURCE], 5) == []
    log.write("first")
    assert texts(reader.news([SOURCE])) == ["first"]


def test_one_start_of_a_task_is_told_from_another():
    log = Log()
    log.write("a", "b")
    log.write("c", "d", attempt=2)
    assert texts(LogReader(log, 1).latest([SOURCE], 1)) == ["b"]
    assert texts(LogReader(log, 2).latest([SOURCE], None)) == ["c", "d"]


def test_whose_lines_are_read(cats):
    cats.submit()
    record = cats.record()
    coordinator = Source(name="coordinator", job_id=COORDINATOR_ID, task=0)
    assert sources_of(record, coordinator=False, task=None) == (coordinator, SOURCE)
    assert sources_of(record, coordinator=True, task=None) == (coordinator,)
    assert sources_of(record, coordinator=False, task=1) == (SOURCE.model_copy(update={"task": 1}),)


def test_a_job_that_is_not_submitted_has_no_log(cats):
    with pytest.raises(NoJobYet) as caught:
        sources_of(cats.record(), coordinator=False, task=None)
    name = cats.key.short_name
    assert str(caught.value) == f"the run {name} is intent, and its coordinator is not submitted yet"
    cats.event("submitted", job_id=COORDINATOR_ID)
    cats.event("failed", reason="no weights")
    with pytest.raises(NoJobYet) as caught:
        sources_of(cats.record(), coordinator=False, task=0)
    assert str(caught.value) == f"the run {name} is failed: no weights, and its child job is not submitted"


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("--task=-1", "--task=-1: give a number from 0"),
        ("--attempt=0", "--attempt=0: give a number from 1"),
        ("--tail=0", "--tail=0: give a number from 1"),
    ],
)
def test_numbers_that_cannot_be_meant(cats, capsys, flag, sentence):
    assert run(["logs", "cats", flag]) == exit_codes.USAGE
    assert capsys.readouterr().err == f"error: {sentence}\n"


def test_one_writer_is_asked_for_at_a_time(cats, capsys):
    with pytest.raises(SystemExit) as caught:
        run(["logs", "cats", "--task=1", "--coordinator"])
    assert caught.value.code == exit_codes.USAGE
    assert "argument --coordinator: not allowed with argument --task" in capsys.readouterr().err


def test_where_iris_cannot_be_asked_the_record_tells_and_hides_credentials(cats, capsys, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    cats.submit()
    cats.event("failed", reason="the child ended", stderr_tail=f"trace\nkey is {SECRET}")
    assert run(["logs", "cats"]) == exit_codes.UNKNOWN
    said = capsys.readouterr()
    assert said.err == (
        "error: the local Iris does not run, and neither does anything on it. Start it: tools/bazel run "
        "//tools/launcher -- local start. This is what the record says of the run:\n"
    )
    lines = said.out.splitlines()
    assert lines[-3].endswith(" ann@desk: failed the child ended")
    assert lines[-2:] == ["    trace", "    key is [credential]"]


def test_the_end_of_the_record_is_as_long_as_was_asked_for(cats, capsys):
    """It printed all events whatever --tail said."""
    cats.submit()
    assert run(["logs", "cats", "--tail=2"]) == exit_codes.UNKNOWN
    kinds = [line.partition("ann@desk: ")[2] for line in capsys.readouterr().out.splitlines()]
    assert kinds == ["step_started cats@1", "child_submitted cats@1"]
    assert run(["logs", "cats", "--tail=99"]) == exit_codes.UNKNOWN
    assert len(capsys.readouterr().out.splitlines()) == 5


class Answering(FakeIris, Log):
    """A scheduler that has the log."""

    def __init__(self):
        FakeIris.__init__(self)
        Log.__init__(self)


@pytest.mark.parametrize("state", ["running", "succeeded"])
@pytest.mark.parametrize(("starts", "words"), [(1, "once"), (3, "3 times")])
def test_of_a_start_that_never_was_it_is_said_how_many_there_were(
    cats, capsys, monkeypatch, starts, words, state
):
    cats.submit()
    iris = Answering()
    monkeypatch.setattr(logs_command, "looking", lambda where: contextlib.nullcontext((iris, "")))
    for job_id in (COORDINATOR_ID, CHILD_ID):
        iris.put(job_id, state, tasks=2)
    child = iris.jobs[CHILD_ID]
    tasks = tuple(task.model_copy(update={"attempts": starts}) for task in child.tasks)
    iris.jobs[CHILD_ID] = child.model_copy(update={"tasks": tasks})
    assert run(["logs", "cats", "--attempt=9"]) == exit_codes.OK
    said = capsys.readouterr()
    assert (
        said.out == "" and said.err == f"note: no line of attempt 9: no task was started more than {words}\n"
    )


@pytest.mark.parametrize(
    ("state", "starts", "said"),
    [
        ("pending", 0, f"note: {CHILD_ID} is pending and has written nothing yet\n"),
        ("succeeded", 2, "note: no line of attempt 2\n"),
    ],
)
def test_of_a_start_that_wrote_nothing_no_number_is_told(cats, capsys, monkeypatch, state, starts, said):
    cats.submit()
    iris = Answering()
    monkeypatch.setattr(logs_command, "looking", lambda where: contextlib.nullcontext((iris, "")))
    iris.put(CHILD_ID, state)
    tasks = tuple(task.model_copy(update={"attempts": starts}) for task in iris.jobs[CHILD_ID].tasks)
    iris.jobs[CHILD_ID] = iris.jobs[CHILD_ID].model_copy(update={"tasks": tasks})
    assert run(["logs", "cats", "--task=0", "--attempt=2"]) == exit_codes.OK
    assert capsys.readouterr().err == said


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
