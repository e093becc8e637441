"""The closing line and exit code for each way a test run can end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(".ci/summarize_tests.py")


def configured(label: str) -> dict[str, object]:
    return {"id": {"targetConfigured": {"label": label}}, "configured": {"testSize": "SMALL"}}


def summary(label: str, status: str) -> dict[str, object]:
    key = {"label": label, "configuration": {"id": "k8"}}
    return {"id": {"testSummary": key}, "testSummary": {"overallStatus": status}}


def aborted(kind: str, label: str, reason: str) -> dict[str, object]:
    return {"id": {kind: {"label": label}}, "aborted": {"reason": reason}}


FINISHED: dict[str, object] = {"id": {"buildFinished": {}}}

CASES = {
    "passing": (
        [configured("//a:x_test"), summary("//a:x_test", "PASSED"), FINISHED],
        0,
        "1 passed, 0 failed",
        0,
    ),
    "flaky": (
        [configured("//a:x_test"), summary("//a:x_test", "FLAKY"), FINISHED],
        0,
        "1 passed, 0 failed",
        0,
    ),
    "failing": (
        [summary("//a:x_test", "PASSED"), summary("//a:y_test", "FAILED"), FINISHED],
        3,
        "1 passed, 1 failed",
        3,
    ),
    "not built": (
        [configured("//a:x_test"), configured("//a:y_test"), summary("//a:x_test", "PASSED"), FINISHED],
        1,
        "1 passed, 1 failed",
        1,
    ),
    "not analysed": (
        [
            summary("//a:x_test", "PASSED"),
            aborted("targetConfigured", "//a:y_test", "ANALYSIS_FAILURE"),
            FINISHED,
        ],
        1,
        "1 passed, 1 failed",
        1,
    ),
    "incompatible": (
        [
            configured("//a:x_test"),
            summary("//a:x_test", "PASSED"),
            configured("//a:y_test"),
            aborted("targetCompleted", "//a:y_test", "SKIPPED"),
            FINISHED,
        ],
        0,
        "1 passed, 0 failed",
        0,
    ),
    "another target broken": ([summary("//a:x_test", "PASSED"), FINISHED], 1, "1 passed, 0 failed", 1),
    "buildifier complains": ([summary("//a:x_test", "PASSED"), FINISHED], 4, "1 passed, 0 failed", 4),
    "no test": ([FINISHED], 4, "0 passed, 0 failed", 4),
    "no test, and Bazel is content": ([FINISHED], 0, "0 passed, 0 failed", 1),
    "never finished": ([summary("//a:x_test", "PASSED")], 0, "1 passed, 0 failed", 1),
}


def run(events: Path, bazel_exit_code: int) -> tuple[list[str], int]:
    result = subprocess.run(
        [sys.executable, SCRIPT, events, f"--bazel-exit-code={bazel_exit_code}"],
        env={},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert result.stderr == ""
    return result.stdout.splitlines(), result.returncode


@pytest.mark.parametrize("case", CASES)
def test_last_line_and_exit_code(case: str, tmp_path: Path) -> None:
    events, bazel_exit_code, last, code = CASES[case]
    file = tmp_path / "events.json"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    lines, returned = run(file, bazel_exit_code)
    assert (lines[-1], returned) == (last, code)


def test_failing_tests_are_named(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    file.write_text(
        "".join(json.dumps(event) + "\n" for event in [summary("//a:y_test", "TIMEOUT"), FINISHED])
    )
    assert run(file, 3)[0] == ["//a:y_test: TIMEOUT", "0 passed, 1 failed"]


def test_events_cut_off_within_a_line(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    file.write_text(json.dumps(summary("//a:x_test", "PASSED")) + '\n{"id": {"buildFin')
    lines, code = run(file, 0)
    assert lines == ["the build events are incomplete", "1 passed, 0 failed"]
    assert code == 1


def test_no_events(tmp_path: Path) -> None:
    lines, code = run(tmp_path / "none.json", 37)
    assert lines == [
        "bazel exited with 37",
        "the build events are incomplete",
        "no test ran",
        "0 passed, 0 failed",
    ]
    assert code == 37


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
