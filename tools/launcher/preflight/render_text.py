"""The report as text for people and as JSON values for programs."""

from typing import Any

from tools.launcher.preflight.findings import PreflightReport


def report_text(report: PreflightReport, *, subject: str) -> str:
    """Return the report as lines of text, errors first, ending with a count.

    Args:
        report: what preflight found.
        subject: how the text calls what was judged, such as `//experiments/cat_count:cat_count`.
    """
    lines: list[str] = []
    for violation in (*report.errors, *report.warnings):
        lines += [
            _line(f"{violation.severity}: {violation.id} at {violation.path}"),
            f"    {_line(violation.message)}",
            f"    repair: {_line(violation.repair)}",
        ]
    lines += [
        _line(f"not checked: {item.id} ({item.title}): needs {item.needs}") for item in report.not_checked
    ]
    lines.append(
        f"preflight of {subject}: {_count(len(report.errors), 'error')}, {_count(len(report.warnings), 'warning')}, "
        f"{_count(len(report.passed), 'check')} passed, {len(report.not_checked)} not checked"
    )
    return "\n".join(lines) + "\n"


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
        "not_checked": [item.model_dump() for item in report.not_checked],
        "passed": list(report.passed),
    }


def _line(text: str) -> str:
    """Keep text of a document on one line, and free of terminal codes."""
    return "".join(character if character.isprintable() else " " for character in text)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
