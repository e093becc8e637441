"""A repair of geometry, batches or back end breaks nothing else: judged by every check."""

import sys

import pytest

from tools.launcher.preflight.engine import run_preflight
from tools.launcher.preflight.registry import CHECKS
from tools.launcher.preflight.testing.cases.all_cases import FAILING
from tools.launcher.preflight.testing.cases.case import Fails
from tools.launcher.preflight.testing.subjects import repaired

_AREAS = {check.id for check in CHECKS if check.area in ("geometry", "batches", "backend")}


def _name(case: Fails) -> str:
    paths = ",".join(path.rpartition(".")[2] for path in case.changes)
    return f"{case.check}-{case.base}-{paths}"[:70]


# The repair of a row with a typed origin changes the experiment, not the document.
@pytest.mark.parametrize(
    "case", [case for case in FAILING if case.check in _AREAS and case.planned is None], ids=_name
)
def test_no_repair_adds_an_error(case: Fails) -> None:
    subject = case.subject()
    before = run_preflight(subject, CHECKS)
    for violation in before.violations:
        after = repaired(subject.document, violation.repair) if violation.id == case.check else None
        if after is not None:
            left = run_preflight(subject.with_document(after), CHECKS).errors
            assert len(left) <= len(before.errors), (violation.repair, [item.message for item in left])


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
