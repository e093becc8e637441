"""The one way to judge a document: every check, and what would be legal instead."""

from collections.abc import Sequence

from tools.launcher.preflight.check import Check
from tools.launcher.preflight.engine import run_preflight
from tools.launcher.preflight.findings import PreflightReport
from tools.launcher.preflight.launcher_reading import texts_as_read
from tools.launcher.preflight.repair_search.search import propose
from tools.launcher.preflight.subject import PreflightSubject


def judge(subject: PreflightSubject, checks: Sequence[Check]) -> PreflightReport:
    """Run all checks; for refused geometry or batches add the nearest legal settings.

    The report of an accepted document is that of `run_preflight`, and costs no search.
    """
    report = run_preflight(subject, _as_read(subject, checks))
    found = propose(subject, checks, report)
    if not found.proposals and found.why_none is None:
        return report
    return report.model_copy(update={"proposals": found.proposals, "no_proposal": found.why_none})


def _as_read(subject: PreflightSubject, checks: Sequence[Check]) -> Sequence[Check]:
    """Return the checks so that what the launcher converts to text is judged as that text.

    Only the checks of the document itself see what is written; they say that it is converted.
    """
    read = subject if subject.runtime is None else texts_as_read(subject, subject.runtime)
    if read is subject:
        return checks

    def on_text(check: Check) -> Check:
        if check.area == "document":
            return check
        return check.model_copy(update={"run": lambda _written: check.run(read)})

    return [on_text(check) for check in checks]
