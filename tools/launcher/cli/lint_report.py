"""What `lint` prints: text for people, JSON for programs, SARIF for code review."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from tools.launcher.cli.lint_inputs import STANDARD_INPUT, Chosen
from tools.launcher.documents.places import Places
from tools.launcher.documents.printable import printable
from tools.launcher.preflight.check import Check
from tools.launcher.preflight.findings import PreflightReport, Violation
from tools.launcher.preflight.registry import CHECKS
from tools.launcher.preflight.render_text import folded_lines, proposal_lines, report_json
from tools.launcher.preflight.wording import counted

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_STYLES = {"error": "red", "warning": "yellow", "reject": "bold red", "accept": "bold green"}

_FLAGS = {
    "model": "model_card",
    "cluster": "cluster_card",
    "train_dataset": "dataset_card",
    "validation_dataset": "dataset_card",
}
"""Kind of card -> the flag that takes it."""


class Judged(NamedTuple):
    """A document with its verdict."""

    path: str
    """As given on the command line, as text."""
    data: bytes
    report: PreflightReport
    chosen: Chosen | None
    """What it was judged by; None for a document that cannot be read."""

    @property
    def verdict(self) -> str:
        return "reject" if self.report.errors else "accept"

    def places(self) -> Callable[[str], tuple[int, int] | None]:
        """Return a function from a path of the document to its line and column."""
        if self.chosen is None or not self.report.violations:
            return lambda path: None
        return Places(self.data).find


class _Line(NamedTuple):
    text: str
    style: str = ""


def write_text(judged: Iterable[Judged]) -> int:
    """Write one paragraph for each document, then a count. Return how many were rejected."""
    write = _coloured if sys.stdout.isatty() else _plain
    documents = rejected = errors = warnings = 0
    for each in judged:
        documents += 1
        rejected += each.verdict == "reject"
        errors += len(each.report.errors)
        warnings += len(each.report.warnings)
        for line in _document_lines(each):
            write(line)
    accepted = documents - rejected
    write(
        _Line(
            f"{counted(documents, 'document')}: {accepted} accepted, {rejected} rejected; "
            f"{counted(errors, 'error')}, {counted(warnings, 'warning')}",
            _STYLES["reject" if rejected else "accept"],
        )
    )
    return rejected


def write_json(judged: Iterable[Judged]) -> int:
    """Write `{"documents": [...]}`. Return how many were rejected."""
    rejected = 0
    separator = '{"documents": ['
    for each in judged:
        rejected += each.verdict == "reject"
        _write(f"{separator}\n{json.dumps(_json_of(each), ensure_ascii=False, allow_nan=False)}")
        separator = ","
    _write("\n]}\n")
    return rejected


def write_sarif(judged: Iterable[Judged]) -> int:
    """Write a SARIF 2.1.0 log. Return how many documents were rejected."""
    rejected = 0
    results: list[dict[str, Any]] = []
    for each in judged:
        rejected += each.verdict == "reject"
        places = each.places()
        results += (_sarif_result(each, violation, places) for violation in each.report.violations)
    log = {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "slipway-lint", "rules": [_sarif_rule(check) for check in CHECKS]}
                },
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }
    _write(json.dumps(log, ensure_ascii=False, allow_nan=False) + "\n")
    return rejected


REPORTS: dict[str, Callable[[Iterable[Judged]], int]] = {
    "text": write_text,
    "json": write_json,
    "sarif": write_sarif,
}
"""Name of a format -> what writes it."""


def _document_lines(judged: Judged) -> Iterator[_Line]:
    report = judged.report
    yield _Line(
        f"{printable(judged.path)}: {judged.verdict}, {counted(len(report.errors), 'error')}, "
        f"{counted(len(report.warnings), 'warning')}",
        _STYLES[judged.verdict],
    )
    places = judged.places()
    for violation in (*report.errors, *report.warnings):
        at = f" at {violation.path}" if violation.path else ""
        place = places(violation.path)
        line = f" (line {place[0]})" if place is not None else ""
        yield _Line(f"  {violation.severity}: {violation.id}{at}{line}", _STYLES[violation.severity])
        yield _Line(f"      {violation.message}")
        yield _Line(f"      repair: {violation.repair}")
    for text in proposal_lines(report):
        yield _Line(f"  {text}")
    if report.errors:
        for text in folded_lines(report, in_full="--format=json"):
            yield _Line(f"  {text}", "dim")
    else:
        yield from _open_lines(report)
    if judged.chosen is not None:
        runtime = judged.chosen.runtime
        yield _Line(f"  runtime manifest: {_named(runtime.file)}: {runtime.why}", "dim")
        for kind, card in judged.chosen.cards.items():
            named = f"  {kind.replace('_', ' ')} card: {_named(card.file)}: {card.why}"
            if card.file:
                yield _Line(named, "dim")
            elif not report.errors:
                yield _Line(f"{named}. Give one: --{_FLAGS[kind]}=FILE", "dim")
    yield _Line(f"  {counted(len(report.passed), 'check')} passed", "dim")
    yield _Line("")


def _open_lines(report: PreflightReport) -> Iterator[_Line]:
    """What is left to do or to find out for an accepted document."""
    for item in report.checklist:
        yield _Line(f"  checklist: {item.id}: {item.message}")
    needs: dict[str, list[str]] = {}
    for missing in report.not_checked:
        needs.setdefault(missing.needs, []).append(missing.id)
    for need, ids in sorted(needs.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        yield _Line(f"  not checked: needs {need}: {', '.join(ids)}", "dim")


def _named(file: str) -> str:
    return file or "none"


def _json_of(judged: Judged) -> dict[str, Any]:
    content = report_json(judged.report)
    entry = {"path": judged.path, **content}
    if judged.chosen is not None:
        runtime = judged.chosen.runtime
        manifest = runtime.item
        entry["runtime"] = {
            "name": None if manifest is None else manifest.name,
            "commit": None if manifest is None else manifest.commit,
            "file": runtime.file or None,
            "why": runtime.why,
        }
        entry["cards"] = {
            kind: {"file": card.file or None, "why": card.why} for kind, card in judged.chosen.cards.items()
        }
    return entry


def _sarif_rule(check: Check) -> dict[str, Any]:
    return {
        "id": check.id,
        "shortDescription": {"text": check.title},
        "fullDescription": {"text": check.rule},
        "help": {"text": f"Rule: {check.rule}\nPrevents: {check.prevents}\nSource: {check.source}"},
        "properties": {"tags": [check.area]},
    }


_RULE_INDEX = {check.id: index for index, check in enumerate(CHECKS)}


def _sarif_result(
    judged: Judged, violation: Violation, places: Callable[[str], tuple[int, int] | None]
) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(judged.path)}}
    place = places(violation.path)
    if place is not None:
        physical["region"] = {"startLine": place[0], "startColumn": place[1]}
    location: dict[str, Any] = {"physicalLocation": physical}
    if violation.path:
        location["logicalLocations"] = [{"fullyQualifiedName": violation.path}]
    return {
        "ruleId": violation.id,
        "ruleIndex": _RULE_INDEX[violation.id],
        "level": violation.severity,
        "message": {"text": f"{violation.message}. Repair: {violation.repair}"},
        "locations": [location],
    }


def _uri(path: str) -> str:
    if path == STANDARD_INPUT:
        return "stdin:"
    quoted = quote(path)
    return f"file://{quoted}" if path.startswith("/") else quoted.replace(":", "%3A")


def _write(text: str) -> None:
    # JSON is UTF-8 whatever the user's locale; what no encoding can hold becomes "?".
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def _plain(line: _Line) -> None:
    sys.stdout.write(f"{printable(line.text)}\n")


def _coloured(line: _Line) -> None:
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False).print(Text(printable(line.text), style=line.style), soft_wrap=True)
