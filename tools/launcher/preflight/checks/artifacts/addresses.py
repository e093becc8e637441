"""Names and versions of artifacts."""

import re
from collections.abc import Iterator

from tools.launcher.graph.names import artifact_name_problem
from tools.launcher.graph.versions import near_version, version_problem
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import shown

_VERSION_AT_END = re.compile(r"^(.*?)-(\d[\d.]*|(?:[a-z0-9_]+-)?dev)$", re.DOTALL)


def document_address(subject: PreflightSubject) -> tuple[str, str]:
    """Return (name, version) of the run that a document describes.

    `run.id` is `<name>-<version>`, and both parts may hold dashes. The output path
    `.../<name>/<version>/exports` says where the version begins; without it, a date or `dev` does.

    Raises:
        UnreadableValue: if `run.id` is no text.
    """
    identifier = subject.text("run.id")
    export_root = subject.get("artifacts.export_root")
    components = export_root.rstrip("/").split("/") if isinstance(export_root, str) else []
    candidate = components[-2] if len(components) > 1 and components[-1] == "exports" else ""
    if candidate and identifier.endswith(f"-{candidate}"):
        return identifier.removesuffix(f"-{candidate}"), candidate
    match = _VERSION_AT_END.match(identifier)
    if match is not None:
        return match[1], match[2]
    name, _, version = identifier.rpartition("-")
    return name, version


def _addresses(subject: PreflightSubject) -> Iterator[tuple[str, str, str]]:
    """Yield (place, name, version) of everything this subject publishes or names."""
    if subject.planned is not None:
        for step in subject.planned.graph.steps:
            yield step.address, step.name, step.version
        return
    yield ("run.id", *document_address(subject))


@check(
    "ART-01",
    "artifact names are plain paths",
    area="artifacts",
    rule="name is not empty; no URL scheme, no '..', no slash at an end, no empty component",
    prevents="The output path escapes its root or doubles a slash, and the record is written where nobody looks.",
    inputs=("spec",),
    source="catalogue ART-01 (#1); Marin refuses it at build time",
)
def art_01(subject: PreflightSubject) -> Iterator[Finding]:
    for place, name, _ in _addresses(subject):
        problem = artifact_name_problem(name)
        if problem is not None:
            yield Finding(
                path=place,
                message=f"the artifact name {shown(name)} {problem}",
                repair="write a plain path such as team/experiment",
            )


@check(
    "ART-02",
    "versions are calendar dates or dev",
    area="artifacts",
    rule="version is YYYY.MM.DD, YYYY.MM.DD.N, dev or <label>-dev, and the date exists",
    prevents="A typing error such as 2026.13.45 becomes a permanent version that sorts wrongly.",
    inputs=("spec",),
    source="catalogue ART-02 (#2); Marin checks the pattern, nobody the calendar",
)
def art_02(subject: PreflightSubject) -> Iterator[Finding]:
    for place, _, version in _addresses(subject):
        problem = version_problem(version)
        if problem is not None:
            yield Finding(
                path=place,
                message=f"version {shown(version)}{' ' if problem.startswith('is ') else ': '}{problem}",
                repair=f"write {near_version(version) or 'a real date such as 2026.01.15'}, or dev for local work; "
                "the version stands in the target, that of an input in its card or export",
            )


CHECKS = (art_01, art_02)
