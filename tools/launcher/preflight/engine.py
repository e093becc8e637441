"""Running every check on a subject."""

from collections.abc import Sequence

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.check import Check
from tools.launcher.preflight.findings import (
    UNUSABLE,
    ChecklistLine,
    Finding,
    NotChecked,
    PreflightReport,
    Reminder,
    Violation,
)
from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue
from tools.launcher.preflight.wording import counted

MOST_OF_ONE_CHECK = 100
"""Findings of one check and severity that a report lists."""


def run_preflight(subject: PreflightSubject, checks: Sequence[Check]) -> PreflightReport:
    """Run all checks that can run and return everything they found.

    No finding stops another check. Findings of a check whose cause another one names
    (`Check.implied_by`) are left out, and so is what is found in a section that an error reports as a
    whole (`Finding.section`). The order is by id, then path, whatever the order of
    `checks`.
    """
    found: list[tuple[Check, list[Finding]]] = []
    passed: list[str] = []
    not_checked: list[NotChecked] = []
    checklist: list[ChecklistLine] = []
    for check in checks:
        findings: list[Finding] = []
        try:
            for finding in check.run(subject):
                if isinstance(finding, Reminder):
                    checklist.append(ChecklistLine(id=check.id, message=finding.message))
                else:
                    findings.append(finding)
        except MissingFact as missing:
            not_checked.append(NotChecked(id=check.id, title=check.title, needs=str(missing)))
        except UnreadableValue as unreadable:
            not_checked.append(NotChecked(id=check.id, title=check.title, needs=f"{UNUSABLE}{unreadable}"))
        else:
            if not findings:
                passed.append(check.id)
        if findings:
            found.append((check, _bounded(findings)))

    failed = {
        check.id for check, findings in found if any(finding.severity == "error" for finding in findings)
    }
    sections = {
        finding.section
        for _, findings in found
        for finding in findings
        if finding.section is not None and finding.severity == "error"
    }
    violations = [
        Violation(id=check.id, **finding.model_dump())
        for check, findings in found
        if failed.isdisjoint(check.implied_by)
        for finding in findings
        if finding.section is not None or not _is_inside(finding.path, sections)
    ]
    return PreflightReport(
        violations=tuple(sorted(violations, key=lambda v: (v.id, v.path, v.message))),
        not_checked=tuple(sorted(not_checked, key=lambda n: n.id)),
        passed=tuple(sorted(passed)),
        checklist=tuple(sorted(checklist, key=lambda line: (line.id, line.message))),
    )


def _bounded(findings: list[Finding]) -> list[Finding]:
    """Keep the first findings of each severity; of thousands nobody reads more, and reports stay small."""
    if len(findings) <= MOST_OF_ONE_CHECK:
        return findings
    kept: list[Finding] = []
    for severity in ("error", "warning"):
        alike = [finding for finding in findings if finding.severity == severity]
        kept += alike[:MOST_OF_ONE_CHECK]
        more = len(alike) - MOST_OF_ONE_CHECK
        if more > 0:
            first = alike[MOST_OF_ONE_CHECK]
            message = f"{counted(more, 'more finding')} of this check, the first of them here"
            kept.append(
                first.model_copy(update={"message": message, "repair": "repair the listed ones first"})
            )
    return kept


def _is_inside(path: str, sections: set[str]) -> bool:
    return path in sections or any(path.startswith(f"{section}.") for section in sections)
