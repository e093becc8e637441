"""The registry is complete, and every check has a case that fails and one that passes."""

import sys
from collections import Counter

import pytest

from tools.launcher.preflight.engine import run_preflight
from tools.launcher.preflight.registry import CHECKS
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.testing.cases.all_cases import FAILING, NOT_CHECKED, PASSING, REMINDING
from tools.launcher.preflight.testing.subjects import document

_AREA_OF_PREFIX = {
    "ART": "artifacts",
    "GEO": "geometry",
    "BAT": "batches",
    "BKD": "backend",
    "CTX": "context",
    "OBJ": "objective",
    "EXE": "execution",
    "DOC": "document",
}
_IDS = [check.id for check in CHECKS]
_ROWS_OF_CATALOGUE = {"ART": 20, "GEO": 26, "BAT": 21, "BKD": 29, "CTX": 24, "OBJ": 19, "EXE": 26}
"""Higher numbers were added here."""

# A finished experiment must still build: whether it is finished is asked at the launch.
_DECIDED_AT_LAUNCH = {"ART-13"}


def test_ids_are_unique() -> None:
    assert [check_id for check_id, count in Counter(_IDS).items() if count > 1] == []


@pytest.mark.parametrize("check", CHECKS, ids=_IDS)
def test_a_check_is_documented(check) -> None:
    prefix, _, number = check.id.partition("-")
    assert _AREA_OF_PREFIX[prefix] == check.area
    assert number.isdecimal() and len(number) == 2
    assert check.inputs and len(set(check.inputs)) == len(check.inputs)
    for text in (check.title, check.rule, check.prevents, check.source):
        assert text.strip() == text and text
    assert check.prevents.endswith(".")
    assert set(check.implied_by) <= set(_IDS) - {check.id}


def test_every_row_of_the_catalogue_is_a_check() -> None:
    assert sum(_ROWS_OF_CATALOGUE.values()) == 165
    rows = {
        f"{prefix}-{number:02}"
        for prefix, count in _ROWS_OF_CATALOGUE.items()
        for number in range(1, count + 1)
    }
    assert sorted(rows - set(_IDS)) == []


def test_every_check_has_a_failing_and_a_passing_case() -> None:
    failing, passing = ({case.check for case in table} for table in (FAILING, PASSING))
    assert sorted(set(_IDS) - failing - _DECIDED_AT_LAUNCH) == [], "no Fails row in testing/cases/<area>.py"
    assert sorted(set(_IDS) - passing) == [], "no Passes row in testing/cases/<area>.py"
    assert {case.check for case in REMINDING} >= _DECIDED_AT_LAUNCH


def test_every_card_that_a_check_reads_can_be_missing() -> None:
    """A check that reads a card or the ledger says so in `inputs`."""
    words = {"model card": "model", "dataset card": "dataset", "cluster card": "cluster", "ledger": "ledger"}
    by_id = {check.id: check for check in CHECKS}
    for case in NOT_CHECKED:
        for word, name in words.items():
            if word in case.needs:
                assert name in by_id[case.check].inputs, (case.check, name)


@pytest.mark.parametrize("check", CHECKS, ids=_IDS)
def test_a_check_that_reads_the_manifest_says_so(check) -> None:
    for base in ("smoke", "moe"):
        report = run_preflight(PreflightSubject(document=document(base)), [check])
        if any("a runtime manifest" in item.needs for item in report.not_checked):
            assert "runtime" in check.inputs


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
