"""The affected experiments as text, JSON values and a table for a pull request."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tools.launcher.compare.affected import EFFECTS, AffectedExperiment, AffectedReport, Effect
from tools.launcher.compare.render_markdown import as_far_as_fits
from tools.launcher.compare.render_text import Line
from tools.launcher.documents.markdown import in_markdown
from tools.launcher.documents.printable import printable
from tools.launcher.preflight.wording import counted

SCHEMA = 1
_SHORT = 8
_LABEL_CHARACTERS = 72
"""Width of the column of labels: one that is longer does not widen all lines."""
_STYLES: dict[Effect, str] = {
    "refused": "red",
    "recipe": "yellow",
    "launch": "cyan",
    "graph": "cyan",
    "new": "green",
    "removed": "magenta",
    "repaired": "green",
}


def affected_text(report: AffectedReport) -> Iterator[Line]:
    """Yield one line for each experiment, and a count."""
    width = min(max((len(item.label) for item in report.affected), default=0), _LABEL_CHARACTERS)
    for item in report.affected:
        line = f"{item.effect:<8}  {item.label:<{width}}  {item.sentence}{_digests(item)}"
        yield Line(printable(line), _STYLES[item.effect])
    yield Line(summary(report))


def affected_markdown(report: AffectedReport) -> Iterator[str]:
    """Yield a table, and the count above it."""
    yield f"**{in_markdown(summary(report))}**"
    if not report.affected:
        return
    yield ""
    yield "| experiment | what | recipe | launch | meaning |"
    yield "|---|---|---|---|---|"
    yield from as_far_as_fits(
        [
            f"| {in_markdown(item.label)} | {item.effect} | {_moved(item, 'recipe')} | {_moved(item, 'launch')} "
            f"| {in_markdown(item.sentence)} |"
            for item in report.affected
        ],
        "| {more} | | | | `--format=text` shows all |",
    )


def affected_json(report: AffectedReport) -> dict[str, Any]:
    """Return the report as JSON values."""
    return {"schema": SCHEMA, **report.model_dump(mode="json")}


def summary(report: AffectedReport) -> str:
    """Return the count of every effect on one line."""
    counts = Counter(item.effect for item in report.affected)
    each = [f"{counts[effect]} {effect}" for effect in EFFECTS if counts[effect]]
    never = (
        f"; {counted(len(report.refused_before), 'experiment')} built in neither"
        if report.refused_before
        else ""
    )
    return printable(
        f"{report.base} to {report.head}: {', '.join(each) or 'no experiment affected'}; "
        f"{report.unaffected} unaffected{never}"
    )


def _digests(item: AffectedExperiment) -> str:
    if item.effect not in ("recipe", "launch", "graph"):
        return ""
    return f" ({item.effect} {_moved(item, item.effect)})"


def _moved(item: AffectedExperiment, field: str) -> str:
    digests = [getattr(each, field) for each in (item.before, item.after) if each is not None]
    return " -> ".join(dict.fromkeys(digest[:_SHORT] for digest in digests if digest is not None))
