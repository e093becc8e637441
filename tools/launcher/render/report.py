"""`<name>.report.html`: the plan as one self-contained page with fixed bytes."""

import html

from tools.launcher.render.plan import LaunchPlan, plan_sections

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.45; }}
table {{ border-collapse: collapse; width: 100%; }}
caption {{ text-align: left; font-weight: 600; padding: 1rem 0 .3rem; }}
th, td {{ text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0; overflow-wrap: anywhere; }}
th {{ font-weight: 500; width: 12rem; }}
</style>
</head>
<body>
<h1>{title}</h1>
{tables}
</body>
</html>
"""


def report_html(plan: LaunchPlan) -> bytes:
    """Return the page. It holds the sections of `plan_sections`, one table per section."""
    title = html.escape(f"{plan.experiment} {plan.version}")
    tables = "\n".join(_table(caption, rows) for caption, rows in plan_sections(plan))
    return _PAGE.format(title=title, tables=tables).encode("utf-8")


def _table(caption: str, rows: list[tuple[str, str]]) -> str:
    body = "\n".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{html.escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table>\n<caption>{html.escape(caption)}</caption>\n{body}\n</table>"
