"""docs/preflight.md is what the registry says today."""

import difflib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.catalogue.lint_call import lint
from tests.docs.preflight_page import ARGUMENTS, FAULTY, PAGE, page
from tools.launcher.documents.strict_yaml import load_yaml_mapping
from tools.launcher.documents.yaml_writer import dump_yaml
from tools.launcher.preflight.registry import CHECKS
from tools.launcher.preflight.testing.subjects import repaired


def judged(document: Path) -> dict[str, Any]:
    _, printed = lint(*ARGUMENTS[:-1], "--format=json", str(document))
    (entry,) = json.loads(printed)["documents"]
    return entry


def test_the_page_is_up_to_date():
    written, now = PAGE.read_text(encoding="utf-8").splitlines(), page().splitlines()
    changes = list(difflib.unified_diff(written, now, "docs/preflight.md", "the registry", n=0, lineterm=""))
    assert changes[:40] == [], "tools/bazel run //tests/goldens:update"


def test_every_check_has_a_section():
    sections = re.findall(r"^#### (\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(sections) == sorted(check.id for check in CHECKS)


def test_the_faulty_document_has_five_errors_of_five_areas():
    text = PAGE.read_text(encoding="utf-8")
    shown = text[text.index(" ".join(ARGUMENTS)) :].partition("```")[0]
    ids = re.findall(r"^  error: (\S+)", shown, re.MULTILINE)
    area = {check.id: check.area for check in CHECKS}
    assert len(ids) == 5 and len({area[check_id] for check_id in ids}) == 5, ids
    assert FAULTY in text


@pytest.mark.parametrize("order", [1, -1])
def test_typing_the_repairs_makes_the_faulty_document_legal(order, tmp_path):
    errors = [item for item in judged(Path(FAULTY))["violations"] if item["severity"] == "error"]
    document = load_yaml_mapping(Path(FAULTY).read_bytes(), source=FAULTY)
    for item in errors[::order]:
        after = repaired(document, item["repair"])
        assert after is not None, item["repair"]
        document = after
    legal = tmp_path / "legal.yaml"
    legal.write_bytes(dump_yaml(document))
    assert judged(legal)["violations"] == []


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
