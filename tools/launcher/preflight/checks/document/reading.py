"""Whether there is a document at all."""

from collections.abc import Iterator

from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding, PreflightReport, Violation
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import set_to, shown


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


@check(
    "DOC-10",
    "unquoted values read alike everywhere",
    area="document",
    rule="no unquoted yes, no, on, off, 86_400, 0x1, 021, 0b1000 or 1:00:00: YAML 1.1, which the launcher reads, and "
    "YAML 1.2 have different values there. Keys and quoted text are not judged",
    prevents="The launcher runs another value than an editor, a reviewer or a program with YAML 1.2 sees.",
    inputs=("spec",),
    source="cases n202, n246; nobody checks it",
    implied_by=("DOC-01",),
)
def doc_10(subject: PreflightSubject) -> Iterator[Finding]:
    for reading in subject.two_readings:
        quoted = f'"{reading.text}"'
        values = (quoted,) if isinstance(reading.value, str) else (reading.value, quoted)
        if _has_text(subject, reading.path):
            values = values[::-1]
        yield Finding(
            path=reading.path,
            message=f"{reading.path or 'the value'} is {reading.text} without quotes. The launcher reads YAML 1.1, so it "
            f"has {shown(reading.value)}; a reader of YAML 1.2 has another value",
            repair=set_to(reading.path, *values),
            severity="warning",
        )


def _has_text(subject: PreflightSubject, path: str) -> bool:
    """Whether the runtime wants text at a path."""
    if subject.runtime is None:
        return False
    fields = subject.runtime.document_fields or {}
    mapping = fields.get(path.rpartition(".")[0])
    field, key = fields.get(path), subject.runtime.recipe_keys.get(path.removeprefix("skyrl."))
    return (
        (mapping is not None and mapping.type == "text_map")
        or (field is not None and field.type == "str")
        or (key is not None and key.type == "str")
    )


CHECKS = (doc_01, doc_10)
