"""Teachers of a distillation run, as far as they occupy nodes.

Source of the fields: MarinSkyRL marinskyrl/distillation.py@068459a1 and cloud/iris/role_plan.py@00ee4e42.
"""

from collections.abc import Iterator
from typing import Any

from tools.launcher.preflight.subject import PreflightSubject, UnreadableValue, is_count
from tools.launcher.preflight.wording import below

DEFAULT_PLACEMENT = {
    "openai_compatible": "external",
    "local_inference": "pinned",
    "frozen_worker": "pinned",
    "resident": "co_resident",
}
"""Source of a teacher -> placement where none is written."""

RESOURCE_COUNTS = ("num_nodes", "gpus_per_node", "tensor_parallel_size")


def teachers(subject: PreflightSubject) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (path, settings) of each teacher that is a mapping."""
    declared = subject.get("skyrl.teachers")
    for name, settings in declared.items() if isinstance(declared, dict) else ():
        if isinstance(settings, dict):
            yield below("skyrl.teachers", name), settings


def placement(settings: dict[str, Any]) -> Any:
    """Return where a teacher runs: what is written, else what its source implies."""
    source = settings.get("source")
    default = DEFAULT_PLACEMENT.get(source) if isinstance(source, str) else None
    return settings.get("placement") or default


def teacher_nodes(subject: PreflightSubject) -> int:
    """Return the nodes of all teachers: one bundle per colocation group.

    Raises:
        UnreadableValue: if the resources of a local teacher cannot be read (GEO-17 says why).
    """
    groups: dict[str, int] = {}
    for path, settings in teachers(subject):
        if placement(settings) not in ("pinned", "rotating"):
            continue
        resources = settings.get("resources")
        nodes = resources.get("num_nodes") if isinstance(resources, dict) else None
        group = resources.get("colocation_group") if isinstance(resources, dict) else None
        if not isinstance(nodes, int) or not is_count(nodes) or not isinstance(group, str):
            raise UnreadableValue(f"{path}.resources with num_nodes and colocation_group")
        groups[group] = nodes
    return sum(groups.values())
