"""Whether there is a document at all."""

from collections.abc import Iterator

from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding, PreflightReport, Violation
from tools.launcher.preflight.subject import PreflightSubject


@check(
    "DOC-01",
    "the document can be read",
    area="document",
    rule="one YAML mapping in UTF-8, within the limits of size, depth and values, each key once and text",
    prevents="The launcher stops at a parser's message, reads another value than was meant, or never ends.",
    inputs=("spec",),
    source="contract launch-document.md §1, cases n218, n220, n226, n244; the launcher",
)
def doc_01(subject: PreflightSubject) -> Iterator[Finding]:
    if not subject.document:
        yield Finding(path="", message="the document is an empty mapping", repair="give a launch document")


def unreadable(error: DocumentError) -> PreflightReport:
    """Return the report on a document that the reader refused: nothing else can be checked."""
    where = ""
    if error.place:
        line, _, column = error.place.partition(":")
        where = f"line {line}, column {column}: "
    violation = Violation(
        id=doc_01.id,
        severity="error",
        path="",
        message=f"{where}{error.problem}",
        repair=f"{error.fix[:1].lower()}{error.fix[1:]}",
    )
    return PreflightReport(violations=(violation,), not_checked=(), passed=())


CHECKS = (doc_01,)
