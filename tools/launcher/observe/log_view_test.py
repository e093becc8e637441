"""Lines of log as people see them."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.launcher.iris.jobs import LogLine
from tools.launcher.observe.log_view import Source, merged, plain, record_lines, shown_line
from tools.launcher.observe.run_testlib import Run

COORDINATOR = Source(name="coordinator", job_id="/a/b", task=0)
TASKS = Source(name="task", job_id="/a/b/c", task=None)


def line(text="x", at_ms=0, task=0, attempt=1):
    return LogLine(task_index=task, attempt=attempt, at_ms=at_ms, text=text)


LINES = st.lists(
    st.builds(line, st.text(max_size=5), st.integers(0, 50), st.integers(0, 2), st.integers(1, 2))
)


@given(LINES, LINES)
def test_no_line_is_lost_and_each_writer_keeps_its_order(ours, theirs):
    found = merged([(COORDINATOR, ours), (TASKS, theirs)])
    for source, page in ((COORDINATOR, ours), (TASKS, theirs)):
        for writer in {(each.task_index, each.attempt) for each in page}:
            written = [each for each in page if (each.task_index, each.attempt) == writer]
            shown = [e for s, e in found if s == source and (e.task_index, e.attempt) == writer]
            assert shown == written
    assert len(found) == len(ours) + len(theirs)


def test_lines_of_several_jobs_go_by_time():
    found = merged([(COORDINATOR, [line("1", 1), line("4", 4)]), (TASKS, [line("2", 2), line("3", 3)])])
    assert [each.text for _, each in found] == ["1", "2", "3", "4"]


def test_a_label_says_who_wrote():
    assert COORDINATOR.label(line()) == "coordinator" and TASKS.label(line(task=3)) == "task 3"
    assert TASKS.label(line(attempt=2)) == "task 0 attempt 2"
    hidden = shown_line(TASKS, line("key=hunter22"), lambda text: text.replace("hunter22", "*"), width=11)
    assert hidden == "task 0      | key=*"
    assert shown_line(TASKS, line("as it\tis"), str, width=0) == "as it   is"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("\x1b[31mred\x1b[0m and \x1b]0;title\x07plain", "red and plain"),
        ("10%\r 50%\r100% done\r", "100% done"),
        ("bell\x07 and \x1b[2Jcleared  ", "bell  and cleared"),
        ("", ""),
        ("\r", ""),
    ],
)
def test_terminal_codes_are_left_out(written, shown):
    assert plain(written) == shown


@given(st.text())
def test_nothing_reaches_the_terminal_but_text(text):
    assert plain(text).isprintable()


def test_a_record_tells_what_iris_forgot(tmp_path):
    run = Run(tmp_path)
    run.submit()
    run.event("failed", reason="the child\nended", step="cats@1", stderr_tail="first\n\x1b[1mlast")
    lines = record_lines(run.record())
    assert [text.split(": ", 1)[1] for text in lines[:3]] == ["intent", "submitted", "coordinator_started"]
    assert lines[-3].endswith(" ann@desk: failed cats@1 the child ended")
    assert lines[-2:] == ["    first", "    last"]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
