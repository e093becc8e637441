"""What the launcher makes of a scalar of another type, and that the rules judge what it makes of it."""

import sys
from typing import Any

import pytest

from tools.launcher.preflight.judge import judge
from tools.launcher.preflight.launcher_reading import read_as
from tools.launcher.preflight.registry import CHECKS
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.testing.subjects import changed, document, pinned_runtime

# As OmegaConf 2.1.2, 2.2.3, 2.3.0 and 2.4.0.dev3 answer for a field of a structured schema.
_CONVERTED: tuple[tuple[str, Any, Any], ...] = (
    ("str", True, "True"),
    ("str", 1.5, "1.5"),
    ("str", 2026, "2026"),
    ("int", "17", 17),
    ("int", "1_000", 1000),
    ("int", " 17 ", 17),
    ("float", "48", 48.0),
    ("bool", "yes", True),
    ("bool", "OFF", False),
    ("bool", "2", True),
    ("bool", 0, False),
    ("bool", 2, True),
)
_REFUSED: tuple[tuple[str, Any], ...] = (
    ("str", ["a"]),
    ("str", {}),
    ("int", 17.0),
    ("int", 17.5),
    ("int", True),
    ("int", "1e3"),
    ("int", "17.0"),
    ("float", True),
    ("float", "many"),
    ("bool", 1.0),
    ("bool", "maybe"),
)


@pytest.mark.parametrize(("kind", "value", "read"), _CONVERTED)
def test_a_scalar_of_another_type_is_converted(kind: str, value: Any, read: Any) -> None:
    reading = read_as(kind, value)
    assert (reading.problem, reading.converted) == ("", True)
    assert (type(reading.value), reading.value) == (type(read), read)


@pytest.mark.parametrize(("kind", "value"), _REFUSED)
def test_what_cannot_be_converted_is_refused(kind: str, value: Any) -> None:
    assert read_as(kind, value).problem


@pytest.mark.parametrize(
    ("path", "value", "check"),
    [
        ("iris.cluster", True, "EXE-01"),  # the cluster 'True' is not the target
        ("runtime.profile", True, "BKD-01"),
        ("runtime.launcher_commit", True, "BKD-20"),
        ("iris.allocation.memory", True, "EXE-04"),
        ("ray.spill_dir", 5, "EXE-09"),
        ("artifacts.checkpoint_root", False, "EXE-31"),
        ("run.id", 20260921, "ART-02"),
        ("inputs.model.local_path", 1.5, "ART-15"),
        ("inputs.model.tokenizer_revision", 7, "ART-08"),
    ],
)
def test_rules_judge_the_text_that_the_launcher_reads(path: str, value: Any, check: str) -> None:
    subject = PreflightSubject(document=changed(document("smoke"), {path: value}), runtime=pinned_runtime())
    report = judge(subject, CHECKS)
    assert check in {found.id for found in report.errors}
    # What is written is said as it is written.
    (converted,) = (found for found in report.violations if found.id == "DOC-04")
    assert converted.path == path and "where the schema has text" in converted.message


def test_a_text_that_is_converted_and_legal_is_accepted() -> None:
    subject = PreflightSubject(
        document=changed(document("smoke"), {"iris.wandb_entity": 2026}), runtime=pinned_runtime()
    )
    report = judge(subject, CHECKS)
    assert not report.errors
    assert [found.id for found in report.warnings] == ["DOC-04"]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
