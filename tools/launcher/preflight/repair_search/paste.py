"""A plan as text that a researcher can paste."""

from collections.abc import Iterator, Sequence
from typing import Any

from tools.launcher.preflight.findings import Change
from tools.launcher.preflight.repair_search.plan import PATHS, RECIPE, Current, Plan
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import also, set_to, shown
from tools.launcher.rl.topology import ROLE_PLAN_PATHS, SkyRLRolePlan

_INDENT = " " * 4
_WIDTH = 100
_SETTING_OF_FIELD = {
    field: name
    for field, path in ROLE_PLAN_PATHS
    for name, place in PATHS.items()
    if place == f"skyrl.{path}"
} | {"policy_num_gpus_per_node": "policy_width"}


def repair_text(changes: tuple[Change, ...]) -> str:
    """Return the changes as one repair, ready to type."""
    return also(*(set_to(change.path, change.new) for change in changes))


def role_plan_text(
    subject: PreflightSubject, current: Current, plan: Plan, changes: tuple[Change, ...]
) -> str:
    """Return the whole plan: Python for a document that was built here, else YAML.

    Args:
        subject: what is judged.
        current: what its document holds; what that leaves to the launcher is left to it again.
        plan: what is proposed.
        changes: from the document to `plan`; those of the recipe stand in a comment of the Python text.
    """
    if subject.planned is None:
        return _yaml(current, plan, changes)
    return _python(plan, subject.get("iris.allocation.gpu_variant"), changes)


def _python(plan: Plan, variant: Any, changes: tuple[Change, ...]) -> str:
    fields = [f"{field}={getattr(plan, _SETTING_OF_FIELD[field])!r}" for field in SkyRLRolePlan.model_fields]
    recipe_paths = [PATHS[name] for name in RECIPE]
    recipe = [
        f"# and in the recipe: {change.path.removeprefix('skyrl.')}: {shown(change.new)}"
        for change in changes
        if change.path in recipe_paths
    ]
    return "\n".join(
        [
            "SkyRLTopology(",
            f"{_INDENT}num_nodes={plan.num_nodes!r}, gpus_per_node={plan.gpus_per_node!r}, gpu_variant={variant!r},",
            f"{_INDENT}role_plan=SkyRLRolePlan(",
            *_packed(fields, _INDENT * 2),
            f"{_INDENT}),",
            ")",
            *recipe,
        ]
    )


def _yaml(current: Current, plan: Plan, changes: tuple[Change, ...]) -> str:
    changed = [change.path for change in changes]
    written: dict[str, Any] = {}
    for name, path in PATHS.items():
        if path not in changed and (name in RECIPE or name in current.absent):
            continue
        *sections, leaf = path.split(".")
        node = written
        for section in sections:
            node = node.setdefault(section, {})
        node[leaf] = getattr(plan, name)
    return "\n".join(_yaml_lines(written, ""))


def _yaml_lines(written: dict[str, Any], indent: str) -> Iterator[str]:
    """The lines of nested mappings; the inner ones, numbers and switches only, in flow style."""
    for key, value in written.items():
        if not isinstance(value, dict):
            yield f"{indent}{key}: {shown(value)}"
        elif any(isinstance(inner, dict) for inner in value.values()):
            yield f"{indent}{key}:"
            yield from _yaml_lines(value, indent + "  ")
        else:
            settings = [f"{name}: {shown(setting)}" for name, setting in value.items()]
            *lines, last = _packed(settings, indent + "  ")
            yield f"{indent}{key}: {{"
            yield from lines
            yield f"{last.removesuffix(',')}}}"


def _packed(items: Sequence[str], indent: str) -> Iterator[str]:
    """Lines of as many items as fit, each with its comma."""
    line = ""
    for item in items:
        if line and len(indent) + len(line) + len(item) + 2 > _WIDTH:
            yield f"{indent}{line}"
            line = ""
        line += f"{' ' if line else ''}{item},"
    if line:
        yield f"{indent}{line}"
