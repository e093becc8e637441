"""`<name>.report.html`: the plan as one self-contained page with fixed bytes.

No script, no request: pictures are inline SVG, folding is <details>, the choice of colours is a radio
button that the style sheet looks at.
"""

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any

from tools.launcher.render.detail import PlanDetail, PlannedDeadline, detail_of
from tools.launcher.render.layout import ClusterLayout
from tools.launcher.render.plan import LaunchPlan
from tools.launcher.render.report_artifacts import artifact_graph
from tools.launcher.render.report_cluster import cluster_picture
from tools.launcher.render.report_markup import Content, Markup, element, escaped, joined, plural, table
from tools.launcher.render.report_numbers import batch_flow, token_bar
from tools.launcher.render.report_style import style_sheet

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


_DEADLINES = {
    "job_timeout_seconds": "the job's own deadline",
    "coordinator_timeout_hours": "the coordinator's deadline",
}
"""Setting of the execution -> what it is."""


def report_html(plan: LaunchPlan) -> bytes:
    """Return the page.

    Raises:
        NoDetail: the plan has no detail.
        ValidationError: its detail is of another launcher.
    """
    detail = detail_of(plan)
    sections: list[tuple[str, str, Markup]] = [
        ("gpus", "Nodes and GPUs", joined(_roles(plan), cluster_picture(detail.layout))),
        ("batches", "From prompts to micro batches", batch_flow(plan.batches)),
        ("tokens", "Token budget", token_bar(plan.lengths)),
        ("memory", "Memory", _pairs("Estimated need", list(plan.memory.items()))),
        ("artifacts", "Artifacts", artifact_graph(plan, detail.retention)),
        ("checks", "Checks", _checks(plan.preflight)),
        ("settings", "Settings and where they come from", _settings(detail)),
        ("identity", "Identity", _identity(plan)),
    ]
    body = joined(
        element("a", "Skip to the plan", href="#main", class_="skip"),
        element("header", *_head(plan, detail), _navigation(sections)),
        element(
            "main",
            *(_section(name, title, content) for name, title, content in sections),
            id="main",
            tabindex="-1",
        ),
        element(
            "footer",
            "Written from this experiment's plan alone: the same inputs give the same bytes. "
            "It is a plan; nothing here says that anything ran.",
        ),
        between="\n",
    )
    title = escaped(f"Plan of {plan.experiment} {plan.version}")
    return _PAGE.format(title=title, style=style_sheet(), body=body).encode("utf-8")


def gpu_hours(layout: ClusterLayout, deadline: PlannedDeadline) -> Fraction:
    """Return what a launch can take at most: all GPUs of the allocation until its deadline."""
    return layout.nodes * layout.gpus_per_node * Fraction(deadline.seconds, 3600)


def _head(plan: LaunchPlan, detail: PlanDetail) -> Iterator[Markup]:
    options = ", ".join(f"{name}={value}" for name, value in plan.options.items())
    yield element("h1", plan.experiment)
    yield element(
        "p",
        f"version {plan.version}, stage {plan.terminal_stage}" + (f", {options}" if options else ""),
        class_="lead",
    )
    layout, preflight = detail.layout, plan.preflight
    hours = gpu_hours(layout, detail.deadline)
    warnings = len(preflight["violations"])
    open_ = len(preflight["not_checked"])
    gpus = layout.nodes * layout.gpus_per_node
    shape = f"{layout.gpus_per_node} {plan.allocation['gpu_variant']} on {plan.allocation['cluster']}"
    attempts = detail.deadline.attempts
    each = f"{_decimal(hours / gpus / attempts)} h"
    longest = each if attempts == 1 else f"{attempts} attempts of {each}"
    until = f"{longest}, {_DEADLINES[detail.deadline.setting]}"
    facts = [
        (
            plural(gpus, "GPU"),
            f"{plural(layout.nodes, 'node')} × {shape}",
        ),
        (
            f"{_decimal(hours)} GPU-hours",
            f"at most: {plural(gpus, 'GPU')} × {until}",
        ),
        (
            plural(plan.batches.rows_per_step, "row"),
            f"per step, {plural(plan.batches.optimizer_steps_per_batch, 'optimizer step')}",
        ),
        (
            f"{len(preflight['passed'])} checks passed",
            f"{plural(warnings, 'warning')}, {open_} not checked, {len(preflight['checklist'])} to look at",
        ),
    ]
    yield element(
        "ul",
        *(element("li", element("strong", big), element("span", small)) for big, small in facts),
        class_="facts",
    )


