"""Limits, faults and the place of a task: what a task reads from its environment."""

import sys

import pytest

from tools.launcher.rehearsal.faults import FAULT_VARIABLE, Fault, FaultError, fault_from, tears_checkpoint
from tools.launcher.rehearsal.limits import LIMIT_VARIABLE, STEP_VARIABLE, LimitError, limits_from
from tools.launcher.rehearsal.task import NotATask, task_place


def test_limits_have_defaults_and_the_document_can_only_shorten_them():
    limits = limits_from({}, 1800)
    assert (limits.join, limits.step, limits.pace) == (60.0, 60.1, 0.1)
    assert limits_from({}, 10).join == 10.0
    changed = limits_from({LIMIT_VARIABLE: "5", STEP_VARIABLE: "0"}, 1800)
    assert (changed.join, changed.step, changed.pace, changed.pending) == (5.0, 5.0, 0.0, 25.0)
    # A task must get to say what went wrong before the launcher gives up on it.
    assert changed.progress > changed.step


@pytest.mark.parametrize("text", ["", "soon", "nan", "inf", "-1", "0.01"])
def test_a_limit_that_is_no_number_of_seconds_is_said(text):
    with pytest.raises(LimitError) as caught:
        limits_from({LIMIT_VARIABLE: text}, 1800)
    assert str(caught.value) == f"{LIMIT_VARIABLE} is {text!r}. Give a number of seconds, at least 0.1"


def test_no_fault_unless_asked():
    assert fault_from({}, rank=0, start=0) is None
    assert fault_from({FAULT_VARIABLE: ""}, rank=0, start=0) is None


def test_a_fault_strikes_one_rank_once():
    environ = {FAULT_VARIABLE: '{"rank": 1, "kind": "die", "step": 3}'}
    assert fault_from(environ, rank=1, start=0) == Fault(rank=1, kind="die", step=3)
    assert fault_from(environ, rank=0, start=0) is None
    assert fault_from(environ, rank=1, start=1) is None


@pytest.mark.parametrize(
    "text", ["die", '{"rank": 1}', '{"rank": 1, "kind": "explode"}', '{"rank": -1, "kind": "die"}', "[]"]
)
def test_a_fault_that_cannot_be_read_is_said(text):
    with pytest.raises(FaultError) as caught:
        fault_from({FAULT_VARIABLE: text}, rank=0, start=0)
    assert str(caught.value).startswith(f"{FAULT_VARIABLE} is {text!r}: ")
    assert 'Give for example {"rank": 1, "kind": "die", "step": 3}' in str(caught.value)


def test_a_torn_checkpoint_is_the_first_one_from_its_step_on():
    fault = Fault(rank=0, kind="torn_checkpoint", step=4)
    assert [tears_checkpoint(fault, step) for step in (3, 4, 6)] == [False, True, True]
    assert not tears_checkpoint(Fault(rank=0, kind="die", step=1), 6)


def test_a_task_reads_its_place():
    place = task_place({"IRIS_TASK_ID": "/u/parent/job/2:1", "IRIS_NUM_TASKS": "4", "IRIS_WORKDIR": "/x"})
    assert (place.rank, place.world_size, place.start) == (2, 4, 1)
    assert task_place({"IRIS_TASK_ID": "/u/job/0", "IRIS_NUM_TASKS": "1", "IRIS_WORKDIR": "/x"}).start == 0


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"IRIS_TASK_ID": "/u/job/x", "IRIS_NUM_TASKS": "1", "IRIS_WORKDIR": "/x"},
        {"IRIS_TASK_ID": "/u/job/0", "IRIS_NUM_TASKS": "many", "IRIS_WORKDIR": "/x"},
        {"IRIS_TASK_ID": "/u/job/0", "IRIS_NUM_TASKS": "1"},
    ],
)
def test_outside_iris_a_task_says_so(environ):
    with pytest.raises(NotATask, match="This command only runs as a task of Iris"):
        task_place(environ)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
