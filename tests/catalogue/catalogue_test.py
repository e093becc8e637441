"""Every case of the catalogue: the verdict, the ids that name its cause, and that the files are sound."""

import sys
from typing import Any

import pytest

from tests.catalogue.catalogue_case import CARDS, CatalogueCase, case_files, load_case
from tests.catalogue.lint_call import judged
from tools.launcher.preflight.registry import CHECKS
from tools.launcher.preflight.testing.cases.all_cases import FAILING, REMINDING

FILES = case_files()
NAMES = [path.stem for path in FILES]
IDS = {check.id for check in CHECKS}


def said(entry: dict[str, Any]) -> str:
    """The findings, for the message of a failing test."""
    return "\n".join(
        f"{item['severity']} {item['id']} at {item['path']}: {item['message']}"
        for item in entry["violations"]
    )


def ids_of(entry: dict[str, Any], severity: str) -> set[str]:
    return {item["id"] for item in entry["violations"] if item["severity"] == severity}


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_case_gets_its_verdict_and_its_ids(path, tmp_path):
    case = load_case(path)
    entry = judged(case, tmp_path)
    assert case.expect in ("doubtful", entry["verdict"]), f"{case.what}\n{said(entry)}"
    errors, warnings = ids_of(entry, "error"), ids_of(entry, "warning")
    missing = {
        "errors": set(case.errors) - errors,
        "warnings": set(case.warnings) - warnings,
        "finds": set(case.finds) - errors - warnings,
        "absent": set(case.absent) & (errors | warnings),
        "not_checked": set(case.not_checked) - {item["id"] for item in entry["not_checked"]},
        "checklist": set(case.checklist) - {item["id"] for item in entry["checklist"]},
    }
    assert not any(missing.values()), f"{case.what}\n{missing}\n{said(entry)}"


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem) for path in FILES if load_case(path).without_cards]
)
def test_a_case_without_its_cards_is_not_guessed_at(path, tmp_path):
    case = load_case(path)
    entry = judged(case, tmp_path, with_cards=False)
    assert case.without_cards in ("doubtful", entry["verdict"]), said(entry)


def test_names_are_unique():
    assert len(set(NAMES)) == len(NAMES)


def test_ids_exist():
    unknown = {path.stem: sorted(set(load_case(path).ids) - IDS) for path in FILES}
    assert {name: ids for name, ids in unknown.items() if ids} == {}


def test_every_check_is_seen_at_work():
    """By a case of the catalogue, or by a row of the tables that every check has."""
    here = {check_id for path in FILES for check_id in load_case(path).hits}
    tables = {row.check for row in (*FAILING, *REMINDING)}
    assert IDS - here - tables == set()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"expects": "accept"}, "expects"),
        ({"expect": "reject"}, "needs `errors`"),
        ({"expect": "accept", "errors": ["GEO-01"]}, "has no `errors`"),
        ({"expect": "doubtful"}, "needs `finds`"),
        ({"expect": "accept", "silent": "so"}, "`silent` is for"),
        ({"expect": "accept", "text": "a: 1", "changes": {"run.id": "x"}}, "is the whole document"),
        ({"expect": "accept", "edits": [{"find": "a", "write": "b"}], "delete": ["run"]}, "give one"),
        ({"expect": "accept", "without_cards": "accept"}, "needs cards"),
        ({"expect": "accept", "cards": {"disk": {}}}, "disk"),
        ({"expect": "accept", "base": "large"}, "base"),
    ],
)
def test_a_case_that_is_not_sound_is_refused(content, problem):
    with pytest.raises(ValueError, match=problem):
        CatalogueCase.model_validate({"source": "here", "what": "a trial"} | content)


def test_every_card_is_used():
    used = {
        f"{kind}.{facts}.yaml"
        for path in FILES
        for kind, facts in load_case(path).cards.model_dump().items()
        if isinstance(facts, str) and "/" not in facts
    }
    assert {path.name for path in CARDS.iterdir()} == used


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