def _navigation(sections: list[tuple[str, str, Markup]]) -> Markup:
    links = [element("li", element("a", title, href=f"#{name}")) for name, title, _ in sections]
    return element("nav", element("ul", *links), aria_label="Sections")


def _section(name: str, title: str, content: Markup) -> Markup:
    return element("section", element("h2", title, id=name), content, aria_labelledby=name)


def _roles(plan: LaunchPlan) -> Markup:
    rows: list[tuple[Content, ...]] = [
        (
            role.role,
            f"{plural(role.nodes, 'node')}, {plural(role.gpus, 'GPU')}" if role.gpus else "none",
            role.layout,
        )
        for role in plan.roles
    ]
    return table("Roles", ("role", "where", "layout"), rows)


def _checks(preflight: dict[str, Any]) -> Markup:
    warnings = [
        element(
            "li",
            element("strong", f"{item['id']} at {item['path']}"),
            f"{item['message']}. Repair: {item['repair']}",
        )
        for item in preflight["violations"]
    ]
    areas = groupby(preflight["passed"], key=lambda item: item.partition("-")[0])
    passed: list[tuple[Content, ...]] = [(area, ", ".join(ids)) for area, ids in areas]
    count = len(preflight["passed"])
    return joined(
        element("h3", "Warnings") if warnings else element("p", "No warnings."),
        element("ul", *warnings, class_="warnings") if warnings else None,
        _lines("Before the launch, look at", "what", _checklist(preflight["checklist"])),
        _lines("Not checked", "why", _not_checked(preflight["not_checked"])),
        element(
            "details",
            element("summary", f"{plural(count, 'check')} passed"),
            table("Passed", ("area", "checks"), passed, class_="ids"),
        ),
    )


def _lines(caption: str, column: str, rows: list[tuple[Content, ...]]) -> Markup | None:
    return table(caption, ("check", column), rows, class_="ids") if rows else None


def _checklist(items: list[dict[str, str]]) -> list[tuple[Content, ...]]:
    return [(item["id"], item["message"]) for item in items]


def _not_checked(items: list[dict[str, str]]) -> list[tuple[Content, ...]]:
    return [(item["id"], f"{item['title']}: needs {item['needs']}") for item in items]


def _settings(detail: PlanDetail) -> Markup:
    origins: dict[str, list[tuple[Content, ...]]] = {}
    for setting in detail.settings:
        value = json.dumps(setting.value, ensure_ascii=False)
        origins.setdefault(setting.origin, []).append((setting.path, element("code", value)))
    return joined(
        element(
            "p",
            "Every leaf below skyrl in the launch document, by the part of the recipe that set it; the role plan "
            "and the context budget are rendered into the document.",
        ),
        *(
            element(
                "details",
                element("summary", f"{_origin(origin)}: {plural(len(rows), 'setting')}"),
                table(f"From {_origin(origin)}", ("setting", "value"), rows, class_="settings"),
            )
            for origin, rows in origins.items()
        ),
    )


def _origin(origin: str) -> str:
    return origin if origin in ("role plan", "context budget") else f"recipe part {origin}"


def _identity(plan: LaunchPlan) -> Markup:
    rows: list[tuple[Content, ...]] = [
        ("recipe digest: what is learned", element("code", f"sha256:{plan.digests.recipe}")),
        ("launch digest: the exact document", element("code", f"sha256:{plan.digests.launch}")),
        ("runtime commit", element("code", plan.runtime["commit"])),
        ("runtime profile", plan.runtime["profile"]),
        ("runtime manifest", plan.runtime["manifest"]),
        ("entrypoint", plan.entrypoint),
        *((f"allocation: {name.replace('_', ' ')}", str(value)) for name, value in plan.allocation.items()),
    ]
    if plan.smoke:
        rows.append(("smoke that must have succeeded", plan.smoke))
    return _pairs("Digests, runtime and allocation", rows)


def _pairs(caption: str, rows: Sequence[tuple[Content, ...]]) -> Markup:
    return table(caption, ("what", "value"), rows)


def _decimal(value: Fraction) -> str:
    """At most two digits behind the point, rounded up, as the budget gate writes it."""
    hundredths = -(-value.numerator * 100 // value.denominator)
    whole, rest = divmod(hundredths, 100)
    return f"{whole:,}.{rest:02}".rstrip("0") if rest else f"{whole:,}"
