"""Every check on its tables: what it finds, what it lets pass, and that its repair repairs."""

import sys

import pytest

from tools.launcher.preflight.engine import run_preflight
from tools.launcher.preflight.registry import CHECKS
from tools.launcher.preflight.testing.cases.all_cases import FAILING, NOT_CHECKED, PASSING, REMINDING
from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes, Reminds
from tools.launcher.preflight.testing.subjects import repaired

_BY_ID = {check.id: check for check in CHECKS}

READY_TO_TYPE = (
    *(
        f"EXE-{number:02}"
        for number in (1, 3, 4, 5, 6, 8, 9, 10, 13, 18, 20, 22, 23, 25, 28, 29, 30, 35, 36, 39)
    ),
    *(f"GEO-{number:02}" for number in range(1, 27) if number not in (17, 18, 19)),
    *(f"BAT-{number:02}" for number in range(1, 22) if number not in (11, 19)),
    *(f"CTX-{number:02}" for number in range(4, 28) if number not in (14, 15, 25)),
    *(f"BKD-{number:02}" for number in range(1, 42) if number not in (20, 21, 22, 23, 24, 25, 30)),
    "CTX-02",
    "CTX-03",
    "CTX-16",
    *(f"OBJ-{number:02}" for number in (1, 2, 3, 5, 6, 7, 8, 9, *range(15, 20), *range(21, 26))),
    "OBJ-12",
    "OBJ-13",
    "OBJ-20",
)
"""Checks of numbers and switches: each of their repairs can be applied by a program."""

_WORDS_INSTEAD = ("write skyrl.", "use a dataset", "raise request_window_tokens", "name the group")


def _name(case: Fails | Passes | NotChecked | Reminds) -> str:
    paths = ",".join(path.rpartition(".")[2] for path in case.changes)
    return f"{case.check}-{case.base}-{paths}"[:70]


@pytest.mark.parametrize("case", FAILING, ids=_name)
def test_a_check_finds_and_its_repair_passes(case: Fails) -> None:
    subject, check = case.subject(), _BY_ID[case.check]
    found = run_preflight(subject, [check]).violations
    matching = [item for item in found if case.says in item.message]
    assert matching, [item.message for item in found]
    assert {item.severity for item in matching} == {case.severity}
    if case.at is not None:
        assert case.at in [item.path for item in matching]

    if case.planned is not None:
        return  # The repair changes the experiment, not the document.
    document = subject.document
    for item in found:
        after = repaired(document, item.repair)
        if after is None:
            assert case.check not in READY_TO_TYPE or item.repair.startswith(_WORDS_INSTEAD), item.repair
            return
        document = after
    left = run_preflight(subject.with_document(document), [check]).violations
    again = left if case.check in READY_TO_TYPE else set(left) & set(found)
    assert not again, [(item.repair, item.message) for item in (*found, *left)]


@pytest.mark.parametrize("case", PASSING, ids=_name)
def test_a_check_passes(case: Passes) -> None:
    report = run_preflight(case.subject(), [_BY_ID[case.check]])
    assert not report.violations, [item.message for item in report.violations]
    # The examples themselves may lack a fact; a row with facts or changes must be decided.
    assert report.passed or (not case.changes and case.planned is None), report.not_checked


@pytest.mark.parametrize("case", NOT_CHECKED, ids=_name)
def test_a_check_says_what_it_needs(case: NotChecked) -> None:
    report = run_preflight(case.subject(), [_BY_ID[case.check]])
    assert not report.passed and not report.violations
    assert [case.needs in item.needs for item in report.not_checked] == [True], report.not_checked


@pytest.mark.parametrize("case", REMINDING, ids=_name)
def test_a_check_adds_to_the_checklist(case: Reminds) -> None:
    report = run_preflight(case.subject(), [_BY_ID[case.check]])
    assert not report.violations
    assert any(case.says in line.message for line in report.checklist), report.checklist


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
