"""All checks, by area of the catalogue."""

from tools.launcher.preflight.check import Check
from tools.launcher.preflight.checks.artifacts import (
    addresses,
    form,
    graph,
    history,
    models,
    sources,
    tasktrove,
)
from tools.launcher.preflight.checks.batches import data, modes, rows
from tools.launcher.preflight.checks.context import budget
from tools.launcher.preflight.checks.geometry import engines, nodes, role_plan, teacher_roles, training
from tools.launcher.preflight.checks.objective import ownership

CHECKS: tuple[Check, ...] = (
    *addresses.CHECKS,
    *form.CHECKS,
    *graph.CHECKS,
    *history.CHECKS,
    *models.CHECKS,
    *sources.CHECKS,
    *tasktrove.CHECKS,
    *engines.CHECKS,
    *nodes.CHECKS,
    *role_plan.CHECKS,
    *teacher_roles.CHECKS,
    *training.CHECKS,
    *data.CHECKS,
    *modes.CHECKS,
    *rows.CHECKS,
    *budget.CHECKS,
    *ownership.CHECKS,
)
