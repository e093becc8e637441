"""All tables in one."""

from tools.launcher.preflight.testing.cases import artifacts, batches, context, geometry
from tools.launcher.preflight.testing.cases.case import Fails, NotChecked, Passes, Reminds

FAILING: tuple[Fails, ...] = (*artifacts.FAILING, *geometry.FAILING, *batches.FAILING, *context.FAILING)
PASSING: tuple[Passes, ...] = (*artifacts.PASSING, *geometry.PASSING, *batches.PASSING, *context.PASSING)
NOT_CHECKED: tuple[NotChecked, ...] = (
    *artifacts.NOT_CHECKED,
    *geometry.NOT_CHECKED,
    *batches.NOT_CHECKED,
    *context.NOT_CHECKED,
)
REMINDING: tuple[Reminds, ...] = ()
