"""The report as text for people and as JSON values for programs."""

from collections.abc import Sequence
from typing import Any

from tools.launcher.documents.printable import printable
from tools.launcher.preflight.findings import PreflightReport, Proposal, Violation
from tools.launcher.preflight.wording import counted, listed, shown


def report_text(report: PreflightReport, *, subject: str) -> str:
    """Return the report as lines of text, errors first, then legal settings to paste, ending with a count.

    Args:
        report: what preflight found.
        subject: how the text calls what was judged, such as `//experiments/cat_count:cat_count`.
    """
    lines = [line for violation in (*report.errors, *report.warnings) for line in _violation_lines(violation)]
    lines += proposal_lines(report)
    lines += [
        printable(f"not checked: {item.id} ({item.title}): needs {item.needs}") for item in report.not_checked
    ]
    lines += [printable(f"checklist: {item.id}: {item.message}") for item in report.checklist]
    lines.append(
        f"preflight of {subject}: {_counted_ids(report.errors, 'error')}, {_counted_ids(report.warnings, 'warning')}, "
        f"{counted(len(report.passed), 'check')} passed, {len(report.not_checked)} not checked"
    )
    return "\n".join(lines) + "\n"


def warnings_text(report: PreflightReport) -> str:
    """Return the warnings as lines of text, for a report without errors; "" if there are none."""
    return "".join(f"{line}\n" for violation in report.warnings for line in _violation_lines(violation))


def proposal_lines(report: PreflightReport) -> list[str]:
    """Return the legal settings of the report as lines of text, ready to paste; none if none were searched."""
    lines: list[str] = []
    for number, proposal in enumerate(report.proposals, 1):
        lines += _proposal_lines(f"proposal {number} of {len(report.proposals)}", proposal)
    if report.no_proposal is not None:
        lines.append(printable(f"no proposal: {report.no_proposal}"))
    return lines


def report_json(report: PreflightReport) -> dict[str, Any]:
    """Return the report as JSON values, in the report's order."""
    return {
        "verdict": "reject" if report.errors else "accept",
        "violations": [
            {
                "id": item.id,
                "severity": item.severity,
                "path": item.path,
                "message": item.message,
                "repair": item.repair,
            }
            for item in report.violations
        ],
        "proposals": [item.model_dump(mode="json") for item in report.proposals],
        "no_proposal": report.no_proposal,
        "not_checked": [item.model_dump() for item in report.not_checked],
        "checklist": [item.model_dump() for item in report.checklist],
        "passed": list(report.passed),
    }


def _counted_ids(violations: Sequence[Violation], word: str) -> str:
    """The count and the ids, since what is told first has left the terminal when this line comes."""
    ids = listed(dict.fromkeys(violation.id for violation in violations))
    return counted(len(violations), word) + (f" ({ids})" if ids else "")


def _violation_lines(violation: Violation) -> list[str]:
    return [
        printable(f"{violation.severity}: {violation.id} at {violation.path}"),
        f"    {printable(violation.message)}",
        f"    repair: {printable(violation.repair)}",
    ]


def _proposal_lines(title: str, proposal: Proposal) -> list[str]:
    return [
        printable(f"{title}: {proposal.reason}"),
        *(
            printable(f"    {change.path}: {change.old} -> {shown(change.new)}")
            for change in proposal.changes
        ),
        *(f"        {printable(line)}" for line in proposal.role_plan.splitlines()),
    ]
