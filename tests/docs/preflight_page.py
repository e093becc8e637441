"""docs/preflight.md: the template, the registry, and what the checks say when they are run."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.catalogue.lint_call import lint
from tools.launcher.preflight.check import Check
from tools.launcher.preflight.engine import run_preflight
from tools.launcher.preflight.registry import CHECKS
from tools.launcher.preflight.testing.cases.all_cases import FAILING, REMINDING
from tools.launcher.preflight.testing.cases.case import Fails

PAGE = Path("docs/preflight.md")
TEMPLATE = Path("docs/preflight.template")
FAULTY = "docs/examples/five_faults.yaml"
ARGUMENTS = ("--model_card=third_party/models/qwen3_0_6b.yaml", FAULTY)

_AREAS = {
    "artifacts": "Artifacts and identity",
    "geometry": "Geometry of roles, engines and nodes",
    "batches": "Batches",
    "backend": "Strategy, backend, runtime, memory",
    "context": "Tokens, model geometry, sampling",
    "objective": "Objective, schedule, recipe keys",
    "execution": "Execution, storage, environment",
    "document": "The document itself",
}
_INPUTS = {
    "spec": "document",
    "model": "model card",
    "dataset": "dataset card",
    "cluster": "cluster card",
    "runtime": "runtime manifest",
    "ledger": "version ledger",
}
_MARKUP = re.compile(r"[*<\[]")
"""What Markdown would not show as it stands; `_` inside a word and `>` behind one are shown."""


def page() -> str:
    """Return the text of docs/preflight.md. The working directory is the checkout, or runfiles."""
    _, printed = lint(*ARGUMENTS)
    texts = {
        "@count@": str(len(CHECKS)),
        "@arguments@": " ".join(ARGUMENTS),
        "@lint@": printed,
        "@checks@\n": "\n".join(_checks()) + "\n",
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for mark, content in texts.items():
        text = text.replace(mark, content)
    return text


def _checks() -> Iterator[str]:
    by_area = {
        area: sorted((c for c in CHECKS if c.area == area), key=lambda check: check.id) for area in _AREAS
    }
    for area, title in _AREAS.items():
        yield f"* [{title}](#{_anchor(title)}): {len(by_area[area])}"
    for area, title in _AREAS.items():
        yield f"\n### {title}\n"
        yield "| check | it sees to it that | finding |\n|---|---|---|"
        for check in by_area[area]:
            name = check.id.lower()
            yield f"| [{check.id}](#{name}) | {_shown(check.title).replace('|', '\\|')} | {_severity(check)} |"
        for check in by_area[area]:
            yield from _entry(check)


def _entry(check: Check) -> Iterator[str]:
    yield f"\n#### {check.id}\n"
    yield f"**{_shown(_capitalised(check.title))}.** {_sentence(check.prevents)}\n"
    yield f"* Rule: {_sentence(check.rule)}"
    yield f"* Reads: {', '.join(_INPUTS[name] for name in check.inputs)}. Source: {_sentence(check.source)}"
    yield f"\n```text\n{_example(check)}\n```"


def _example(check: Check) -> str:
    case = next((case for case in FAILING if case.check == check.id), None)
    if case is not None:
        return _finding(check, case)
    reminder = next((case for case in REMINDING if case.check == check.id), None)
    if reminder is None:
        raise SystemExit(
            f"{check.id} has no row in tools/launcher/preflight/testing/cases. Write one that fails"
        )
    (line, *_) = run_preflight(reminder.subject(), [check]).checklist
    return f"checklist: {line.message}"


def _finding(check: Check, case: Fails) -> str:
    found = run_preflight(case.subject(), [check]).violations
    first = next(item for item in found if case.says in item.message)
    return (
        f"{first.severity} at {first.path or 'the document'}\n    {first.message}\n    repair: {first.repair}"
    )


def _severity(check: Check) -> str:
    severities = {case.severity for case in FAILING if case.check == check.id}
    if severities:
        return " or ".join(sorted(severities))
    return "checklist"


def _capitalised(title: str) -> str:
    """Start with a capital, unless the first word is a name as it is typed (cluster_config, vLLM)."""
    first = title.split(" ", 1)[0]
    return title[:1].upper() + title[1:] if first.isalpha() and first.islower() else title


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def _shown(text: str) -> str:
    return _MARKUP.sub(lambda match: f"\\{match[0]}", text)


def _sentence(text: str) -> str:
    return _shown(text) if text.endswith((".", "…")) else f"{_shown(text)}."
