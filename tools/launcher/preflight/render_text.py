"""The report as text for people and as JSON values for programs."""

from collections.abc import Sequence
from typing import Any

from tools.launcher.documents.printable import printable
from tools.launcher.preflight.findings import PreflightReport, Proposal, Violation
from tools.launcher.preflight.wording import counted, listed, shown

_IN_FULL = "build with --//tools/launcher:report_format=json"


def report_text(report: PreflightReport, *, subject: str) -> str:
    """Return the report of a refusal as lines of text: errors first, then legal settings, ending with a count.

    What no error depends on is one line, so that the errors stay on the screen.

    Args:
        report: what preflight found.
        subject: how the text calls what was judged, such as `//experiments/cat_count:cat_count`.
    """
    lines = [line for violation in (*report.errors, *report.warnings) for line in _violation_lines(violation)]
    lines += proposal_lines(report)
    lines += folded_lines(report, in_full=_IN_FULL)
    lines.append(
        f"preflight of {subject}: {_counted_ids(report.errors, 'error')}, {_counted_ids(report.warnings, 'warning')}, "
        f"{counted(len(report.passed), 'check')} passed, {len(report.not_checked)} not checked"
    )
    return "\n".join(lines) + "\n"


def warnings_text(report: PreflightReport) -> str:
    """Return the warnings as lines of text, for a report without errors; "" if there are none."""
    return "".join(f"{line}\n" for violation in report.warnings for line in _violation_lines(violation))


def folded_lines(report: PreflightReport, *, in_full: str) -> list[str]:
    """Return what was not checked and the checklist as one line with their ids, since there are errors to read.

    Args:
        report: what preflight found.
        in_full: how to get them in full.
    """
    parts = [
        f"{title}: {len(items)} ({', '.join(dict.fromkeys(item.id for item in items))})"
        for title, items in (("not checked", report.not_checked), ("checklist", report.checklist))
        if items
    ]
    return [f"{'; '.join(parts)}. In full: {in_full}"] if parts else []


def proposal_lines(report: PreflightReport) -> list[str]:
    """Return the legal settings of the report as lines of text; none if none were searched.

    The first has its role plan, ready to paste; each of the others is a line with its changes.
    """
    lines: list[str] = []
    for number, proposal in enumerate(report.proposals, 1):
        title = f"proposal {number} of {len(report.proposals)}: {proposal.reason}"
        lines += _whole(title, proposal) if number == 1 else _changes(title, proposal)
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


def _whole(title: str, proposal: Proposal) -> list[str]:
    return [
        printable(title),
        *(
            printable(f"    {change.path}: {change.old} -> {shown(change.new)}")
            for change in proposal.changes
        ),
        *(printable(f"    {note}") for note in proposal.notes),
        *(f"        {printable(line)}" for line in proposal.role_plan.splitlines()),
    ]


def _changes(title: str, proposal: Proposal) -> list[str]:
    changes = (
        f"{change.path.rpartition('.')[2]} {change.old} -> {shown(change.new)}" for change in proposal.changes
    )
    return [
        printable(f"{title} ({', '.join(changes)})"),
        *(printable(f"    {note}") for note in proposal.notes),
    ]
