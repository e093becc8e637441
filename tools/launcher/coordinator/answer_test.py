import json
import sys

import pytest

from tools.launcher.coordinator.answer import AnswerProblem, read_answer
from tools.launcher.coordinator.attempt import make_attempt
from tools.launcher.coordinator.bundle_for_test import answer_line, pinned_document
from tools.launcher.documents.canonical import digest_of
from tools.launcher.documents.yaml_writer import dump_yaml
from tools.launcher.store.records import RunKey


def _attempt(**changes):
    pinned = pinned_document(**changes)
    return make_attempt(dump_yaml(pinned), RunKey(experiment="e", launch_digest=digest_of(pinned), ordinal=1))


ATTEMPT = _attempt()


def test_a_good_answer_is_read():
    answer = read_answer(answer_line(ATTEMPT) + "\n", 0, ATTEMPT)
    assert (answer.state, answer.iris_job_id) == ("succeeded", "/tester/coordinator/child")


def test_a_failure_is_read():
    line = answer_line(ATTEMPT, state="failed", failure="out of memory", iris_job_state="failed")
    assert read_answer(line, 1, ATTEMPT).failure == "out of memory"


@pytest.mark.parametrize(("submission", "state"), [("prepare", "prepared"), ("detach", "submitted")])
def test_each_way_of_submitting_has_its_good_state(submission, state):
    attempt = _attempt(run__submission=submission)
    assert read_answer(answer_line(attempt, state=state), 0, attempt).state == state
    with pytest.raises(AnswerProblem) as caught:
        read_answer(answer_line(attempt), 0, attempt)
    assert str(caught.value) == f"the answer says 'succeeded', run.submission {submission!r} ends {state!r}"


@pytest.mark.parametrize("field", list(json.loads(answer_line(ATTEMPT))))
def test_every_field_is_required(field):
    answer = json.loads(answer_line(ATTEMPT))
    del answer[field]
    with pytest.raises(AnswerProblem) as caught:
        read_answer(json.dumps(answer), 0, ATTEMPT)
    assert str(caught.value) == f"the answer lacks {field!r}"


@pytest.mark.parametrize(
    ("stdout", "exit_code", "sentence"),
    [
        ("", 0, "the launcher ended with exit code 0 and no answer"),
        (" \n", -9, "the launcher ended with exit code -9 and no answer"),
        (
            "starting\n" + answer_line(ATTEMPT),
            0,
            (
                "the launcher's output is not one JSON object (exit code 0): Expecting value at line 1, column 1; "
                "it begins 'starting"
            ),
        ),
        (
            answer_line(ATTEMPT) + answer_line(ATTEMPT),
            0,
            "the launcher's output is not one JSON object (exit code 0): Extra data",
        ),
        ("[]", 0, "the launcher's answer is list, expected one JSON object"),
        ("null", 0, "the launcher's answer is NoneType, expected one JSON object"),
        (answer_line(ATTEMPT)[:-1] + ', "state": "failed"}', 0, "the answer has 'state' twice"),
        (answer_line(ATTEMPT, model=float("nan")), 0, "the answer contains NaN, which is not JSON"),
        (answer_line(ATTEMPT, extra=1), 0, "the answer has the unknown field 'extra'"),
        (answer_line(ATTEMPT, state="done"), 0, "the answer's state is 'done': input should be 'prepared'"),
        (answer_line(ATTEMPT, run_id=3), 0, "the answer's run_id is 3: input should be a valid string"),
        (
            answer_line(ATTEMPT, attempt_id="ffffffffffff"),
            0,
            "the answer is about another launch: attempt_id is 'ffffffffffff', expected",
        ),
        (answer_line(ATTEMPT, launcher_commit="0" * 40), 0, "another launch: launcher_commit is '0000"),
        (
            answer_line(ATTEMPT, runtime_profile="megatron"),
            0,
            "another launch: runtime_profile is 'megatron'",
        ),
        (answer_line(ATTEMPT), 1, "the answer says 'succeeded', the exit code is 1"),
        (
            answer_line(ATTEMPT, state="failed", failure="x"),
            0,
            "the answer says 'failed', the exit code is 0",
        ),
        (answer_line(ATTEMPT, state="failed"), 1, "the answer says 'failed' and gives no failure"),
        (answer_line(ATTEMPT, failure="x"), 0, "the answer says 'succeeded' and gives the failure 'x'"),
        (answer_line(ATTEMPT, iris_job_id=None), 0, "the answer says 'succeeded' and names no job"),
        (
            answer_line(ATTEMPT, state="submitted"),
            0,
            "the answer says 'submitted', run.submission 'wait' ends 'succeeded'",
        ),
    ],
)
def test_what_is_wrong_with_an_answer_is_said(stdout, exit_code, sentence):
    with pytest.raises(AnswerProblem) as caught:
        read_answer(stdout, exit_code, ATTEMPT)
    assert sentence in str(caught.value)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
