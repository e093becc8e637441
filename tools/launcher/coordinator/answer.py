"""The runtime launcher's answer: one JSON object, read strictly (contract/launch-document.md §6)."""

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from tools.launcher.coordinator.attempt import Attempt


class AnswerProblem(ValueError):
    """The answer cannot be believed. The message says which rule it breaks."""


class Answer(BaseModel):
    """What the runtime launcher says. `model` and `failure` have no fixed form in the contract."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    run_id: str
    attempt_id: str
    state: Literal["prepared", "submitted", "succeeded", "failed"]
    iris_job_id: str | None
    iris_job_state: str | None
    launcher_commit: str
    runtime_profile: str
    model: Any
    failure: Any


# The states which each way of submitting can end in, besides "failed".
_GOOD_STATES = {"prepare": "prepared", "detach": "submitted", "wait": "succeeded"}


def read_answer(stdout: str, exit_code: int, attempt: Attempt) -> Answer:
    """Read the launcher's standard output.

    Args:
        stdout: all of it.
        exit_code: how the launcher ended.
        attempt: what it was asked to launch.

    Raises:
        AnswerProblem: not exactly one JSON object with exactly the nine fields, about another
            attempt, or at odds with the exit code or with itself.
    """
    answer = _parsed(stdout, exit_code)
    for field, wanted in (
        ("run_id", attempt.run_id),
        ("attempt_id", attempt.attempt_id),
        ("launcher_commit", attempt.launcher_commit),
        ("runtime_profile", attempt.runtime_profile),
    ):
        found = getattr(answer, field)
        if found != wanted:
            raise AnswerProblem(
                f"the answer is about another launch: {field} is {found!r}, expected {wanted!r}"
            )
    if (answer.state == "failed") != (exit_code != 0):
        raise AnswerProblem(f"the answer says {answer.state!r}, the exit code is {exit_code}")
    if answer.state == "failed":
        if not answer.failure:
            raise AnswerProblem("the answer says 'failed' and gives no failure")
        return answer
    if answer.failure is not None:
        raise AnswerProblem(f"the answer says {answer.state!r} and gives the failure {answer.failure!r}")
    expected = _GOOD_STATES.get(attempt.submission)
    if answer.state != expected:
        raise AnswerProblem(
            f"the answer says {answer.state!r}, run.submission {attempt.submission!r} ends {expected!r}"
        )
    if answer.state != "prepared" and not answer.iris_job_id:
        raise AnswerProblem(f"the answer says {answer.state!r} and names no job")
    return answer


def _parsed(stdout: str, exit_code: int) -> Answer:
    if not stdout.strip():
        raise AnswerProblem(f"the launcher ended with exit code {exit_code} and no answer")
    try:
        value = json.loads(stdout, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise AnswerProblem(
            f"the launcher's output is not one JSON object (exit code {exit_code}): {error.msg} at line "
            f"{error.lineno}, column {error.colno}; it begins {stdout.strip()[:80]!r}"
        ) from None
    if not isinstance(value, dict):
        raise AnswerProblem(f"the launcher's answer is {type(value).__name__}, expected one JSON object")
    try:
        return Answer.model_validate(value)
    except ValidationError as error:
        finding = error.errors()[0]
        field = ".".join(str(part) for part in finding["loc"])
        if finding["type"] == "missing":
            raise AnswerProblem(f"the answer lacks {field!r}") from None
        if finding["type"] == "extra_forbidden":
            raise AnswerProblem(f"the answer has the unknown field {field!r}") from None
        raise AnswerProblem(
            f"the answer's {field} is {finding['input']!r}: {finding['msg'].lower()}"
        ) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise AnswerProblem(f"the answer has {repeated[0]!r} twice")
    return dict(pairs)


def _no_constant(name: str) -> float:
    raise AnswerProblem(f"the answer contains {name}, which is not JSON")
