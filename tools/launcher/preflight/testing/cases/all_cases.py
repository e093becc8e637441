"""All tables in one."""

from tools.launcher.preflight.testing.cases import (
    artifacts,
    backend,
    batches,
    context,
    document,
    engine_settings,
    execution,
    execution_storage,
    geometry,
    memory,
    objective,
    recipe_keys,
)
from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes, Reminds

FAILING: tuple[Fails, ...] = (
    *artifacts.FAILING,
    *geometry.FAILING,
    *backend.FAILING,
    *batches.FAILING,
    *memory.FAILING,
    *context.FAILING,
    *engine_settings.FAILING,
    *objective.FAILING,
    *document.FAILING,
    *recipe_keys.FAILING,
    *execution.FAILING,
    *execution_storage.FAILING,
)
PASSING: tuple[Passes, ...] = (
    *artifacts.PASSING,
    *geometry.PASSING,
    *backend.PASSING,
    *batches.PASSING,
    *memory.PASSING,
    *context.PASSING,
    *engine_settings.PASSING,
    *objective.PASSING,
    *document.PASSING,
    *recipe_keys.PASSING,
    *execution.PASSING,
    *execution_storage.PASSING,
)
NOT_CHECKED: tuple[NotChecked, ...] = (
    *artifacts.NOT_CHECKED,
    *geometry.NOT_CHECKED,
    *backend.NOT_CHECKED,
    *batches.NOT_CHECKED,
    *memory.NOT_CHECKED,
    *context.NOT_CHECKED,
    *engine_settings.NOT_CHECKED,
    *objective.NOT_CHECKED,
    *document.NOT_CHECKED,
    *recipe_keys.NOT_CHECKED,
    *execution.NOT_CHECKED,
    *execution_storage.NOT_CHECKED,
)
REMINDING: tuple[Reminds, ...] = (*artifacts.REMINDING, *execution.REMINDING, *execution_storage.REMINDING)
