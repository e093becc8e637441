import sys

import pytest

from tools.launcher.preflight.findings import (
    Change,
    ChecklistLine,
    NotChecked,
    PreflightReport,
    Proposal,
    Violation,
)
from tools.launcher.preflight.render_text import report_json, report_text
from tools.launcher.preflight.wording import also, below, delete, listed, set_to, shown

_ERROR = Violation(
    id="BAT-01", path="skyrl.a", message="a=3 is odd", repair="set skyrl.a=4 or 2", severity="error"
)
_WARNING = Violation(
    id="ART-20", path="inputs", message="twice\nthe same", repair="use another", severity="warning"
)
_MISSING = NotChecked(id="BAT-09", title="the dataset fills a batch", needs="a dataset card with rows")
_REPORT = PreflightReport(violations=(_WARNING, _ERROR), not_checked=(_MISSING,), passed=("GEO-01",))
_MUCH = _REPORT.model_copy(
    update={
        "not_checked": (_MISSING, NotChecked(id="BKD-20", title="it is supported", needs="architectures")),
        "checklist": (
            ChecklistLine(id="EXE-12", message="forward the key"),
            ChecklistLine(id="EXE-18", message="one node must be free"),
        ),
    }
)


def test_text_has_errors_first_and_little_after_them():
    assert report_text(_MUCH, subject="//x:y") == (
        "error: BAT-01 at skyrl.a\n"
        "    a=3 is odd\n"
        "    repair: set skyrl.a=4 or 2\n"
        "warning: ART-20 at inputs\n"
        "    twice the same\n"
        "    repair: use another\n"
        "not checked: 2 (BAT-09, BKD-20); checklist: 2 (EXE-12, EXE-18). "
        "In full: build with --//tools/launcher:report_format=json\n"
        "preflight of //x:y: 1 error (BAT-01), 1 warning (ART-20), 1 check passed, 2 not checked\n"
    )


def test_a_clean_report_is_one_line():
    clean = PreflightReport(violations=(), not_checked=(), passed=("GEO-01", "GEO-02"))
    assert report_text(clean, subject="d.yaml") == (
        "preflight of d.yaml: 0 errors, 0 warnings, 2 checks passed, 0 not checked\n"
    )
    assert report_json(clean) == {
        "verdict": "accept",
        "violations": [],
        "proposals": [],
        "no_proposal": None,
        "not_checked": [],
        "checklist": [],
        "passed": ["GEO-01", "GEO-02"],
    }


def test_json_keeps_the_order_of_the_report():
    content = report_json(_REPORT)
    assert content["verdict"] == "reject"
    assert [item["id"] for item in content["violations"]] == ["ART-20", "BAT-01"]
    assert content["violations"][1] == {
        "id": "BAT-01",
        "severity": "error",
        "path": "skyrl.a",
        "message": "a=3 is odd",
        "repair": "set skyrl.a=4 or 2",
    }
    assert content["not_checked"] == [
        {"id": "BAT-09", "title": "the dataset fills a batch", "needs": "a dataset card with rows"}
    ]


_PROPOSAL = Proposal(
    changes=(Change(path="skyrl.a", old="3", new=4), Change(path="skyrl.b", old="false", new=True)),
    gpus=16,
    reason="2 changes, 16 GPUs",
    remaining=(),
    new_warnings=(),
    remaining_warnings=("ART-20",),
    notes=("ART-20 remains: once\nmore",),
    repair="set skyrl.a=4 and set skyrl.b=true",
    role_plan="skyrl:\n  a: 4\n  b: true",
)


def test_proposals_stand_after_the_violations_and_the_first_is_ready_to_paste():
    report = PreflightReport(
        violations=(_ERROR,), not_checked=(), passed=(), proposals=(_PROPOSAL, _PROPOSAL)
    )
    assert report_text(report, subject="d.yaml") == (
        "error: BAT-01 at skyrl.a\n"
        "    a=3 is odd\n"
        "    repair: set skyrl.a=4 or 2\n"
        "proposal 1 of 2: 2 changes, 16 GPUs\n"
        "    skyrl.a: 3 -> 4\n"
        "    skyrl.b: false -> true\n"
        "    ART-20 remains: once more\n"
        "        skyrl:\n"
        "          a: 4\n"
        "          b: true\n"
        "proposal 2 of 2: 2 changes, 16 GPUs (a 3 -> 4, b false -> true)\n"
        "    ART-20 remains: once more\n"
        "preflight of d.yaml: 1 error (BAT-01), 0 warnings, 0 checks passed, 0 not checked\n"
    )
    content, _ = report_json(report)["proposals"]
    assert content["changes"][0] == {"path": "skyrl.a", "old": "3", "new": 4}
    assert content["role_plan"] == "skyrl:\n  a: 4\n  b: true"


def test_a_search_that_found_nothing_says_why():
    report = PreflightReport(violations=(_ERROR,), not_checked=(), passed=(), no_proposal="it is\nso")
    assert "\nno proposal: it is so\n" in report_text(report, subject="d.yaml")
    assert report_json(report)["no_proposal"] == "it is\nso"


def test_only_errors_reject():
    assert (
        report_json(PreflightReport(violations=(_WARNING,), not_checked=(), passed=()))["verdict"] == "accept"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, "null"),
        (1.0, "1.0"),
        ("a\nb", r"'a\nb'"),
        ([1], "a list"),
        ({}, "a mapping"),
        ("x" * 99, "'" + "x" * 79 + "…"),
    ],
)
def test_values_are_shown_on_one_short_line(value, text):
    assert shown(value) == text


def test_an_integer_too_long_for_text_is_shown():
    assert shown(16**5000) == "an integer of 20001 bits"


def test_repairs_are_ready_to_type():
    assert set_to("a.b", 4, 2) == "set a.b=4 or 2"
    assert set_to("a", True, False) == "set a=true or false"
    assert also(set_to("a", 1), set_to("b", 2)) == "set a=1 and set b=2"
    assert delete("a") == "delete a"


def test_long_lists_and_odd_keys_are_tamed():
    assert listed(range(3)) == "0, 1, 2"
    assert listed(range(14)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more"
    assert below("a", "b") == "a.b" and below("a", "b\nc") == r"a.'b\nc'"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
